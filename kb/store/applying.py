"""Carrying a record's operations into the tree. The holder of ``writer`` and ``content`` EX does it.

Nothing here waits for the disk: the record is durable already, and a checkpoint syncs the tree later.
"""

import contextlib
import os
from collections.abc import Sequence

from core import safe_open
from kb.store import steps
from kb.store.layout import APPLIED, PRIVATE, STAGE, Layout
from kb.store.marks import Mark
from kb.store.record import Append, MakeFolder, Operation, Put, Remove
from kb.store.reserve import with_ballast

STAGE_PLACE = f"{PRIVATE}/{STAGE}"
APPLIED_PLACE = f"{PRIVATE}/{APPLIED}"
# One record may touch thousands of folders; a process may not have thousands of files open.
OPEN_FOLDERS_MAX = 32


def write_applied(layout: Layout, mark: Mark) -> None:
    """Write the ``applied`` mark in place, in one call."""
    steps.write_at(layout.applied_for_writing(), 0, mark.encode(), APPLIED_PLACE)


def stage(layout: Layout, lsn: int, operations: Sequence[Operation]) -> set[str]:
    """Write the whole files of a coming record beside the tree; returns their names in ``stage/``.

    Nothing is left behind when it fails. Raises OSError.
    """
    staged: set[str] = set()
    try:
        for number, operation in enumerate(operations):
            if isinstance(operation, Put):
                name = stage_name(lsn, number)
                staged.add(name)
                _stage_one(layout, name, operation.data)
    except OSError:
        unstage(layout, staged)
        raise
    return staged


def stage_name(lsn: int, number: int) -> str:
    """The name in ``stage/`` of the file that operation ``number`` of record ``lsn`` puts."""
    return f"{lsn}.{number}"


def unstage(layout: Layout, names: set[str]) -> None:
    """Remove staged files; what cannot be removed now goes at the next recovery."""
    for name in names:
        with contextlib.suppress(OSError):
            steps.unlink(layout.stage, name, STAGE_PLACE)


def empty_stage(layout: Layout) -> None:
    """Remove whatever a dead writer staged. Leftovers do no harm, so a read-only disk is fine."""
    unstage(layout, set(os.listdir(layout.stage)))


def apply(layout: Layout, lsn: int, operations: Sequence[Operation], *, staged: set[str]) -> None:
    """Carry out the operations in order; files not in ``staged`` are written from the record's bytes.

    May be repeated. Raises OSError; then the ``applied`` mark must stay ahead, so that somebody finishes it.
    """
    directories: dict[tuple[str, ...], int] = {}
    try:
        for number, operation in enumerate(operations):
            parent, name = operation.path[:-1], operation.path[-1]
            directory = directories.get(parent)
            if directory is None:
                if len(directories) == OPEN_FOLDERS_MAX:
                    os.close(directories.pop(next(iter(directories))))
                directory = directories[parent] = _open_parent(layout, parent)
            _apply_one(
                layout, operation, directory, name, steps.place_of(parent), staged, stage_name(lsn, number)
            )
    finally:
        for directory in directories.values():
            os.close(directory)


def _apply_one(
    layout: Layout,
    operation: Operation,
    directory: int,
    name: str,
    place: str,
    staged: set[str],
    staged_name: str,
) -> None:
    match operation:
        case MakeFolder():
            with contextlib.suppress(FileExistsError):
                with_ballast(layout, steps.make_directory, directory, name, place)
        case Put(data=data):
            if staged_name not in staged:
                with_ballast(layout, _stage_one, layout, staged_name, data)
            with_ballast(layout, steps.rename, layout.stage, staged_name, directory, name, place)
        case Append(offset=offset, data=data):
            descriptor = steps.open_for_change(directory, name)
            try:
                if os.fstat(descriptor).st_size != offset:
                    steps.truncate(descriptor, offset, f"{place}/{name}")
                with_ballast(layout, steps.write_at, descriptor, offset, data, f"{place}/{name}")
            finally:
                os.close(descriptor)
        case Remove():
            with contextlib.suppress(FileNotFoundError):
                steps.unlink(directory, name, place)


def _stage_one(layout: Layout, name: str, data: bytes) -> None:
    descriptor = steps.create_anew(layout.stage, name, STAGE_PLACE)
    try:
        steps.write_at(descriptor, 0, data, f"{STAGE_PLACE}/{name}")
    finally:
        os.close(descriptor)


def _open_parent(layout: Layout, names: tuple[str, ...]) -> int:
    # A power cut may have taken a folder that an earlier record made; a replay makes it again.
    current = os.dup(layout.root)
    for depth, name in enumerate(names):
        try:
            try:
                below = safe_open.open_directory(current, (name,))
            except FileNotFoundError:
                with_ballast(layout, steps.make_directory, current, name, steps.place_of(names[:depth]))
                below = safe_open.open_directory(current, (name,))
        finally:
            os.close(current)
        current = below
    return current
