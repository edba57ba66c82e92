"""Ballast: 32 MiB in 64 files, given up file by file when the disk or its inodes run out.

It lets a save that is committed finish its renames. The checkpoint makes it again.
"""

import contextlib
import errno
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from core import safe_open
from kb.store import steps
from kb.store.layout import PRIVATE, RESERVE, Layout

FILES = 64
FILE_BYTES = 512 * 1024
PLACE = f"{PRIVATE}/{RESERVE}"
OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT)

P = ParamSpec("P")
R = TypeVar("R")


def fill(private: int) -> None:
    """Make the ballast files that are missing. Raises OSError where the disk has no room for them."""
    directory = safe_open.open_directory(private, (RESERVE,))
    try:
        for number in range(FILES):
            name = f"{number:02d}"
            size = _size(directory, name)
            if size == FILE_BYTES:
                continue
            # One that was cut off while it was made is made whole.
            if size is None:
                descriptor = steps.create(directory, name, PLACE)
            else:
                descriptor = steps.open_for_change(directory, name)
            try:
                steps.allocate(descriptor, FILE_BYTES, PLACE)
            except OSError:
                steps.unlink(directory, name, PLACE)
                raise
            finally:
                os.close(descriptor)
    finally:
        os.close(directory)


def _size(directory: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_size
    except FileNotFoundError:
        return None


def with_ballast(layout: Layout, step: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Carry out a step; when space runs out give up one ballast file after the other and try again.

    Raises the step's own OSError when the ballast is used up.
    """
    while True:
        try:
            return step(*args, **kwargs)
        except OSError as error:
            if error.errno not in OUT_OF_SPACE or not _give_up_one(layout):
                raise


def _give_up_one(layout: Layout) -> bool:
    directory = safe_open.open_directory(layout.private, (RESERVE,))
    try:
        for name in sorted(os.listdir(directory)):
            with contextlib.suppress(FileNotFoundError):
                steps.unlink(directory, name, PLACE)
                return True
        return False
    finally:
        os.close(directory)
