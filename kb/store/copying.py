"""Taking a copy of an organization as it is at one moment, while people go on saving.

Under ``writer`` only what changes in place is copied: the registries, and the database beside the store. Everything
else is taken afterwards, because it either stays what it was or tells that it did not: the log up to its end, outcomes,
and the Markdown, of which each file must have the hash that its registry line said at that moment. One that was saved
again meanwhile is taken from the log. (Hard links would hold the files still, but the store refuses to read a file with
two links.)
"""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core import clock, ids, locks, safe_open
from core.locks import Rank
from kb.registry import REGISTRY_NAME
from kb.store import outcomes, steps
from kb.store.content_store import ContentStore, View
from kb.store.layout import CONTENT, LOG, ORGANIZATIONS, OUTCOMES, PRIVATE, Layout, segment_name
from kb.store.marks import Mark
from kb.store.past import LookBack
from kb.store.record import DamagedRecord
from kb.store.segments import Segments
from kb.store.upkeep import COPYING

CHUNK_BYTES = 1 << 20
# What the backup of Markdown keeps in the private folder, and what in it is only on its way.
STAGING = "backup"
STAGING_TEMPORARY = "tmp"
DATABASE = "database"
REGISTRIES = "registries"
COPYING_PLACE = f"{PRIVATE}/{COPYING}"

Names = tuple[str, ...]


class Moved(Exception):
    """An entry was saved while the copy was on its way to it, and what it was before is kept nowhere else."""


class DamagedFile(Exception):
    """An entry's file is not what its registry says, and the log does not have it either."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """One file of the copy: its names below the data directory, its size, and its bytes, to be read once."""

    names: Names
    size: int
    chunks: Iterator[bytes]

    @property
    def path(self) -> str:
        """The names, joined."""
        return "/".join(self.names)


@dataclass(frozen=True, slots=True)
class _Registry:
    names: Names
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class _Entry:
    names: Names
    id: str
    size: int
    content_hash: str
    content_seq: int


@contextmanager
def hold_publication(layout: Layout, *, wait_seconds: float) -> Iterator[None]:
    """Keep what is prepared for the Git remote as it is. Raises LockBusy."""
    with locks.hold(layout.locks, "publication", Rank.PUBLICATION, wait_seconds=wait_seconds):
        yield


def staging_files(layout: Layout) -> Iterator[CopiedFile]:
    """Everything that is kept for the backup of Markdown. The caller holds publication. Raises OSError."""
    yield from _walk(layout, layout.private, (STAGING,))


def read_keys(data_dir: Path, names: Sequence[str]) -> dict[str, str]:
    """The keys of the installation, as far as the data directory has them. Raises OSError."""
    directory = os.open(data_dir, safe_open.DIRECTORY_FLAGS)
    try:
        present = set(os.listdir(directory))
        return {
            name: safe_open.read_file(directory, (name,)).decode("ascii").strip()
            for name in names
            if name in present
        }
    finally:
        os.close(directory)


class Copy:
    """An organization as it was when ``take`` was called. The caller holds ``hold_upkeep`` until it is closed."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store
        self._layout = store.layout
        self._registries: list[_Registry] = []
        self._entries: list[_Entry] = []
        self._outcomes: list[Names] = []
        self._taken_at = ""
        self.mark = Mark(0, 0, 0, 0)
        steps.make_directory(self._layout.private, COPYING, PRIVATE)
        # Where files are that were copied and not packed yet.
        self.directory = safe_open.open_directory(self._layout.private, (COPYING,))

    def close(self) -> None:
        """Give the directory back; ``upkeep.remove_leftovers`` removes it."""
        os.close(self.directory)

    def take(self, beside: Callable[[int], None]) -> float:
        """Take the organization as it is now. ``beside`` copies the database into ``DATABASE`` of ``self.directory``.

        Nobody saves meanwhile, and nobody's access changes; returns for how many seconds.
        Raises StorageUnavailable, and what ``beside`` raises.
        """
        with self._store.snapshot():
            pass  # decoded before anybody waits
        with self._store.transaction() as transaction:
            begun = clock.monotonic()
            self.mark = transaction.mark
            self._taken_at = clock.timestamp()
            os.close(steps.create(self.directory, DATABASE, COPYING_PLACE))
            beside(self.directory)
            self._take_registries(transaction)
            self._take_outcomes()
            return clock.monotonic() - begun

    @property
    def size(self) -> int:
        """About how many bytes ``files`` gives."""
        tree = sum(entry.size for entry in self._entries) + sum(one.size for one in self._registries)
        log = sum(_size_of(self._layout.log, segment_name(first)) for first in self._segments())
        return tree + log

    def files(self) -> Iterator[CopiedFile]:
        """Every file of the organization but those of ``staging_files``, in the state that was taken.

        Raises Moved: take it again. DamagedFile, OSError.
        """
        # What the log no longer has comes first: only that can be lost by a save in between.
        oldest = min(self._segments(), default=0)
        for entry in sorted(self._entries, key=lambda entry: entry.content_seq >= oldest):
            data = self._read_entry(entry)
            yield self._file(entry.names, data)
        yield from self._read_registries()
        for first in self._segments():
            size = _size_of(self._layout.log, segment_name(first))
            if first == self.mark.segment:
                size = self.mark.offset
            chunks = _chunks_of(safe_open.open_file(self._layout.log, segment_name(first)), size)
            yield CopiedFile(self._whole((PRIVATE, LOG, segment_name(first))), size, chunks)
        yield from self._read_outcomes()

    def database(self) -> CopiedFile:
        """The copy of the database."""
        descriptor = safe_open.open_file(self.directory, DATABASE)
        size = os.fstat(descriptor).st_size
        return CopiedFile((DATABASE,), size, _chunks_of(descriptor, size))

    # -- under writer ---------------------------------------------------------------------------------------------

    def _take_registries(self, view: View) -> None:
        spool = steps.create(self.directory, REGISTRIES, COPYING_PLACE)
        try:
            offset = 0
            pending = [view.root]
            while pending:
                known = pending.pop()
                above = (CONTENT, *(known.folder.path.split("/") if known.folder.path else ()))
                data = safe_open.read_file(self._layout.root, (*above, REGISTRY_NAME))
                steps.write_at(spool, offset, data, f"{COPYING_PLACE}/{REGISTRIES}")
                self._registries.append(_Registry((*above, REGISTRY_NAME), offset, len(data)))
                offset += len(data)
                for line in known.entries.values():
                    self._entries.append(
                        _Entry(
                            (*above, line.name), line.id, line.size_bytes, line.content_hash, line.content_seq
                        )
                    )
                pending.extend(filter(None, (view.folder(child.id) for child in known.children.values())))
        finally:
            os.close(spool)

    def _take_outcomes(self) -> None:
        top = safe_open.open_directory(self._layout.private, (OUTCOMES,))
        try:
            for shard in sorted(os.listdir(top)):
                directory = safe_open.open_directory(top, (shard,))
                try:
                    self._outcomes.extend(
                        (PRIVATE, OUTCOMES, shard, name) for name in sorted(os.listdir(directory))
                    )
                finally:
                    os.close(directory)
        finally:
            os.close(top)

    # -- afterwards -----------------------------------------------------------------------------------------------

    def _read_entry(self, entry: _Entry) -> bytes:
        try:
            data = safe_open.read_file(self._layout.root, entry.names)
        except (FileNotFoundError, NotADirectoryError, safe_open.UnsafeFile):
            data = b""
        if ids.sha256_hex(data) == entry.content_hash:
            return data
        look = LookBack(self._layout, self.mark, bytes_max=sys.maxsize)
        try:
            past = look.record(entry.content_seq)
            kept = look.read(past, entry.names) if past else None
        except (FileNotFoundError, DamagedRecord):
            kept = None
        if kept is not None and ids.sha256_hex(kept) == entry.content_hash:
            return kept
        place = "/".join(entry.names)
        with self._store.snapshot() as view:
            folder = view.folder_of_entry(entry.id)
            if folder is not None and folder.entries[entry.id].content_seq == entry.content_seq:
                raise DamagedFile(place)
        raise Moved(place)

    def _read_registries(self) -> Iterator[CopiedFile]:
        spool = safe_open.open_file(self.directory, REGISTRIES)
        try:
            for one in self._registries:
                yield self._file(one.names, os.pread(spool, one.size, one.start))
        finally:
            os.close(spool)

    def _read_outcomes(self) -> Iterator[CopiedFile]:
        for names in self._outcomes:
            data = safe_open.read_file(self._layout.root, names)
            try:
                outcome = outcomes.decode(data)
            except outcomes.DamagedOutcome as error:
                raise DamagedFile("/".join(names)) from error
            # A request id may be used again after its seven days: then this is the answer to a later call.
            if outcome.time <= self._taken_at:
                yield self._file(names, data)

    def _segments(self) -> list[int]:
        return [first for first in Segments(self._layout).first_lsns() if first <= self.mark.segment]

    def _file(self, names: Names, data: bytes) -> CopiedFile:
        return CopiedFile(self._whole(names), len(data), iter((data,)))

    def _whole(self, names: Names) -> Names:
        return (ORGANIZATIONS, self._layout.organization_id, *names)


def _walk(layout: Layout, above: int, names: Names) -> Iterator[CopiedFile]:
    try:
        directory = safe_open.open_directory(above, names[-1:])
    except FileNotFoundError:
        return
    try:
        for name in sorted(os.listdir(directory)):
            if names == (STAGING,) and name == STAGING_TEMPORARY:
                continue
            if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                yield from _walk(layout, directory, (*names, name))
                continue
            descriptor = safe_open.open_file(directory, name)
            size = os.fstat(descriptor).st_size
            whole = (ORGANIZATIONS, layout.organization_id, PRIVATE, *names, name)
            yield CopiedFile(whole, size, _chunks_of(descriptor, size))
    finally:
        os.close(directory)


def _size_of(directory: int, name: str) -> int:
    return os.stat(name, dir_fd=directory, follow_symlinks=False).st_size


def _chunks_of(descriptor: int, size: int) -> Iterator[bytes]:
    """The first ``size`` bytes of an open file, which is closed at the end."""
    try:
        offset = 0
        while offset < size:
            chunk = os.pread(descriptor, min(CHUNK_BYTES, size - offset), offset)
            if not chunk:
                return
            yield chunk
            offset += len(chunk)
    finally:
        os.close(descriptor)
