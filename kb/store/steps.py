"""Every durable step of the store: the only calls that create, change, sync, rename or remove its files.

One layer, so that a test can stop the process, or refuse, before any single step. A directory is an open
descriptor plus its names, which are there for the hook alone.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Sequence

from core import safe_open

WRITE_CHUNK_BYTES = 1 << 20

# Called with (step, place) before each step while a test has set it.
hook: Callable[[str, str], None] | None = None

_RENAME_NOREPLACE = 1
_libc = ctypes.CDLL(None, use_errno=True)


def create(directory: int, name: str, place: str) -> int:
    """A new file of mode 0600, opened for reading and writing. Raises FileExistsError."""
    _announce("create", place, name)
    return safe_open.open_file(directory, name, os.O_RDWR | os.O_CREAT | os.O_EXCL)


def create_anew(directory: int, name: str, place: str) -> int:
    """A new file in the place of one that was cut off while it was made, if there is one."""
    try:
        return create(directory, name, place)
    except FileExistsError:
        unlink(directory, name, place)
        return create(directory, name, place)


def open_for_change(directory: int, name: str) -> int:
    """An existing regular file, opened for reading and writing. Changes nothing by itself."""
    return safe_open.open_file(directory, name, os.O_RDWR)


def write_at(descriptor: int, offset: int, data: bytes | memoryview, place: str) -> None:
    """Write all of ``data`` at ``offset``."""
    rest = memoryview(data)
    while rest:
        _announce("write", place)
        written = os.pwrite(descriptor, rest[:WRITE_CHUNK_BYTES], offset)
        rest = rest[written:]
        offset += written


def truncate(descriptor: int, size: int, place: str) -> None:
    """Cut the file to ``size`` bytes."""
    _announce("truncate", place)
    os.ftruncate(descriptor, size)


def allocate(descriptor: int, size: int, place: str) -> None:
    """Make the file ``size`` bytes long and give it its blocks now."""
    _announce("allocate", place)
    os.posix_fallocate(descriptor, 0, size)


def sync_data(descriptor: int, place: str) -> None:
    """Wait until the file's bytes and size are durable."""
    _announce("sync data", place)
    os.fdatasync(descriptor)


def sync_file(descriptor: int, place: str) -> None:
    """Wait until the file is durable with all that belongs to it."""
    _announce("sync file", place)
    os.fsync(descriptor)


def sync_directory(directory: int, place: str) -> None:
    """Wait until the names in the directory are durable."""
    _announce("sync directory", place)
    os.fsync(directory)


def sync_filesystem(descriptor: int, place: str) -> None:
    """Wait until everything on the descriptor's filesystem is durable.

    The kernel reports a lost page once per descriptor, so keep one that was opened before the first change.
    """
    _announce("sync filesystem", place)
    if _libc.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def rename(source: int, source_name: str, target: int, target_name: str, place: str) -> None:
    """Move a file over another one, in one step. ``place`` names the target directory."""
    _announce("rename", place, target_name)
    os.rename(source_name, target_name, src_dir_fd=source, dst_dir_fd=target)


def rename_new(directory: int, name: str, new_name: str, place: str) -> None:
    """Give a file another name in its directory, which nothing has yet. Raises FileExistsError."""
    _announce("rename", place, new_name)
    if (
        _libc.renameat2(directory, os.fsencode(name), directory, os.fsencode(new_name), _RENAME_NOREPLACE)
        == 0
    ):
        return
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(number, os.strerror(number))
    # A filesystem that cannot do both in one step, such as a network's.
    if new_name in os.listdir(directory):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_name)
    os.rename(name, new_name, src_dir_fd=directory, dst_dir_fd=directory)


def unlink(directory: int, name: str, place: str) -> None:
    """Remove a file. Raises FileNotFoundError."""
    _announce("unlink", place, name)
    os.unlink(name, dir_fd=directory)


def make_directory(directory: int, name: str, place: str) -> None:
    """A new directory of mode 0700. Raises FileExistsError."""
    _announce("mkdir", place, name)
    os.mkdir(name, safe_open.PRIVATE_DIRECTORY, dir_fd=directory)


def remove_directory(directory: int, name: str, place: str) -> None:
    """Remove an empty directory. Raises FileNotFoundError."""
    _announce("rmdir", place, name)
    os.rmdir(name, dir_fd=directory)


def place_of(names: Sequence[str]) -> str:
    """How the hook calls a path."""
    return "/".join(names)


def _announce(step: str, *place: str) -> None:
    if hook is not None:
        hook(step, "/".join(place))
