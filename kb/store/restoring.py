"""Making a data directory from an instance backup: beside, proved there, then renamed into place.

``FORMAT`` is the switch. While it says ``restoring`` nothing starts on the directory, and a restore that was cut off is
begun again; it says what it should once everything else is in its place and durable.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core import limits, safe_open
from core.locks import WriterQueue
from core.progress import SILENT, Progress
from kb.store import layout, provision, record, reserve, steps, upkeep
from kb.store.archive import ArchiveReader, BadArchive, Manifest, Member
from kb.store.check import CheckReport, check
from kb.store.content_store import ContentStore
from kb.store.copying import DATABASE, STAGING, Names
from kb.store.data_format import write_format
from kb.store.filesystem import check_filesystem
from kb.store.layout import CONTENT, FORMAT_FILE, LOG, ORGANIZATIONS, OUTCOMES, PRIVATE, Layout
from kb.store.marks import Mark
from kb.store.record import DamagedRecord, Put

BESIDE = ".restoring"
SECRETS = "secrets.sealed"
DATABASE_FILE = "db.sqlite3"
KEYS = ("secret_key", "data_key")
# Made by reading the settings and by a start that was cut off; nothing of anybody's is in them.
NOTHING_YET = frozenset({*KEYS, "provision.lock", "static", FORMAT_FILE + ".new"})
FREE_BYTES_MIN = 64 * limits.MIB
NAME_MAX_BYTES = 255
_ORGANIZATION = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_SEGMENT = re.compile(r"[0-9]{20}\.log", re.ASCII)


class TargetNotEmpty(Exception):
    """There is something in the data directory already."""


class NoRoom(Exception):
    """The disk has not enough room. Carries the bytes that are wanted and that are free."""


@dataclass(frozen=True, slots=True)
class Contents:
    """A proved archive: what it is of, and its files in order, each with its names below the data directory."""

    manifest: Manifest
    files: Sequence[tuple[Names, Member, str]]

    @property
    def sealed(self) -> Member | None:
        """The secrets, if they are in it."""
        return next((member for names, member, _ in self.files if names == (SECRETS,)), None)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(member.size for _, member, _ in self.files)


def prove(reader: ArchiveReader, progress: Progress = SILENT) -> Contents:
    """Prove every hash, and that every file has a place that a backup may write to. Raises BadArchive, OSError."""
    manifest, members = reader.prove(progress)
    if manifest.layout != layout.FORMAT:
        raise BadArchive(
            f"it has the layout {manifest.layout!r}; this version of Brain knows {layout.FORMAT!r} alone"
        )
    if not _ORGANIZATION.fullmatch(manifest.organization_id):
        raise BadArchive("it names no organization")
    files = [
        (_names_of(member.path, manifest.organization_id), member, listed.sha256)
        for member, listed in zip(members, manifest.files, strict=True)
    ]
    held = {names for names, _, _ in files}
    if not {(FORMAT_FILE,), (DATABASE,)} <= held or manifest.has_secrets != ((SECRETS,) in held):
        raise BadArchive("something that belongs into it is missing")
    return Contents(manifest, files)


def check_target(data_dir: Path) -> None:
    """Refuse a data directory with anything in it. Raises TargetNotEmpty, UnsuitableFilesystem, OSError."""
    directory = os.open(data_dir, safe_open.DIRECTORY_FLAGS)
    try:
        found = set(os.listdir(directory)) - NOTHING_YET
        if found == {DATABASE_FILE} and os.stat(DATABASE_FILE, dir_fd=directory).st_size == 0:
            found.clear()  # a start made it and came no further
        if found and not _was_cut_off(directory):
            raise TargetNotEmpty
    finally:
        os.close(directory)
    check_filesystem(data_dir)


class Restore:
    """One restore into an empty data directory. Use it in a ``with`` block: without ``commit`` nothing is left."""

    def __init__(self, reader: ArchiveReader, contents: Contents, data_dir: Path) -> None:
        self._reader = reader
        self._contents = contents
        self._data_dir = data_dir
        self._data = -1
        self._beside = -1
        self._is_committed = False

    @property
    def beside(self) -> Path:
        """Where everything is before ``commit``: laid out as a data directory."""
        return self._data_dir / BESIDE

    def __enter__(self) -> "Restore":
        """Raises TargetNotEmpty, NoRoom, UnsuitableFilesystem, OSError."""
        check_target(self._data_dir)
        self._data = os.open(self._data_dir, safe_open.DIRECTORY_FLAGS)
        try:
            self._refuse_without_room()
            write_format(self._data, layout.RESTORING)
            self._clear()
            steps.make_directory(self._data, BESIDE, "")
            self._beside = safe_open.open_directory(self._data, (BESIDE,))
        except BaseException:
            os.close(self._data)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.close(self._beside)
            if not self._is_committed:
                self._clear()
                steps.unlink(self._data, FORMAT_FILE, "")
        finally:
            os.close(self._data)

    def extract(self, progress: Progress = SILENT) -> None:
        """Write every file, and all that an organization has beside them. Raises BadArchive, OSError."""
        organization = (ORGANIZATIONS, self._contents.manifest.organization_id)
        private = self._make((*organization, PRIVATE))
        try:
            provision.make_frame(private)
            progress.begin("Writing", self._contents.size)
            parent: Names | None = None
            directory = -1
            for names, member, digest in self._contents.files:
                if names in ((FORMAT_FILE,), (SECRETS,)):
                    continue
                target = (DATABASE_FILE,) if names == (DATABASE,) else names
                if target[:-1] != parent:
                    if directory != -1:
                        os.close(directory)
                    parent, directory = target[:-1], self._make(target[:-1])
                self._write(directory, target, member, digest, progress)
            os.close(directory)
            end = self._contents.manifest.log_end
            provision.write_marks(private, Mark(end.lsn, end.segment, end.offset, end.lsn))
            reserve.fill(private)
        finally:
            os.close(private)

    def put_key(self, name: str, secret: str) -> None:
        """Let this secret come with the rest, in place of the one that the empty directory has."""
        assert name in KEYS
        descriptor = steps.create(self._beside, name, BESIDE)
        try:
            steps.write_at(descriptor, 0, secret.encode("ascii"), f"{BESIDE}/{name}")
        finally:
            os.close(descriptor)

    def check(self, progress: Progress = SILENT) -> CheckReport:
        """Start the store beside, and compare everything in it. Raises StorageUnavailable."""
        opened = Layout(self.beside, self._contents.manifest.organization_id)
        store = ContentStore(opened, WriterQueue(opened.locks))
        try:
            return check(store, progress)
        finally:
            store.close()

    def commit(self) -> None:
        """Make everything durable, rename it into place and let the directory be used. Raises OSError."""
        steps.sync_filesystem(self._beside, BESIDE)
        for name in sorted(os.listdir(self._beside)):
            steps.rename(self._beside, name, self._data, name, "")
        steps.sync_directory(self._data, "")
        steps.remove_directory(self._data, BESIDE, "")
        write_format(self._data, layout.FORMAT)
        self._is_committed = True

    def _clear(self) -> None:
        for name in (BESIDE, ORGANIZATIONS):
            with contextlib.suppress(FileNotFoundError):
                upkeep.remove_tree(self._data, name, "")
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                steps.unlink(self._data, DATABASE_FILE + suffix, "")

    def _refuse_without_room(self) -> None:
        status = os.fstatvfs(self._data)
        wanted = self._contents.size + reserve.FILES * reserve.FILE_BYTES + FREE_BYTES_MIN
        free = status.f_bavail * status.f_frsize
        if free < wanted:
            raise NoRoom(wanted, free)

    def _make(self, names: Names) -> int:
        current = os.dup(self._beside)
        for depth, name in enumerate(names):
            try:
                with contextlib.suppress(FileExistsError):
                    steps.make_directory(current, name, "/".join((BESIDE, *names[:depth])))
                below = safe_open.open_directory(current, (name,))
            finally:
                os.close(current)
            current = below
        return current

    def _write(self, directory: int, names: Names, member: Member, digest: str, progress: Progress) -> None:
        place = "/".join((BESIDE, *names))
        descriptor = steps.create(directory, names[-1], place)
        try:
            written, offset = hashlib.sha256(), 0
            for chunk in self._reader.chunks(member):
                steps.write_at(descriptor, offset, chunk, place)
                written.update(chunk)
                offset += len(chunk)
                progress.advance(len(chunk))
        finally:
            os.close(descriptor)
        if written.hexdigest() != digest:
            raise BadArchive(f"{member.path} changed while it was read")


def _names_of(path: str, organization_id: str) -> Names:
    if path in (FORMAT_FILE, DATABASE, SECRETS):
        return (path,)
    names = tuple(path.split("/"))
    top, inside = names[:2], names[2:]
    if top == (ORGANIZATIONS, organization_id) and _may_be_inside(inside):
        return names
    raise BadArchive(f"{path!r} is nothing that a backup holds")


def _may_be_inside(names: Names) -> bool:
    if names[:1] == (CONTENT,) or names[:2] == (PRIVATE, OUTCOMES):
        try:
            record.check_path(Put(names, b""))
        except DamagedRecord:
            return False
        return True
    if names[:2] == (PRIVATE, LOG):
        return len(names) == 3 and _SEGMENT.fullmatch(names[2]) is not None
    return names[:2] == (PRIVATE, STAGING) and len(names) > 2 and all(map(_is_name, names[2:]))


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and name.isprintable() and len(name.encode()) <= NAME_MAX_BYTES


def _was_cut_off(data: int) -> bool:
    try:
        return safe_open.read_file(data, (FORMAT_FILE,)).strip() == layout.RESTORING.encode("ascii")
    except FileNotFoundError:
        return False
