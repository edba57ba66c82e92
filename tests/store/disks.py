"""Disks of a few megabytes: in memory or as a real ext4 image, where this machine lets us mount them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{command[0]}: {done.stderr.strip()}")


@contextmanager
def tmpfs(place: Path, *, megabytes: int) -> Iterator[Path]:
    """A disk in memory. Skips the test where mounting is not allowed."""
    place.mkdir(exist_ok=True)
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", place)
    except OSError as problem:
        pytest.skip(f"this machine mounts no tmpfs: {problem}")
    try:
        yield place
    finally:
        _run("umount", "-l", place)


@contextmanager
def ext4(
    image: Path, place: Path, *, megabytes: int, inodes: int = 4096, block: int = 1024
) -> Iterator[Path]:
    """A real ext4 in a file. Skips the test where that cannot be made or mounted."""
    place.mkdir(exist_ok=True)
    with image.open("wb") as file:
        os.truncate(file.fileno(), megabytes * 1024 * 1024)
    try:
        _run("mkfs.ext4", "-q", "-F", "-m", "0", "-N", str(inodes), "-b", str(block), image)
        _run("mount", "-o", "loop", image, place)
    except (OSError, FileNotFoundError) as problem:
        pytest.skip(f"this machine mounts no ext4 image: {problem}")
    try:
        yield place
    finally:
        _run("umount", "-l", place)


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[Path]:
    """An image that another ``ext4`` made."""
    place.mkdir(exist_ok=True)
    _run("mount", "-o", "loop", image, place)
    try:
        yield place
    finally:
        _run("umount", place)


def resize(place: Path, *, megabytes: int) -> None:
    """Give a tmpfs another size."""
    _run("mount", "-o", f"remount,size={megabytes}m", place)


def remount(place: Path, how: str) -> None:
    """Mount a disk ``ro`` or ``rw``. Fails while a file on it is open for writing."""
    _run("mount", "-o", f"remount,{how}", place)


def fill(place: Path, name: str = "somebody-elses") -> Path:
    """Let somebody else use up every byte that is free."""
    path = place / name
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for piece in (65536, 4096, 1024, 1):
            try:
                while True:
                    os.write(descriptor, b"x" * piece)
            except OSError:
                continue
    finally:
        os.close(descriptor)
    return path


def use_up_inodes(place: Path) -> Path:
    """Let somebody else use up every inode that is free."""
    folder = place / "many"
    try:
        folder.mkdir(exist_ok=True)
        for number in range(1_000_000):
            (folder / str(number)).touch()
    except OSError:
        pass
    return folder
