"""Making an organization's files: under another name, synced, then renamed into place."""

import contextlib
import os
import shutil
from pathlib import Path

from core import claims, clock, ids, safe_open
from core.types import SYSTEM_ACTOR
from kb import registry
from kb.registry import OwnLine
from kb.store import layout, record, reserve, steps
from kb.store.data_format import UnknownFormat, check_format, write_format
from kb.store.filesystem import check_filesystem
from kb.store.marks import Mark
from kb.store.record import Cause, Put

NEW_SUFFIX = ".new"
FIRST_LSN = 1


def is_provisioned(data_dir: Path, organization_id: str) -> bool:
    """Whether the organization has its files."""
    return layout.locks_path(data_dir, organization_id).is_dir()


def provision(data_dir: Path, organization_id: str) -> None:
    """Give an organization its files, with an empty root folder. Changes nothing where it has them.

    Raises UnknownFormat, UnsuitableFilesystem, OSError.
    """
    safe_open.make_private_directory(data_dir)
    data = os.open(data_dir, safe_open.DIRECTORY_FLAGS)
    try:
        _make_format(data, data_dir)
        check_format(data_dir)
        _make_missing(data, layout.ORGANIZATIONS)
        organizations = safe_open.open_directory(data, (layout.ORGANIZATIONS,))
        try:
            if not is_provisioned(data_dir, organization_id):
                check_filesystem(data_dir)
                _provision_below(organizations, organization_id)
            # Also where everything was there: a start that was cut off may have made names and not synced them.
            steps.sync_directory(organizations, layout.ORGANIZATIONS)
        finally:
            os.close(organizations)
        steps.sync_directory(data, "")
    finally:
        os.close(data)
    _sync_above(data_dir)


def _provision_below(organizations: int, organization_id: str) -> None:
    name = organization_id + NEW_SUFFIX
    if name in os.listdir(organizations):
        # Left by a start that was cut off; nothing in it was ever used.
        shutil.rmtree(name, dir_fd=organizations)
    steps.make_directory(organizations, name, layout.ORGANIZATIONS)
    root = safe_open.open_directory(organizations, (name,))
    try:
        _fill(root)
        steps.sync_filesystem(root, name)
    finally:
        os.close(root)
    steps.rename(organizations, name, organizations, organization_id, layout.ORGANIZATIONS)


def _fill(root: int) -> None:
    for name in (layout.CONTENT, layout.PRIVATE):
        steps.make_directory(root, name, "")
    # The root is made by the log's first record, so that the log alone tells the whole tree.
    root_registry = registry.encode_snapshot(FIRST_LSN, [OwnLine(lsn=FIRST_LSN, id=ids.new_id(ids.FOLDER))])
    cause = Cause("provision", clock.timestamp(), SYSTEM_ACTOR)
    first_record = record.encode(
        FIRST_LSN, cause, [Put((layout.CONTENT, registry.REGISTRY_NAME), root_registry)]
    )
    content = safe_open.open_directory(root, (layout.CONTENT,))
    _write_file(content, registry.REGISTRY_NAME, root_registry)
    os.close(content)

    private = safe_open.open_directory(root, (layout.PRIVATE,))
    try:
        make_frame(private)
        log = safe_open.open_directory(private, (layout.LOG,))
        _write_file(log, layout.segment_name(FIRST_LSN), first_record)
        os.close(log)
        write_marks(private, Mark(FIRST_LSN, FIRST_LSN, len(first_record), FIRST_LSN))
        reserve.fill(private)
    finally:
        os.close(private)


def make_frame(private: int) -> None:
    """Make what every organization has in its private folder before there is anything in it: folders and lock files."""
    for name in (
        layout.LOCKS,
        layout.LOG,
        layout.STAGE,
        layout.OUTCOMES,
        claims.CLAIMS,
        layout.RESERVE,
        layout.QUARANTINE,
    ):
        steps.make_directory(private, name, layout.PRIVATE)
    locks = safe_open.open_directory(private, (layout.LOCKS,))
    for name in layout.LOCK_FILES:
        _write_file(locks, name, b"")
    os.close(locks)
    outcomes = safe_open.open_directory(private, (layout.OUTCOMES,))
    for shard in range(256):
        steps.make_directory(outcomes, f"{shard:02x}", layout.OUTCOMES)
    os.close(outcomes)


def write_marks(private: int, mark: Mark) -> None:
    """Say of a new organization that its tree is the one that the log up to ``mark`` led to, and is durable."""
    for name in (layout.APPLIED, layout.CHECKPOINT):
        _write_file(private, name, mark.encode())


def _make_format(data: int, data_dir: Path) -> None:
    present = os.listdir(data)
    if layout.FORMAT_FILE in present:
        return
    if layout.ORGANIZATIONS in present:
        raise UnknownFormat(
            f"{data_dir} holds organizations and no {layout.FORMAT_FILE}: put that file back."
        )
    # Before there are organizations: without it they would be refused.
    write_format(data, layout.FORMAT)


def _sync_above(data_dir: Path) -> None:
    # The data directory's own name. A folder that we may enter and not read is its owner's business.
    with contextlib.suppress(PermissionError):
        above = os.open(data_dir.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            steps.sync_directory(above, "..")
        finally:
            os.close(above)


def _make_missing(directory: int, name: str) -> None:
    if name not in os.listdir(directory):
        steps.make_directory(directory, name, "")


def _write_file(directory: int, name: str, data: bytes) -> None:
    descriptor = steps.create(directory, name, name)
    try:
        steps.write_at(descriptor, 0, data, name)
    finally:
        os.close(descriptor)
