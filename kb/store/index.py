"""What one process has decoded of the tree: folders, registries, and which folder holds which entry.

It follows the log: only registries named by new records are read again, and of those only what was appended. Where a
registry or the newest part of the log cannot be read, the tree is decoded from what is left of the two, so that
reading goes on; the damage is kept for whoever asks.

It is used and refreshed only while the caller holds ``content`` (shared) or ``writer``; all holders at one time see
the same record as the last one, so the lists may change in place between them and never under them.
"""

import bisect
import os
from collections.abc import Sequence
from typing import NamedTuple

from core import names, safe_open
from core.types import FolderRef
from kb import registry
from kb.registry import EntryLine, FolderLine, Line, LiveLines, OwnLine, SnapshotLine, TombstoneLine
from kb.store import fold
from kb.store.faults import MediaFault
from kb.store.layout import CONTENT, Layout
from kb.store.marks import Mark
from kb.store.segments import Segments

# What stands where a registry should be, when it is not one.
UNREADABLE = (FileNotFoundError, NotADirectoryError, safe_open.UnsafeFile)


class FolderRegistry(LiveLines):
    """One folder's decoded registry: what stands in it, by id and by folded name.

    ``entry_names`` and ``child_names`` are sorted. They hold folded names, a child folder's with ``/`` behind it:
    so the two merged are in path order, the order of the whole paths below this folder. ``key`` and ``size`` are
    those of the file as it was decoded, ``line_count`` the lines in it.
    """

    def __init__(self, folder: FolderRef, key: bytes) -> None:
        super().__init__()
        self.folder = folder
        self.key = key
        self.size = 0
        self.line_count = 0
        self.entry_names: list[str] = []
        self.child_names: list[str] = []
        self._entry_ids: dict[str, str] = {}
        self._child_ids: dict[str, str] = {}
        self._reserved: dict[str, str] = {}

    def entry_named(self, name: str) -> EntryLine | None:
        """The live entry with this filename, without regard to case."""
        entry_id = self._entry_ids.get(names.fold(name))
        return self.entries[entry_id] if entry_id else None

    def child_named(self, name: str) -> FolderLine | None:
        """The child folder with this name, without regard to case."""
        folder_id = self._child_ids.get(names.fold(name))
        return self.children[folder_id] if folder_id else None

    def reserved_by(self, name: str) -> TombstoneLine | None:
        """The deleted entry that still keeps this filename from being used."""
        deletion_id = self._reserved.get(names.fold(name))
        return self.tombstones[deletion_id] if deletion_id else None

    def take(self, line: SnapshotLine | Line) -> None:
        """Let a line count, and keep the names in step."""
        self.line_count += 1
        match line:
            case FolderLine() if line.id not in self.children:
                folded = names.fold(line.name)
                self._child_ids[folded] = line.id
                bisect.insort(self.child_names, folded + "/")
            case EntryLine() if line.id not in self.entries:
                folded = names.fold(line.name)
                self._entry_ids[folded] = line.id
                bisect.insort(self.entry_names, folded)
            case TombstoneLine():
                self._bury(line)
        super().take(line)

    def _bury(self, line: TombstoneLine) -> None:
        folded = names.fold(line.name)
        if line.entry_id in self.entries:
            del self._entry_ids[folded]
            del self.entry_names[bisect.bisect_left(self.entry_names, folded)]
        if line.reserved:
            self._reserved[folded] = line.id
        elif self._reserved.get(folded) == line.id:
            del self._reserved[folded]


class Added(NamedTuple):
    """A new folder with its registry, as file and as lines."""

    folder: FolderRef
    data: bytes
    lines: Sequence[SnapshotLine | Line]


class Appended(NamedTuple):
    """Lines that a registry grew by, and by how many bytes."""

    folder_id: str
    lines: Sequence[Line]
    size: int


class Index:
    """The decoded tree of one organization in this process, as of record ``mark.lsn``."""

    def __init__(self, layout: Layout, segments: Segments) -> None:
        self._layout = layout
        self._segments = segments
        self.mark: Mark | None = None
        # When the record at the mark was made, where the index followed the log there.
        self.time: str | None = None
        self.registries: dict[str, FolderRegistry] = {}
        self.root_id = ""
        self._folder_ids: dict[str, str] = {}
        self._entry_folders: dict[str, str] = {}
        self._damage: MediaFault | None = None

    def refresh(self, mark: Mark) -> None:
        """Follow the log to ``mark``. Raises MediaFault where registries and log together do not tell the tree."""
        if self.mark == mark:
            return
        start, self.mark = self.mark, None
        if start is None or not self._follow(start, mark):
            self._load_all(mark)
        # Only a whole tree gets a mark: after a failure the next one starts from nothing.
        self.mark = mark

    def take_over(
        self, before: Mark, end: Mark, time: str, added: Sequence[Added], appended: Sequence[Appended]
    ) -> None:
        """Follow one record of this process itself, which knows the lines and need not read them."""
        if self.mark != before:
            return
        self.mark, self.time = None, time
        for change in appended:
            known = self.registries[change.folder_id]
            self._take(known, change.lines, known.size + change.size)
        for folder, data, lines in added:
            self._add(folder, data, lines)
        self.mark = end

    def take_damage(self) -> MediaFault | None:
        """What was found damaged since the last question, though reading goes on without it."""
        damage, self._damage = self._damage, None
        return damage

    def folder(self, folder_id: str) -> FolderRegistry | None:
        """The folder with this id."""
        return self.registries.get(folder_id)

    def folder_at(self, components: list[str]) -> FolderRegistry | None:
        """The folder with this path, without regard to case; the root's has no components."""
        folder_id = self._folder_ids.get(names.fold("/".join(components)))
        return self.registries[folder_id] if folder_id else None

    def folder_of_entry(self, entry_id: str) -> FolderRegistry | None:
        """The folder that holds the live entry with this id."""
        folder_id = self._entry_folders.get(entry_id)
        return self.registries[folder_id] if folder_id else None

    # -- following ----------------------------------------------------------------------------------------

    def _follow(self, start: Mark, end: Mark) -> bool:
        if end.lsn < start.lsn:
            return False
        touched: set[tuple[str, ...]] = set()
        try:
            for head in self._segments.heads(start, end):
                self.time = head.cause.time
                touched.update(path[1:-1] for path in head.paths if path[-1] == registry.REGISTRY_NAME)
        except FileNotFoundError:
            return False
        except MediaFault as fault:
            self._damage = fault
            return False
        # A new folder's parent comes first, so its own registry is loaded through the parent's new line.
        for path in sorted(touched, key=len):
            folder = self.folder_at(list(path))
            if folder is not None:
                self._reload(folder, end)
        return True

    def _load_all(self, mark: Mark) -> None:
        self.time = None
        self.registries.clear()
        self._folder_ids.clear()
        self._entry_folders.clear()
        self.root_id = ""
        self._load([FolderRef(id="", path="", lineage=())], mark)
        self.root_id = self._folder_ids[""]

    def _load(self, pending: list[FolderRef], mark: Mark) -> None:
        # A list and no recursion: a path may be hundreds of folders deep.
        while pending:
            folder = pending.pop()
            data, lines = self._whole(folder, mark)
            if folder.id == "":
                own_id = _own_id(lines)
                folder = FolderRef(id=own_id, path="", lineage=(own_id,))
            pending.extend(self._add(folder, data, lines))

    def _add(self, folder: FolderRef, data: bytes, lines: Sequence[SnapshotLine | Line]) -> list[FolderRef]:
        loaded = FolderRegistry(folder, _key(data))
        self.registries[folder.id] = loaded
        self._folder_ids[names.fold(folder.path)] = folder.id
        return self._take(loaded, lines, len(data))

    def _reload(self, known: FolderRegistry, mark: Mark) -> None:
        try:
            tail = self._tail(known)
            if tail is not None:
                lines = registry.decode_lines(tail)
                self._load(self._take(known, lines, known.size + len(tail)), mark)
                return
        except (registry.DamagedRegistry, *UNREADABLE):
            # Read whole, or from the log, below.
            pass
        data, lines = self._whole(known.folder, mark)
        for entry_id in known.entries:
            del self._entry_folders[entry_id]
        self._load(self._add(known.folder, data, lines), mark)

    def _whole(self, folder: FolderRef, mark: Mark) -> tuple[bytes, list[SnapshotLine | Line]]:
        """A folder's registry, as file and as lines; where the file is damaged, what the log says it is."""
        try:
            data = self._read(folder)
            return data, _checked(folder, registry.decode_lines(data))
        except (registry.DamagedRegistry, *UNREADABLE) as problem:
            place = f"the registry of the folder {folder.id or 'at the root'}"
            logged = fold.file_in_log(
                self._layout, fold.registry_path(tuple(_components(folder))), up_to=mark.lsn
            )
            if logged is None:
                raise MediaFault(f"{place} is damaged, and the log does not have all of it") from problem
            self._damage = MediaFault(f"{place} is damaged; reading goes on from the log")
            try:
                return logged, _checked(folder, registry.decode_lines(logged))
            except registry.DamagedRegistry as error:
                raise MediaFault(f"{place} is damaged, and so is the log") from error

    def _take(
        self, target: FolderRegistry, lines: Sequence[SnapshotLine | Line], size: int
    ) -> list[FolderRef]:
        """Let the lines count; returns the child folders that are not known yet."""
        new_children = []
        parent = target.folder
        for line in lines:
            target.take(line)
            match line:
                case EntryLine():
                    self._entry_folders[line.id] = parent.id
                case TombstoneLine():
                    self._entry_folders.pop(line.entry_id, None)
                case FolderLine() if line.id not in self.registries:
                    path = f"{parent.path}/{line.name}" if parent.path else line.name
                    new_children.append(FolderRef(line.id, path, (*parent.lineage, line.id)))
        target.size = size
        return new_children

    def _open(self, folder: FolderRef) -> int:
        directory = safe_open.open_directory(self._layout.root, (CONTENT, *_components(folder)))
        try:
            return safe_open.open_file(directory, registry.REGISTRY_NAME)
        finally:
            os.close(directory)

    def _read(self, folder: FolderRef) -> bytes:
        descriptor = self._open(folder)
        try:
            return safe_open.read_all(descriptor)
        finally:
            os.close(descriptor)

    def _tail(self, known: FolderRegistry) -> bytes | None:
        """What was appended to a registry; None where it is another file than the one that is known."""
        descriptor = self._open(known.folder)
        try:
            if _key(os.pread(descriptor, registry.KEY_BYTES, 0)) != known.key:
                return None
            return safe_open.read_all(descriptor, known.size)
        finally:
            os.close(descriptor)


def _key(data: bytes) -> bytes:
    return data[: registry.KEY_BYTES].split(b"\n")[0]


def _components(folder: FolderRef) -> list[str]:
    return folder.path.split("/") if folder.path else []


def _own_id(lines: list[SnapshotLine | Line]) -> str:
    return next((line.id for line in lines if isinstance(line, OwnLine)), "")


def _checked(folder: FolderRef, lines: list[SnapshotLine | Line]) -> list[SnapshotLine | Line]:
    """The lines, if they are a whole registry of this folder. Raises DamagedRegistry."""
    if not lines or not isinstance(lines[0], SnapshotLine):
        raise registry.DamagedRegistry("the first line is not a snapshot")
    own_id = _own_id(lines)
    if own_id == "" or own_id != (folder.id or own_id):
        raise registry.DamagedRegistry("the registry is not this folder's")
    return lines
