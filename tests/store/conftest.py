"""Small organizations for the tests of the store, on real files."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from kb.store import checkpoint, content_store, reserve
from kb.store.content_store import ContentStore
from tests.store.small import Small

# Nothing here is judged by the clock.
hypothesis.settings.register_profile("store", deadline=None)
hypothesis.settings.load_profile("store")

RAM = Path("/dev/shm")
RAM_NEEDED_BYTES = 48 * 1024 * 1024


@pytest.fixture
def small_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small ballast files instead of 32 MiB, no demand for free space, and checkpoints only when asked for."""
    monkeypatch.setattr(reserve, "FILES", 2)
    monkeypatch.setattr(reserve, "FILE_BYTES", 4096)
    monkeypatch.setattr(content_store, "FREE_BYTES_MIN", 0)
    monkeypatch.setattr(checkpoint, "SECONDS_MAX", 3600.0)


@pytest.fixture
def small(tmp_path: Path, small_reserve: None) -> Small:
    """A provisioned organization with an empty root folder."""
    return Small(tmp_path / "data").provision()


@pytest.fixture
def store(small: Small) -> Iterator[ContentStore]:
    """The store of ``small`` in this process."""
    with small.opened() as store:
        yield store


@pytest.fixture
def ram() -> Iterator[Path]:
    """A folder for trials by the thousand: in memory where the machine allows it, else on disk."""
    roomy = RAM.is_dir() and os.access(RAM, os.W_OK) and shutil.disk_usage(RAM).free > RAM_NEEDED_BYTES
    with tempfile.TemporaryDirectory(prefix="brain-store-", dir=RAM if roomy else None) as name:
        yield Path(name)
