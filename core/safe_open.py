"""Opening files of the data directory without following anything that somebody may have put there.

Every open walks from a directory descriptor, one component at a time, and follows no link. A path is a sequence
of names, never a joined string.
"""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# What opening a link, a directory, a socket, a pipe nobody reads or a device nobody serves gives.
NOT_A_FILE = frozenset([errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV])
PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


class UnsafeFile(OSError):
    """What stands under a name is not a regular file with one link."""


def open_directory(start: int, names: Sequence[str] = ()) -> int:
    """A new descriptor of the directory ``names`` below the directory descriptor ``start``. The caller closes it.

    Raises FileNotFoundError; NotADirectoryError or ELOOP where a link or file stands in the way.
    """
    for name in names:
        _check_component(name)
    current = os.dup(start)
    for name in names:
        try:
            below = os.open(name, DIRECTORY_FLAGS, dir_fd=current)
        finally:
            os.close(current)
        current = below
    return current


def open_file(directory: int, name: str, flags: int = os.O_RDONLY) -> int:
    """A descriptor of the regular file ``name`` in ``directory``; with O_CREAT made with mode 0600.

    Raises UnsafeFile for anything that is not a regular file with exactly one link; nothing about it was changed.
    """
    _check_component(name)
    try:
        # Emptied only after the look at it: the bytes may belong to another name as well.
        descriptor = os.open(name, flags & ~os.O_TRUNC | FILE_FLAGS, PRIVATE_FILE, dir_fd=directory)
    except OSError as error:
        if error.errno in NOT_A_FILE:
            raise UnsafeFile(f"not a regular file: {name}") from error
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise UnsafeFile(f"not a regular file with one link: {name}")
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_file(start: int, names: Sequence[str]) -> bytes:
    """All bytes of the file ``names`` below the directory descriptor ``start``."""
    directory = open_directory(start, names[:-1])
    try:
        descriptor = open_file(directory, names[-1])
    finally:
        os.close(directory)
    try:
        return read_all(descriptor)
    finally:
        os.close(descriptor)


def read_all(descriptor: int, offset: int = 0) -> bytes:
    """The bytes of an open file from ``offset`` to its present end."""
    pieces = []
    wanted = os.fstat(descriptor).st_size - offset
    while wanted > 0:
        piece = os.pread(descriptor, wanted, offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        wanted -= len(piece)
    return b"".join(pieces) if len(pieces) != 1 else pieces[0]


def make_private_directory(path: Path) -> None:
    """Make the directory, and those above it that are missing, with mode 0700; narrow it when it is wider."""
    # Not parents=True: it would give the mode of the umask to those above.
    for missing in reversed([above for above in path.parents if not above.exists()]):
        missing.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    if stat.S_IMODE(path.stat().st_mode) != PRIVATE_DIRECTORY:
        path.chmod(PRIVATE_DIRECTORY)


def secret_file(path: Path, *, size: int = 48) -> str:
    """The secret in this file of mode 0600; made once, with ``size`` random bytes, when it is missing.

    Of two processes that start together one makes it and both read the same. Raises UnsafeFile when the file
    is a link, can be read by others or is empty.
    """
    make_private_directory(path.parent)
    directory = os.open(path.parent, DIRECTORY_FLAGS)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        try:
            descriptor = open_file(directory, path.name)
        except FileNotFoundError:
            _make_secret(directory, path.name, size)
            descriptor = open_file(directory, path.name)
        try:
            if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
                raise UnsafeFile(f"others can read this secret; set its mode to 0600: {path.name}")
            secret = read_all(descriptor).decode("ascii").strip()
            if not secret:
                raise UnsafeFile(
                    f"this secret is empty; put it back, or remove the file for a new one: {path.name}"
                )
            return secret
        finally:
            os.close(descriptor)
    finally:
        os.close(directory)


def _make_secret(directory: int, name: str, size: int) -> None:
    # Written whole and synced under another name, then renamed: a crash never leaves half a secret.
    temporary = f".{name}.new"
    try:
        os.unlink(temporary, dir_fd=directory)
    except FileNotFoundError:
        pass
    descriptor = open_file(directory, temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        os.write(descriptor, secrets.token_urlsafe(size).encode("ascii"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    os.fsync(directory)


def _check_component(name: str) -> None:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise UnsafeFile(f"not a name: {name!r}")
