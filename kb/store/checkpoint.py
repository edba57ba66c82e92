"""Making the tree durable up to a record, so that a replay need not begin earlier. Never under ``writer``.

The kernel tells of a page that it could not keep once, and a later sync succeeds without it. So a sync that failed
is marked, and nobody makes a checkpoint any more until a process that finds nobody alive has replayed, and by that
written again, everything since the last one.
"""

import contextlib
import os
from collections.abc import Callable

from core import locks, safe_open
from core.locks import Rank
from core.log import get_logger
from kb.store import reserve, steps
from kb.store.layout import CHECKPOINT, PRIVATE, UNSYNCED, Layout
from kb.store.marks import Mark
from kb.store.segments import Segments

log = get_logger(__name__)

RECORDS_MAX = 1_000
BYTES_MAX = 64 * 1024 * 1024
SECONDS_MAX = 60.0
# Above so many paths one sync of the whole filesystem is cheaper.
PATHS_MAX = 64
CONTENT_WAIT_SECONDS = 10.0
NEW_SUFFIX = ".new"


class TreeNotDurable(Exception):
    """The disk could not keep what was written to the tree."""


def make_checkpoint(layout: Layout, *, wait_seconds: float = 0) -> Mark | None:
    """Sync what the records since the last checkpoint changed, then move the checkpoint; returns the new one.

    None where nothing is to be done, somebody else is at it for longer than ``wait_seconds``, a record is being
    applied, or an earlier sync failed. Reads the log no further than ``applied`` and never judges its tail.

    Raises TreeNotDurable, OSError, MediaFault; then the old checkpoint stands.
    """
    try:
        with locks.hold(layout.locks, CHECKPOINT, Rank.CHECKPOINT, wait_seconds=wait_seconds):
            return None if is_unsynced(layout) else _make_checkpoint(layout)
    except locks.LockBusy:
        return None


def is_unsynced(layout: Layout) -> bool:
    """Whether a sync of the tree failed since a process last started alone."""
    try:
        os.stat(UNSYNCED, dir_fd=layout.private, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def forget_unsynced(layout: Layout) -> None:
    """Everything since the last checkpoint was written again. The caller is alone and holds ``writer``."""
    if is_unsynced(layout):
        steps.unlink(layout.private, UNSYNCED, PRIVATE)


def _make_checkpoint(layout: Layout) -> Mark | None:
    with locks.hold_content(layout.locks, shared=True, wait_seconds=CONTENT_WAIT_SECONDS):
        applied = layout.read_applied()
    previous = layout.read_checkpoint()
    if applied is None or previous is None or not applied.is_whole or applied.lsn <= previous.lsn:
        return None
    try:
        _sync_changes(layout, previous, applied)
    except TreeNotDurable:
        _mark_unsynced(layout)
        raise
    write_checkpoint(layout, applied)
    try:
        reserve.fill(layout.private)
    except OSError:
        log.warning("the disk has no room for the reserve")
    return applied


def _mark_unsynced(layout: Layout) -> None:
    # It need not be durable: after a power cut everything is replayed anyway.
    with contextlib.suppress(OSError):
        os.close(steps.create(layout.private, UNSYNCED, PRIVATE))


def _sync_changes(layout: Layout, previous: Mark, applied: Mark) -> None:
    # The paths come from the log: a process's own list does not know what others changed.
    paths: set[tuple[str, ...]] = set()
    for head in Segments(layout).heads(previous, applied):
        paths.update(head.paths)
        if len(paths) > PATHS_MAX:
            _sync(steps.sync_filesystem, layout.applied, PRIVATE)
            return
    for path in sorted(paths):
        # What is gone, or is a link that somebody put there, has nothing that could be synced.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, safe_open.UnsafeFile):
            _sync_path(layout, path)
    for folder in sorted({path[:-1] for path in paths}):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            directory = safe_open.open_directory(layout.root, folder)
            try:
                _sync(steps.sync_directory, directory, steps.place_of(folder))
            finally:
                os.close(directory)


def _sync_path(layout: Layout, path: tuple[str, ...]) -> None:
    parent = safe_open.open_directory(layout.root, path[:-1])
    try:
        try:
            descriptor = safe_open.open_file(parent, path[-1])
        except safe_open.UnsafeFile:
            # A folder that the record made.
            descriptor = safe_open.open_directory(parent, path[-1:])
    finally:
        os.close(parent)
    try:
        _sync(steps.sync_file, descriptor, steps.place_of(path))
    finally:
        os.close(descriptor)


def _sync(step: Callable[[int, str], None], descriptor: int, place: str) -> None:
    try:
        step(descriptor, place)
    except OSError as error:
        raise TreeNotDurable(f"{place}: {os.strerror(error.errno or 0)}") from error


def write_checkpoint(layout: Layout, mark: Mark) -> None:
    """Move the checkpoint to ``mark``. Everything up to it must be durable already. Raises OSError."""
    name = CHECKPOINT + NEW_SUFFIX
    descriptor = steps.create_anew(layout.private, name, PRIVATE)
    try:
        steps.write_at(descriptor, 0, mark.encode(), f"{PRIVATE}/{name}")
        steps.sync_file(descriptor, f"{PRIVATE}/{name}")
    finally:
        os.close(descriptor)
    steps.rename(layout.private, name, layout.private, CHECKPOINT, PRIVATE)
    steps.sync_directory(layout.private, PRIVATE)
