"""Files that are made from the tree and may be deleted at any time: ``private/cache/search``."""

import contextlib
import mmap
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core import locks, safe_open
from core.locks import Rank
from kb.store import steps
from kb.store.layout import PRIVATE, Layout

CACHE = "cache"
SEARCH = "search"
BUILDING = "building"
NEW_SUFFIX = ".new"
PLACE = f"{PRIVATE}/{CACHE}/{SEARCH}"


class MappedFile:
    """A derived file, mapped into memory. ``is_as_mapped`` tells whether anybody has touched it since.

    Threads may still be reading when another takes its place, so memory and descriptor go with the last of them.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor).atexit = False
        self._stamp = self._read_stamp()
        self.data = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))

    def is_as_mapped(self) -> bool:
        """Whether size and time of the file are still those it was mapped with: reading a cut file would be fatal."""
        return self._read_stamp() == self._stamp

    def _read_stamp(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns


def derived_names(layout: Layout, suffix: str) -> list[str]:
    """The names of the derived files with this suffix, sorted."""
    with _directory(layout) as directory:
        return sorted(name for name in os.listdir(directory) if name.endswith(suffix))


def write_derived(layout: Layout, name: str, write: Callable[[int], None]) -> None:
    """Let ``write`` fill a new file through its descriptor, then put it in place whole. Raises OSError."""
    with _directory(layout) as directory:
        temporary = name + NEW_SUFFIX
        with contextlib.suppress(FileNotFoundError):
            steps.unlink(directory, temporary, PLACE)
        descriptor = steps.create(directory, temporary, PLACE)
        try:
            write(descriptor)
        except BaseException:
            steps.unlink(directory, temporary, PLACE)
            raise
        finally:
            os.close(descriptor)
        steps.rename(directory, temporary, directory, name, PLACE)


def map_derived(layout: Layout, name: str) -> MappedFile:
    """Map a derived file. Raises FileNotFoundError; ValueError where it is empty."""
    with _directory(layout) as directory:
        descriptor = safe_open.open_file(directory, name)
    return MappedFile(descriptor)


def remove_derived(layout: Layout, name: str) -> None:
    """Remove a derived file, if it is there. Who has it mapped keeps its bytes."""
    with _directory(layout) as directory, contextlib.suppress(FileNotFoundError):
        steps.unlink(directory, name, PLACE)


def forget_derived(layout: Layout) -> None:
    """Remove every derived file: they may hold text that shall be gone."""
    for name in derived_names(layout, ""):
        if name != BUILDING:
            remove_derived(layout, name)


@contextmanager
def hold_building(layout: Layout, *, wait_seconds: float) -> Iterator[None]:
    """Be the one process that builds derived files. Raises LockBusy."""
    with (
        _directory(layout) as directory,
        locks.hold(directory, BUILDING, Rank.BUILDING, wait_seconds=wait_seconds, make=True),
    ):
        yield


@contextmanager
def _directory(layout: Layout) -> Iterator[int]:
    try:
        directory = safe_open.open_directory(layout.private, (CACHE, SEARCH))
    except FileNotFoundError:
        directory = _make(layout)
    try:
        yield directory
    finally:
        os.close(directory)


def _make(layout: Layout) -> int:
    with contextlib.suppress(FileExistsError):
        steps.make_directory(layout.private, CACHE, PRIVATE)
    cache = safe_open.open_directory(layout.private, (CACHE,))
    try:
        with contextlib.suppress(FileExistsError):
            steps.make_directory(cache, SEARCH, f"{PRIVATE}/{CACHE}")
        return safe_open.open_directory(cache, (SEARCH,))
    finally:
        os.close(cache)
