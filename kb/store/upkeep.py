"""Upkeep of an organization's files: who may shorten, rewrite or copy its log, and where leftovers of it go."""

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from core import safe_open
from core.locks import FileLock, Rank
from kb.store import steps
from kb.store.layout import LOG, PRIVATE, SEGMENT_SUFFIX, Layout

LOCK_FILE = "upkeep"
LOG_PLACE = f"{PRIVATE}/{LOG}"
# Where a backup keeps what it has copied and not packed yet.
COPYING = "copying"


@contextmanager
def hold_upkeep(layout: Layout, *, wait_seconds: float) -> Iterator[None]:
    """Be the only one that shortens (``sweep``), rewrites (``purge_history``), copies (``backup_instance``) or follows
    the whole log (``check_store``).

    Raises LockBusy. Take it before any other lock.
    """
    lock = FileLock(layout.locks, LOCK_FILE, Rank.CHECKPOINT).acquire(wait_seconds=wait_seconds, make=True)
    # Outside the order, as ``alive`` is: nobody who holds another lock ever waits for this one.
    lock.keep()
    try:
        yield
    finally:
        lock.drop_kept()


def remove_leftovers(layout: Layout) -> int:
    """Remove what an upkeep that died left beside the log, and in ``copying/``. Only under ``hold_upkeep``.

    Returns how many files there were.
    """
    found = 0
    for name in os.listdir(layout.log):
        if not name.endswith(SEGMENT_SUFFIX):
            steps.unlink(layout.log, name, LOG_PLACE)
            found += 1
    with contextlib.suppress(FileNotFoundError):
        found += remove_tree(layout.private, COPYING, PRIVATE)
    return found


def remove_tree(directory: int, name: str, place: str) -> int:
    """Remove a directory of ours with all that is in it, following no link; returns how many files went.

    Raises FileNotFoundError.
    """
    below = safe_open.open_directory(directory, (name,))
    removed = 0
    try:
        for inner in os.listdir(below):
            if stat.S_ISDIR(os.stat(inner, dir_fd=below, follow_symlinks=False).st_mode):
                removed += remove_tree(below, inner, f"{place}/{name}")
            else:
                steps.unlink(below, inner, f"{place}/{name}")
                removed += 1
    finally:
        os.close(below)
    steps.remove_directory(directory, name, place)
    return removed
