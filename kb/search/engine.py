"""Where to look for a query: the current pack, and the entries that changed since it was made.

One engine for each organization and process. It follows the log up to the state that is being read and never further,
so a save counts for the next search, wherever it was made. Building a pack never stops anybody: the list of entries is
taken under one hold, their texts are read after it, and what changed meanwhile stands in the log behind the pack.
"""

import heapq
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from access.authorizer import Sight
from access.principals import system_principal
from core import locks
from core.errors import StorageUnavailable
from core.log import get_logger
from core.types import FolderRef
from kb.folders import VisibleFolders, place_of_entry
from kb.registry import EntryLine
from kb.search.pack import SUFFIX, DamagedPack, Pack, PackedText, pack_name, text_of, write_pack
from kb.search.query import Query
from kb.store import derived
from kb.store.content_store import ContentStore, View
from kb.store.images import DamagedEntry
from kb.store.index import FolderRegistry
from kb.store.marks import Mark
from kb.store.segments import Segments

log = get_logger(__name__)

# Beyond either of these a new pack is made beside the old one.
OVERLAY_MAX_ENTRIES = 1_000
OVERLAY_MAX_BYTES = 4 * 1024 * 1024
FIRST_PACK_WAIT_SECONDS = 60.0

Located = tuple[FolderRef, EntryLine]


@dataclass(slots=True)
class Overlay:
    """What changed behind the pack, up to ``mark``: ids of entries that were saved or deleted.

    ``texts`` are those of the saved ones, folded, by entry id; of the ``unread`` ones they have still to be read.
    """

    mark: Mark
    changed: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    texts: dict[str, bytes] = field(default_factory=dict)
    bytes: int = 0
    has_deletions: bool = False

    def take(self, entry_id: str, *, is_deleted: bool) -> None:
        """Let a change of an entry count."""
        self.changed.add(entry_id)
        self.unread.add(entry_id)
        self.bytes -= len(self.texts.pop(entry_id, b""))
        self.has_deletions |= is_deleted


class SearchEngine:
    """Finds candidates; the caller compares them with the live entries."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._pack: Pack | None = None
        self._overlay: Overlay | None = None
        self._builder: threading.Thread | None = None

    def prepare(self) -> None:
        """Have a pack, making the first one now. To be called before the state to be searched is held.

        Raises StorageUnavailable.
        """
        with self._lock:
            if self._has_good_pack():
                return
        self._build(wait_seconds=FIRST_PACK_WAIT_SECONDS)

    def candidates(
        self, view: View, visible: VisibleFolders, start: FolderRegistry, query: Query, after: str
    ) -> Iterator[Located]:
        """The entries below ``start`` that may match, in path order behind the place ``after``.

        Raises StorageUnavailable where there is no pack any more: prepare and try again.
        """
        with self._lock:
            # Another process may have replaced the file, or removed it; it is still what was mapped.
            if self._pack is None or not self._pack.file.is_as_mapped():
                raise StorageUnavailable
            pack, overlay = self._follow(view)
            packed = self._packed(pack, set(overlay.changed), view, visible, start, query, after)
            changed = self._changed(overlay, view, visible, start, query, after)
        return heapq.merge(packed, changed, key=lambda located: place_of_entry(*located))

    def close(self) -> None:
        """Wait for the builder, if one is at work."""
        builder = self._builder
        if builder is not None:
            builder.join()

    # -- the pack -----------------------------------------------------------------------------------------

    def _has_good_pack(self) -> bool:
        newest = derived.derived_names(self._store.layout, SUFFIX)
        if self._pack is not None:
            if self._pack.file.is_as_mapped() and newest and newest[-1] <= pack_name(self._pack.lsn):
                return True
            self._pack, self._overlay = None, None
        return bool(newest) and self._open(newest[-1])

    def _open(self, name: str) -> bool:
        try:
            file = derived.map_derived(self._store.layout, name)
        except (FileNotFoundError, ValueError):
            derived.remove_derived(self._store.layout, name)
            return False
        try:
            pack = Pack(file)
            mark = self._mark_of(pack.lsn)
        except DamagedPack:
            mark = None
        if mark is None:
            log.warning("a search pack is damaged or too old and is made again")
            derived.remove_derived(self._store.layout, name)
            return False
        self._pack, self._overlay = pack, Overlay(mark)
        return True

    def _mark_of(self, lsn: int) -> Mark | None:
        """The place in the log behind record ``lsn``; None where the log no longer goes back so far."""
        segments = Segments(self._store.layout)
        begun = [first for first in segments.first_lsns() if first <= lsn + 1]
        if not begun:
            return None
        # From the beginning of its segment on: heads are followed once, payloads are not read.
        return Mark(lsn=begun[-1] - 1, segment=begun[-1], offset=0, applying=begun[-1] - 1)

    def _build(self, *, wait_seconds: float) -> None:
        layout = self._store.layout
        try:
            with derived.hold_building(layout, wait_seconds=wait_seconds):
                with self._lock:
                    if wait_seconds and self._has_good_pack():
                        return
                with self._store.snapshot() as view:
                    lsn = view.lsn
                    entries = list(_everything(view, layout.organization_id))
                derived.write_derived(
                    layout,
                    pack_name(lsn),
                    lambda descriptor: write_pack(descriptor, lsn, self._texts(entries)),
                )
                for name in derived.derived_names(layout, SUFFIX)[:-1]:
                    derived.remove_derived(layout, name)
        except locks.LockBusy as busy:
            raise StorageUnavailable from busy
        except OSError as error:
            log.error("a search pack could not be written", exc_info=error)
            raise StorageUnavailable from error
        with self._lock:
            self._has_good_pack()

    def _texts(self, entries: Sequence[Located]) -> Iterator[PackedText]:
        with self._store.images() as images:
            for folder, entry in entries:
                try:
                    content = images.read(folder, entry)
                except DamagedEntry:
                    # Changed or deleted since the list was taken, so it stands in the log behind the pack; or
                    # damaged, and then nobody can read it. Its name keeps its place.
                    content = b""
                yield PackedText(folder, entry, text_of(entry, content.decode()))

    def _build_beside(self) -> None:
        def build() -> None:
            try:
                self._build(wait_seconds=0)
            except StorageUnavailable:
                # Somebody else is at it, or the disk is full. The old pack and the overlay go on serving.
                pass
            finally:
                self._builder = None

        if self._builder is None:
            self._builder = threading.Thread(target=build, name="search pack", daemon=True)
            self._builder.start()

    # -- the overlay --------------------------------------------------------------------------------------

    def _follow(self, view: View) -> tuple[Pack, Overlay]:
        pack, overlay = self._pack, self._overlay
        assert pack is not None
        assert overlay is not None
        if overlay.mark.lsn < view.mark.lsn:
            for head in Segments(self._store.layout).heads(overlay.mark, view.mark):
                if head.lsn <= pack.lsn:
                    continue
                for subject in head.cause.subjects:
                    if subject.entry_id is not None:
                        overlay.take(subject.entry_id, is_deleted=head.cause.action == "delete")
                if head.cause.action == "repair":
                    # A repair names no subjects: everything may have changed.
                    self._pack, self._overlay = None, None
                    for name in derived.derived_names(self._store.layout, SUFFIX):
                        derived.remove_derived(self._store.layout, name)
                    raise StorageUnavailable
            overlay.mark = view.mark
        if (
            len(overlay.changed) > OVERLAY_MAX_ENTRIES
            or overlay.bytes > OVERLAY_MAX_BYTES
            or overlay.has_deletions
        ):
            self._build_beside()
        return pack, overlay

    def _packed(
        self,
        pack: Pack,
        changed: set[str],
        view: View,
        visible: VisibleFolders,
        start: FolderRegistry,
        query: Query,
        after: str,
    ) -> Iterator[Located]:
        first = pack.first_behind(after, partial(_path_of, view))
        runs = []
        for top in visible.readable_tops(start):
            low, high = pack.run_of(top.folder.id)
            if max(low, first) < high:
                runs.append((max(low, first), high))
        for number in pack.find(query.folded, runs):
            entry_id = pack.entry_id(number)
            if entry_id in changed:
                continue
            folder = view.folder_of_entry(entry_id)
            if folder is not None:
                yield folder.folder, folder.entries[entry_id]

    def _changed(
        self,
        overlay: Overlay,
        view: View,
        visible: VisibleFolders,
        start: FolderRegistry,
        query: Query,
        after: str,
    ) -> list[Located]:
        self._complete(overlay, view)
        found = []
        for entry_id, text in overlay.texts.items():
            if query.folded not in text:
                continue
            folder = view.folder_of_entry(entry_id)
            if folder is None or start.folder.id not in folder.folder.lineage:
                continue
            entry = folder.entries[entry_id]
            if visible.role_on(folder.folder) is not None and place_of_entry(folder.folder, entry) > after:
                found.append((folder.folder, entry))
        return sorted(found, key=lambda located: place_of_entry(*located))

    def _complete(self, overlay: Overlay, view: View) -> None:
        """Read what was saved since the last search."""
        with self._store.images() as images:
            for entry_id in list(overlay.unread):
                folder = view.folder_of_entry(entry_id)
                if folder is not None:
                    entry = folder.entries[entry_id]
                    try:
                        text = text_of(entry, images.read(folder.folder, entry).decode())
                    except DamagedEntry:
                        text = b""
                    overlay.texts[entry_id] = text
                    overlay.bytes += len(text)
                # Not before: what could not be read now is read by the next search.
                overlay.unread.discard(entry_id)


def _everything(view: View, organization_id: str) -> Iterator[Located]:
    sight = Sight(system_principal(organization_id), is_alive=True, is_owner_everywhere=True)
    return VisibleFolders(view, sight).entries(view.root, "", recursive=True)


def _path_of(view: View, folder_id: str) -> str:
    folder = view.folder(folder_id)
    return folder.folder.path if folder is not None else ""
