"""Making the tree durable up to a record, so that a replay need not begin earlier. Never under ``writer``."""

import os

from core import locks, safe_open
from core.locks import Rank
from core.log import get_logger
from kb.store import reserve, steps
from kb.store.layout import CHECKPOINT, PRIVATE, Layout
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


def make_checkpoint(layout: Layout) -> Mark | None:
    """Sync what the records since the last checkpoint changed, then move the checkpoint; returns the new one.

    None where nothing is to be done, somebody else is at it, or a record is being applied. Reads the log no
    further than ``applied`` and never judges its tail. Raises OSError; then the old checkpoint stands.
    """
    try:
        with locks.hold(layout.locks, CHECKPOINT, Rank.CHECKPOINT):
            return _make_checkpoint(layout)
    except locks.LockBusy:
        return None


def _make_checkpoint(layout: Layout) -> Mark | None:
    with locks.hold_content(layout.locks, shared=True, wait_seconds=CONTENT_WAIT_SECONDS):
        applied = layout.read_applied()
    previous = layout.read_checkpoint()
    if applied is None or previous is None or not applied.is_whole or applied.lsn <= previous.lsn:
        return None
    _sync_changes(layout, previous, applied)
    write_checkpoint(layout, applied)
    try:
        reserve.fill(layout.private)
    except OSError:
        log.warning("the disk has no room for the reserve")
    return applied


def _sync_changes(layout: Layout, previous: Mark, applied: Mark) -> None:
    # The paths come from the log: a process's own list does not know what others changed.
    paths: set[tuple[str, ...]] = set()
    for head in Segments(layout).heads(previous, applied):
        paths.update(head.paths)
        if len(paths) > PATHS_MAX:
            steps.sync_filesystem(layout.applied, PRIVATE)
            return
    folders: set[tuple[str, ...]] = set()
    for path in sorted(paths):
        folders.add(path[:-1])
        try:
            _sync_path(layout, path)
        except FileNotFoundError:
            continue
    for folder in sorted(folders):
        directory = safe_open.open_directory(layout.root, folder)
        try:
            steps.sync_directory(directory, steps.place_of(folder))
        finally:
            os.close(directory)


def _sync_path(layout: Layout, path: tuple[str, ...]) -> None:
    parent = safe_open.open_directory(layout.root, path[:-1])
    try:
        descriptor = os.open(
            path[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent
        )
    finally:
        os.close(parent)
    try:
        steps.sync_file(descriptor, steps.place_of(path))
    finally:
        os.close(descriptor)


def write_checkpoint(layout: Layout, mark: Mark) -> None:
    """Move the checkpoint to ``mark``. Everything up to it must be durable already. Raises OSError."""
    name = CHECKPOINT + NEW_SUFFIX
    try:
        descriptor = steps.create(layout.private, name, PRIVATE)
    except FileExistsError:
        steps.unlink(layout.private, name, PRIVATE)
        descriptor = steps.create(layout.private, name, PRIVATE)
    try:
        steps.write_at(descriptor, 0, mark.encode(), f"{PRIVATE}/{name}")
        steps.sync_file(descriptor, f"{PRIVATE}/{name}")
    finally:
        os.close(descriptor)
    steps.rename(layout.private, name, layout.private, CHECKPOINT, PRIVATE)
    steps.sync_directory(layout.private, PRIVATE)
