"""Small organizations for the tests of the store, on real files."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from kb.store import checkpoint, content_store, reserve
from kb.store.content_store import ContentStore
from tests.store.kills import prepared
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
def past(ram: Path, small_reserve: None) -> Small:
    """An organization with a past: some records below its checkpoint, some above, and everybody dead."""
    return prepared(ram / "past")


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


def pytest_configure(config: pytest.Config) -> None:
    """``long(reason)`` marks what ``make test-long`` runs and nobody else."""
    config.addinivalue_line("markers", "long(reason): takes minutes; run by `make test-long`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long forms out, and say so, unless they are asked for."""
    if "long" in config.option.markexpr:
        return
    for item in items:
        found = item.get_closest_marker("long")
        if found is not None:
            item.add_marker(pytest.mark.skip(reason=f"make test-long: {found.kwargs['reason']}"))


TRIED = "tried: "


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """Note how many kills, states or reads a test tried; the summary adds them up."""
    return lambda what, count: record_property(TRIED + what, count)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was tried in all."""
    sums: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, value in report.user_properties:
                    if name.startswith(TRIED):
                        sums[name.removeprefix(TRIED)] += value
    for name, count in sorted(sums.items()):
        terminalreporter.write_line(f"store: {count} {name}")
