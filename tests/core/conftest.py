import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.locks import Rank
from core.safe_open import DIRECTORY_FLAGS
from tests.core.neighbours import Neighbour, Stranger


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    """A folder with a lock file for each rank."""
    folder = tmp_path / "locks"
    folder.mkdir()
    for rank in Rank:
        (folder / rank.name.lower()).touch(0o600)
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


@pytest.fixture(scope="session")
def the_stranger() -> Iterator[Stranger]:
    process = Stranger()
    yield process
    process.close()


@pytest.fixture
def stranger(the_stranger: Stranger, locks: Path) -> Stranger:
    """Another process that can judge which lock files of ``locks`` are held."""
    the_stranger.come_to(locks)
    return the_stranger
