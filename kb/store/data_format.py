"""Which layout a data directory has: the one number that every command asks before it touches anything."""

import os
from pathlib import Path

from core import safe_open
from kb.store import layout, steps

NEW_SUFFIX = ".new"


class UnknownFormat(Exception):
    """The data directory was written by another version of Brain. The message is for an administrator."""


def check_format(data_dir: Path) -> None:
    """Refuse a data directory with a layout that this version does not know.

    Raises UnknownFormat, FileNotFoundError where it says nothing about it.
    """
    directory = os.open(data_dir, safe_open.DIRECTORY_FLAGS)
    try:
        found = safe_open.read_file(directory, (layout.FORMAT_FILE,)).decode("ascii", "replace").strip()
    finally:
        os.close(directory)
    if found == layout.RESTORING:
        raise UnknownFormat(
            f"A restore into {data_dir} is under way, or was cut off. Once none is running, restore again."
        )
    if found != layout.FORMAT:
        raise UnknownFormat(
            f"{data_dir} has the layout {found!r}; this version of Brain knows {layout.FORMAT!r} alone."
        )


def write_format(directory: int, text: str) -> None:
    """Let ``FORMAT`` in the data directory say this, durably and in one step. Raises OSError."""
    name = layout.FORMAT_FILE + NEW_SUFFIX
    descriptor = steps.create_anew(directory, name, "")
    try:
        steps.write_at(descriptor, 0, f"{text}\n".encode("ascii"), name)
        steps.sync_file(descriptor, name)
    finally:
        os.close(descriptor)
    steps.rename(directory, name, directory, layout.FORMAT_FILE, "")
    steps.sync_directory(directory, "")


def check_format_if_any(data_dir: Path) -> bool:
    """The same, for a data directory that may have nothing in it yet: False then. Raises UnknownFormat."""
    try:
        check_format(data_dir)
    except FileNotFoundError:
        return False
    return True
