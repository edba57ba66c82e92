"""Everything that a bad call must leave as it was."""

import hashlib
from pathlib import Path
from typing import Any

from django.db import connection


def image_of_disk(data_dir: Path) -> dict[str, str]:
    """The hash of every file below the data directory, but those that change without a call or say nothing.

    The locks of running requests are no state; the checkpoint moves by the clock, over what the log held before.
    """
    return {
        str(path.relative_to(data_dir)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(data_dir.rglob("*"))
        if path.is_file()
        and "claims" not in path.parts
        and path.suffix != ".sqlite3-shm"
        and path.name not in ("checkpoint", "checkpoint.new")
    }


def image_of_database() -> dict[str, list[Any]]:
    """Every row of every table."""
    image = {}
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names(cursor)):
            cursor.execute(f'SELECT * FROM "{table}"')
            image[table] = cursor.fetchall()
    return image
