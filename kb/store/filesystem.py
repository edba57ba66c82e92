"""Whether a data directory lies on a disk that keeps what the store relies on: local, with flock and rename."""

import ctypes
import fcntl
import os
from pathlib import Path

from core import safe_open

# Magic numbers of statfs(2). tmpfs is there for tests.
SUITABLE = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x2FC12FC1: "zfs",
    0xF2F52010: "f2fs",
    0x794C7630: "overlayfs",
    0x01021994: "tmpfs",
}
PROBE_NAME = ".probe"

_libc = ctypes.CDLL(None, use_errno=True)


class UnsuitableFilesystem(Exception):
    """The data directory cannot be trusted with a store. The message says why, for an administrator."""


def check_filesystem(data_dir: Path) -> None:
    """Refuse a disk of an unknown kind, or one where flock, rename or syncing a folder does not work.

    Raises UnsuitableFilesystem, OSError.
    """
    check_kind(data_dir)
    directory = os.open(data_dir, safe_open.DIRECTORY_FLAGS)
    try:
        _try_locks_and_rename(directory)
    finally:
        os.close(directory)


def check_kind(data_dir: Path) -> None:
    """Refuse a disk of an unknown kind: a network, a user's own filesystem. Raises UnsuitableFilesystem, OSError."""
    kind = _magic(data_dir)
    if kind not in SUITABLE:
        raise UnsuitableFilesystem(
            f"{data_dir} lies on a filesystem that Brain does not know (type {kind:#x}). Use a local disk with one of: "
            + ", ".join(sorted(set(SUITABLE.values())))
        )


def check_one_disk(*directories: int) -> None:
    """Refuse an organization of which a part is mounted from elsewhere: nothing could be renamed into it.

    Raises UnsuitableFilesystem.
    """
    if len({os.fstat(directory).st_dev for directory in directories}) > 1:
        raise UnsuitableFilesystem("content, log and stage of an organization must lie on one disk")


def _magic(path: Path) -> int:
    # f_type is the first word of struct statfs; the rest of the buffer is room to spare.
    buffer = ctypes.create_string_buffer(512)
    if _libc.statfs(os.fsencode(path), buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(ctypes.c_long.from_buffer(buffer).value) & 0xFFFFFFFF


def _try_locks_and_rename(directory: int) -> None:
    name = f"{PROBE_NAME}.{os.getpid()}"
    first = safe_open.open_file(directory, name, os.O_RDWR | os.O_CREAT)
    try:
        second = safe_open.open_file(directory, name)
        try:
            fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                raise UnsuitableFilesystem("flock does not exclude on this filesystem")
        finally:
            os.close(second)
        os.rename(name, name + ".renamed", src_dir_fd=directory, dst_dir_fd=directory)
        name += ".renamed"
        os.fsync(directory)
    finally:
        os.close(first)
        os.unlink(name, dir_fd=directory)
