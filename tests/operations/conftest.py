from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operations.bare import BareStore


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[BareStore]:
    """An organization's store alone, without accounts and database."""
    store = BareStore(tmp_path / "data")
    yield store
    store.close()
