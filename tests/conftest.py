from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from access import writer
from kb.store import stores
from tests.world import World

AUDIT_TRIGGERS = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'access_auditevent'"
)


@pytest.fixture
def data_dir(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    """A data directory of this test alone; what it opened is closed afterwards."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir(mode=0o700)
    yield settings.DATA_DIR
    stores.close_all()
    writer.close_all()


@pytest.fixture
def world(db: None, data_dir: Path) -> World:
    """An organization with an empty root folder. Mark the test ``django_db(transaction=True)`` for real commits."""
    return World()


@pytest.fixture(scope="session", autouse=True)
def audit_is_emptied_between_tests() -> Iterator[None]:
    """Lift the triggers of the audit table while Django empties the tables after a test with real commits."""
    operations = type(connection.ops)
    flush = operations.execute_sql_flush

    def flush_without_triggers(self: Any, statements: list[str]) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(AUDIT_TRIGGERS)
            triggers = cursor.fetchall()
            for name, _ in triggers:
                cursor.execute(f"DROP TRIGGER {name}")
            flush(self, statements)
            for _, sql in triggers:
                cursor.execute(sql)

    with patch.object(operations, "execute_sql_flush", flush_without_triggers):
        yield
