import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.safe_open import DIRECTORY_FLAGS
from tests.core.neighbours import Neighbour, Stranger

LOCK_FILES = ("checkpoint", "claim", "publication", "writer", "alive", "gate", "content")


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    """A folder with a lock file for each rank."""
    folder = tmp_path / "locks"
    folder.mkdir()
    for name in LOCK_FILES:
        (folder / name).touch(0o600)
    return folder


@pytest.fixture
def locks_directory(locks: Path) -> Iterator[int]:
    """The open descriptor of ``locks``."""
    descriptor = os.open(locks, DIRECTORY_FLAGS)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def neighbour() -> Iterator[Callable[..., Neighbour]]:
    """Start another process; none outlives the test."""
    started: list[Neighbour] = []

    def start(work: Callable[..., None], *arguments: Any) -> Neighbour:
        started.append(Neighbour(work, *arguments))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture
def stranger(locks: Path) -> Iterator[Stranger]:
    """Another process that can judge which lock files of ``locks`` are held."""
    process = Stranger(locks)
    yield process
    process.close()
