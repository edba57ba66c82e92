"""Claims: which request is running now. A claim is a lock, not state; its file says nothing by being there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from core import locks, safe_open
from core.errors import RequestInProgress
from core.locks import FileLock, Rank

# In the private folder of an organization.
CLAIMS = "claims"


@contextmanager
def hold_claim(private: int, key: str) -> Iterator[None]:
    """Be the one call that works on the request ``key`` (64 hexadecimal digits). Raises RequestInProgress, OSError.

    ``private`` is a descriptor of the organization's private folder.
    """
    claims = safe_open.open_directory(private, (CLAIMS,))
    try:
        directory = _shard(claims, key[:2])
    finally:
        os.close(claims)
    try:
        lock = _acquire(directory, key)
        try:
            yield
        finally:
            lock.release()
    finally:
        os.close(directory)


def _acquire(directory: int, key: str) -> FileLock:
    while True:
        lock = FileLock(directory, key, Rank.CLAIM)
        try:
            lock.acquire(wait_seconds=0, make=True)
        except locks.LockBusy as busy:
            raise RequestInProgress from busy
        try:
            # A sweep may have removed the file between opening and locking; then this is nobody's claim.
            if os.stat(key, dir_fd=directory, follow_symlinks=False).st_ino == lock.inode:
                return lock
        except FileNotFoundError:
            pass
        lock.release()


def _shard(claims: int, name: str) -> int:
    try:
        os.mkdir(name, safe_open.PRIVATE_DIRECTORY, dir_fd=claims)
    except FileExistsError:
        pass
    return safe_open.open_directory(claims, (name,))
