"""Putting an organization's tree right again from its log. Nobody else may have the store open.

The log is the truth as far as it can be read; each registry line carries the number of its record, so of all lines
that can be found, in the registry and in the log, the newest of an id counts. An entry's bytes are right when they
have the hash that its line says, wherever they come from. What is left over goes to ``quarantine/``. The repair itself
is made of records, so that log and tree agree afterwards.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from core import clock, ids, locks, safe_open
from core.locks import FileLock, Rank, WriterQueue
from core.progress import SILENT, Progress
from core.types import SYSTEM_ACTOR
from kb import registry
from kb.registry import Line, LiveLines, OwnLine, SnapshotLine, TombstoneLine
from kb.store import applying, checkpoint, faults, fold, outcomes, recovery, steps
from kb.store.content_store import ContentStore
from kb.store.faults import MediaFault
from kb.store.layout import CONTENT, OUTCOMES, PRIVATE, QUARANTINE, Layout
from kb.store.marks import Mark
from kb.store.record import Append, Cause, MakeFolder, Operation, Put
from kb.store.segments import Segments

WAIT_SECONDS = 10.0
# A repair of a large tree is cut into records of about this size.
RECORD_BYTES = 16 * 1024 * 1024

Components = tuple[str, ...]


class StoreInUse(Exception):
    """Another process has the store open."""


class BeyondRepair(Exception):
    """The root folder can be found neither in its registry nor in the log."""


@dataclass(slots=True)
class RepairReport:
    """What was done, in sentences, and what could not be put right: (place, why)."""

    done: list[str] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)


def repair(layout: Layout, progress: Progress = SILENT) -> RepairReport:
    """Rebuild what the log still holds, and let writes be accepted again.

    Raises StoreInUse, BeyondRepair, OSError.
    """
    try:
        with WriterQueue(layout.locks).hold(wait_seconds=WAIT_SECONDS):
            alone = FileLock(layout.locks, "alive", Rank.ALIVE).acquire(wait_seconds=0)
            try:
                return _Repair(layout, progress).run()
            finally:
                alone.release()
    except locks.LockBusy as busy:
        raise StoreInUse from busy


class _Repair:
    def __init__(self, layout: Layout, progress: Progress) -> None:
        self._layout = layout
        self._progress = progress
        self._segments = Segments(layout)
        self._store = ContentStore(layout, WriterQueue(layout.locks))
        self._report = RepairReport()
        self._lines: dict[Components, list[SnapshotLine | Line]] = {}
        self._account = fold.Fold()
        self._outcomes: dict[tuple[str, ...], bytes] = {}
        self._operations: list[Operation] = []
        self._pending_bytes = 0

    def run(self) -> RepairReport:
        self._settle_log()
        self._read_log()
        self._put_folders_right()
        self._put_outcomes_right()
        self._flush()
        applying.empty_stage(self._layout)
        self._make_durable()
        faults.clear(self._layout)
        return self._report

    # -- the log ------------------------------------------------------------------------------------------

    def _settle_log(self) -> None:
        """Bring the marks to a place from which the log counts on."""
        try:
            recovery.recover(self._layout, self._segments, from_checkpoint=True)
        except MediaFault as fault:
            self._begin_anew(fault)
        finally:
            self._segments.close()

    def _begin_anew(self, fault: MediaFault) -> None:
        if fault.segment is not None:
            faults.keep_segment(self._layout, fault.segment)
        marks = [mark for mark in (self._layout.read_applied(), self._layout.read_checkpoint()) if mark]
        seen = [
            found[1].lsn for found in fold.walk_log(self._layout) if not isinstance(found, fold.LogDamage)
        ]
        begun = [first - 1 for first in self._segments.first_lsns()]
        last = max([*(max(mark.lsn, mark.applying) for mark in marks), *seen, *begun])
        if not self._segments.exists(last + 1):
            self._segments.begin(last + 1)
            self._segments.sync_directory()
        mark = Mark(last, last + 1, 0, last)
        # The tree is made right from here on, so it is no worse than unknown up to this place.
        applying.write_applied(self._layout, mark)
        checkpoint.write_checkpoint(self._layout, mark)
        self._report.done.append(f"The log is damaged ({fault.reason}); it goes on with record {last + 1}.")

    def _read_log(self) -> None:
        self._progress.begin("Reading the log", 0)
        for found in fold.walk_log(self._layout):
            self._progress.advance()
            if isinstance(found, fold.LogDamage):
                self._account.damages.append(found)
                continue
            self._account.take(found[1])
            for operation in found[1].operations:
                if not isinstance(operation, Put | Append):
                    continue
                if operation.path[-1] == registry.REGISTRY_NAME:
                    lines = registry.decode_lines(operation.data)
                    self._lines.setdefault(operation.path[1:-1], []).extend(lines)
                elif operation.path[:2] == (PRIVATE, OUTCOMES):
                    self._outcomes[operation.path] = operation.data

    # -- the tree -----------------------------------------------------------------------------------------

    def _put_folders_right(self) -> None:
        wanted: dict[tuple[str, ...], str] = {}
        pending: list[tuple[Components, str | None]] = [((), None)]
        self._progress.begin("Putting folders right", 0)
        while pending:
            self._progress.advance()
            components, folder_id = pending.pop()
            live = self._put_folder_right(components, folder_id)
            pending.extend(((*components, child.name), child.id) for child in live.children.values())
            wanted.update(self._wrong_entries(components, live))
            self._clear_strangers(components, live)
        self._restore_entries(wanted)

    def _put_folder_right(self, components: Components, folder_id: str | None) -> LiveLines:
        place = "/".join((CONTENT, *components))
        data, readable, is_whole = self._read_registry(components)
        if folder_id is not None and _own_id(readable) not in (folder_id, None):
            # Another folder's file, copied here: nothing in it is about this folder.
            readable, is_whole = [], False
        live = _newest([*readable, *self._lines.get(components, [])])
        if live.own is None:
            if folder_id is None:
                raise BeyondRepair
            live.own = OwnLine(lsn=self._next_lsn(), id=folder_id)
        if not self._is_folder(components):
            self._add(MakeFolder((CONTENT, *components)), f"{place}: the folder was made again")
        known = self._account.files.get(fold.registry_path(components))
        agrees = known is None or known.matches(data)
        if not is_whole or not agrees or _facts(registry.live(readable)) != _facts(live):
            # Its own snapshot line must carry the record that writes it, so it goes into a record by itself.
            self._flush()
            written = registry.encode_snapshot(self._next_lsn(), live.all_lines())
            self._add(Put(fold.registry_path(components), written), f"{place}: the registry was written anew")
            self._flush()
        return live

    def _read_registry(self, components: Components) -> tuple[bytes, list[SnapshotLine | Line], bool]:
        """The file's bytes, the lines of it that can be read, and whether these are all."""
        try:
            data = safe_open.read_file(self._layout.root, fold.registry_path(components))
        except OSError:
            return b"", [], False
        try:
            return data, registry.decode_lines(data), True
        except registry.DamagedRegistry:
            return data, list(registry.readable_lines(data)), False

    def _wrong_entries(
        self, components: Components, live: LiveLines
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        for entry in live.entries.values():
            path = (CONTENT, *components, entry.name)
            try:
                data = safe_open.read_file(self._layout.root, path)
            except OSError:
                yield path, entry.content_hash
                continue
            if ids.sha256_hex(data) != entry.content_hash:
                yield path, entry.content_hash

    def _restore_entries(self, wanted: dict[tuple[str, ...], str]) -> None:
        missing = dict(wanted)
        if wanted:
            for path, data in fold.content_in_log(self._layout, wanted):
                if missing.pop(path, None) is not None:
                    self._quarantine(path)
                    self._add(Put(path, data), f"{'/'.join(path)}: restored from the log")
        for path in missing:
            self._quarantine(path)
            self._report.left.append(
                ("/".join(path), "its text is lost: neither the file nor the log has what the registry says")
            )

    def _clear_strangers(self, components: Components, live: LiveLines) -> None:
        if not self._is_folder(components):
            return
        known = {entry.name for entry in live.entries.values()}
        known |= {child.name for child in live.children.values()} | {registry.REGISTRY_NAME}
        directory = safe_open.open_directory(self._layout.root, (CONTENT, *components))
        try:
            strangers = sorted(set(os.listdir(directory)) - known)
        finally:
            os.close(directory)
        for name in strangers:
            self._quarantine((CONTENT, *components, name))

    def _quarantine(self, path: tuple[str, ...]) -> None:
        """Move what stands under a path away. The move is no record: the log never knew of it."""
        try:
            parent = safe_open.open_directory(self._layout.root, path[:-1])
        except FileNotFoundError:
            return
        target = safe_open.open_directory(self._layout.private, (QUARANTINE,))
        kept = f"{clock.now():%Y%m%dT%H%M%S%f}.{path[-1]}"
        try:
            steps.rename(parent, path[-1], target, kept, f"{PRIVATE}/{QUARANTINE}")
        except FileNotFoundError:
            return
        finally:
            os.close(parent)
            os.close(target)
        self._report.done.append(f"{'/'.join(path)}: moved to {PRIVATE}/{QUARANTINE}/{kept}")

    def _is_folder(self, components: Components) -> bool:
        try:
            os.close(safe_open.open_directory(self._layout.root, (CONTENT, *components)))
        except OSError:
            return False
        return True

    # -- outcomes -----------------------------------------------------------------------------------------

    def _put_outcomes_right(self) -> None:
        for path, data in self._outcomes.items():
            try:
                outcomes.decode(safe_open.read_file(self._layout.root, path))
            except FileNotFoundError:
                # Perhaps swept after its seven days; one too many does no harm, one too few might.
                self._add(Put(path, data), None)
            except (OSError, outcomes.DamagedOutcome):
                self._quarantine(path)
                self._add(Put(path, data), f"{'/'.join(path)}: restored from the log")

    # -- records ------------------------------------------------------------------------------------------

    def _next_lsn(self) -> int:
        applied = self._layout.read_applied()
        assert applied is not None
        return applied.lsn + 1

    def _add(self, operation: Operation, done: str | None) -> None:
        self._operations.append(operation)
        if isinstance(operation, Put | Append):
            self._pending_bytes += len(operation.data)
        if done is not None:
            self._report.done.append(done)
        if self._pending_bytes > RECORD_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._operations:
            self._store.append(Cause("repair", clock.timestamp(), SYSTEM_ACTOR), self._operations)
        self._operations, self._pending_bytes = [], 0

    def _make_durable(self) -> None:
        steps.sync_filesystem(self._layout.applied, PRIVATE)
        applied = self._layout.read_applied()
        assert applied is not None
        checkpoint.write_checkpoint(self._layout, applied)


def _own_id(lines: list[SnapshotLine | Line]) -> str | None:
    return next((line.id for line in lines if isinstance(line, OwnLine)), None)


def _newest(lines: list[SnapshotLine | Line]) -> LiveLines:
    """Of all lines of an id the one with the highest number; a tombstone ends its entry for good."""
    live = LiveLines()
    for line in sorted((line for line in lines if not isinstance(line, SnapshotLine)), key=_order):
        live.take(line)
    return live


def _order(line: Line) -> tuple[bool, int]:
    return isinstance(line, TombstoneLine), line.lsn


def _facts(live: LiveLines) -> dict[str, Line]:
    found: dict[str, Line] = {}
    for lines in (live.children, live.entries, live.tombstones):
        found.update(lines)
    return found | ({"": live.own} if live.own else {})
