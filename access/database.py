"""Changes of the database that are whole or did not happen."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, transaction

from core.errors import StorageUnavailable


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """One transaction around the block. Raises StorageUnavailable where the database cannot write; nothing changed."""
    try:
        with transaction.atomic():
            yield
    except OperationalError as error:
        # The disk is full or read-only, or the database stayed busy.
        raise StorageUnavailable from error
