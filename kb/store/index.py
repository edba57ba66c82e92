"""What one process has decoded of the tree: folders, registries, and which folder holds which entry.

It follows the log: only registries named by new records are read again, and of those only what was appended. It is
used and refreshed only while the caller holds ``content`` (shared) or ``writer``; all holders at one time see
the same record as the last one, so the lists may change in place between them and never under them.
"""

import bisect
import os

from core import names, safe_open
from core.log import get_logger
from core.types import FolderRef
from kb import registry
from kb.registry import EntryLine, FolderLine, Line, LiveLines, OwnLine, SnapshotLine, TombstoneLine
from kb.store.faults import MediaFault
from kb.store.layout import CONTENT, Layout
from kb.store.marks import Mark
from kb.store.segments import Segments

log = get_logger(__name__)


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


class Index:
    """The decoded tree of one organization in this process, as of record ``mark.lsn``."""

    def __init__(self, layout: Layout, segments: Segments) -> None:
        self._layout = layout
        self._segments = segments
        self.mark: Mark | None = None
        self.registries: dict[str, FolderRegistry] = {}
        self.root_id = ""
        self._folder_ids: dict[str, str] = {}
        self._entry_folders: dict[str, str] = {}

    def refresh(self, mark: Mark) -> None:
        """Follow the log to ``mark``. Raises MediaFault where a registry cannot be read."""
        if self.mark == mark:
            return
        try:
            if self.mark is None or not self._follow(self.mark, mark):
                self._load_all()
        except registry.DamagedRegistry as error:
            self.mark = None
            raise MediaFault(f"a registry is damaged: {error}") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            self.mark = None
            raise MediaFault("a registry or folder is missing") from error
        except BaseException:
            self.mark = None
            raise
        self.mark = mark

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
                touched.update(path[1:-1] for path in head.paths if path[-1] == registry.REGISTRY_NAME)
        except FileNotFoundError:
            return False
        # A new folder's parent comes first, so its own registry is loaded through the parent's new line.
        for path in sorted(touched, key=len):
            folder = self.folder_at(list(path))
            if folder is not None:
                self._reload(folder)
        return True

    def _load_all(self) -> None:
        self.registries.clear()
        self._folder_ids.clear()
        self._entry_folders.clear()
        self.root_id = ""
        self._load([FolderRef(id="", path="", lineage=())])
        self.root_id = self._folder_ids[""]

    def _load(self, pending: list[FolderRef]) -> None:
        # A list and no recursion: a path may be hundreds of folders deep.
        while pending:
            pending.extend(self._load_one(pending.pop()))

    def _load_one(self, folder: FolderRef) -> list[FolderRef]:
        data = self._read(folder, 0)
        loaded = FolderRegistry(folder, data[: registry.KEY_BYTES].split(b"\n")[0])
        lines = registry.decode_lines(data)
        if not lines or not isinstance(lines[0], SnapshotLine):
            raise registry.DamagedRegistry("the first line is not a snapshot")
        if folder.id == "":
            own = next((line for line in lines if isinstance(line, OwnLine)), None)
            if own is None:
                raise registry.DamagedRegistry("the root's own line is missing")
            loaded.folder = FolderRef(id=own.id, path="", lineage=(own.id,))
        self.registries[loaded.folder.id] = loaded
        self._folder_ids[names.fold(folder.path)] = loaded.folder.id
        new_children = self._take(loaded, lines, len(data))
        if loaded.own is None or loaded.own.id != loaded.folder.id:
            raise registry.DamagedRegistry("a registry belongs to another folder")
        return new_children

    def _reload(self, known: FolderRegistry) -> None:
        size, key = self._stamp(known.folder)
        if key == known.key and size >= known.size:
            if size > known.size:
                lines = registry.decode_lines(self._read(known.folder, known.size))
                self._load(self._take(known, lines, size))
            return
        for entry_id in known.entries:
            del self._entry_folders[entry_id]
        data = self._read(known.folder, 0)
        fresh = FolderRegistry(known.folder, data[: registry.KEY_BYTES].split(b"\n")[0])
        self.registries[known.folder.id] = fresh
        self._load(self._take(fresh, registry.decode_lines(data), len(data)))

    def _take(self, target: FolderRegistry, lines: list[SnapshotLine | Line], size: int) -> list[FolderRef]:
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
        components = folder.path.split("/") if folder.path else []
        directory = safe_open.open_directory(self._layout.root, (CONTENT, *components))
        try:
            return safe_open.open_file(directory, registry.REGISTRY_NAME)
        finally:
            os.close(directory)

    def _read(self, folder: FolderRef, offset: int) -> bytes:
        descriptor = self._open(folder)
        try:
            return safe_open.read_all(descriptor, offset)
        finally:
            os.close(descriptor)

    def _stamp(self, folder: FolderRef) -> tuple[int, bytes]:
        descriptor = self._open(folder)
        try:
            head = os.pread(descriptor, registry.KEY_BYTES, 0)
            return os.fstat(descriptor).st_size, head.split(b"\n")[0]
        finally:
            os.close(descriptor)
