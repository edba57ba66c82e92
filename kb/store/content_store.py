"""The content store of one organization: whole views for reading, one transaction at a time for changing.

The only door to content. It knows folders, entries and log records, and no people: who may do what is judged by the
caller, inside the view or transaction, so that the judgement still holds at the save.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from core import claims, clock, limits, locks
from core.errors import StorageUnavailable
from core.locks import FileLock, Rank, WriterQueue
from core.log import get_logger
from core.types import SYSTEM_ACTOR, Actor, FolderRef, MutationRequest
from kb import registry
from kb.registry import EntryLine, FolderLine, Line, OwnLine, SnapshotLine, TombstoneLine
from kb.store import applying, checkpoint, faults, outcomes, record, recovery, steps
from kb.store.faults import MediaFault
from kb.store.images import DamagedEntry, Images
from kb.store.index import Added, Appended, FolderRegistry, Index
from kb.store.layout import CONTENT, Layout
from kb.store.marks import Mark
from kb.store.outcomes import Outcome
from kb.store.record import Append, Cause, MakeFolder, Operation, Put, Remove, Subject
from kb.store.segments import Segments

log = get_logger(__name__)

SEGMENT_BYTES = 64 * limits.MIB
FREE_BYTES_MIN = 64 * limits.MIB
FREE_INODES_MIN = 64
CONTENT_WAIT_SECONDS = 10.0
RECOVERY_TRIES = 5
COMPACT_SLACK_LINES = 64


# Set once a sync of the tree failed in this process: from then on it makes no checkpoints, for no organization.
_sync_failed = threading.Event()


@dataclass(frozen=True, slots=True)
class Behind:
    """How far the tree on the disk is behind the log: what a start after a crash would replay.

    ``seconds`` is how long this process has known of something that no checkpoint has made durable yet.
    """

    records: int
    bytes: int
    seconds: float


class View:
    """One whole state of the tree. Good only inside the block that gave it."""

    def __init__(self, layout: Layout, index: Index) -> None:
        self._layout = layout
        self._index = index
        self._images = Images(layout)

    @property
    def lsn(self) -> int:
        """The record that led to this state."""
        assert self._index.mark is not None
        return self._index.mark.lsn

    @property
    def mark(self) -> Mark:
        """How far the log led to this state."""
        assert self._index.mark is not None
        return self._index.mark

    @property
    def root(self) -> FolderRegistry:
        """The organization's root folder."""
        return self._index.registries[self._index.root_id]

    @property
    def ever_backed_up(self) -> bool:
        """Whether the organization has backup history, so that deleted paths stay reserved."""
        own = self.root.own
        return own is not None and own.ever_backed_up

    def folder(self, folder_id: str) -> FolderRegistry | None:
        """The folder with this id."""
        return self._index.folder(folder_id)

    def folder_at(self, components: list[str]) -> FolderRegistry | None:
        """The folder with this path, without regard to case."""
        return self._index.folder_at(components)

    def folder_of_entry(self, entry_id: str) -> FolderRegistry | None:
        """The folder that holds the live entry with this id."""
        return self._index.folder_of_entry(entry_id)

    def read_content(self, folder: FolderRef, entry: EntryLine) -> bytes:
        """The entry's bytes, proved against its registry line. Raises DamagedEntry."""
        return self._images.read(folder, entry)

    def close(self) -> None:
        """The end of the block that gave the view."""
        self._images.close()

    def outcome_of(self, request: MutationRequest) -> Outcome | None:
        """What this request led to in the last seven days."""
        return outcomes.read(self._layout, request.key, days=limits.OUTCOME_DAYS)


class Transaction(View):
    """The state under ``writer`` and the changes to it. Nothing is written before ``commit``."""

    def __init__(self, store: "ContentStore", layout: Layout, index: Index, *, time: str) -> None:
        super().__init__(layout, index)
        self._store = store
        self.lsn_of_change = self.lsn + 1
        self.time = time
        self._operations: list[Operation] = []
        self._appended: dict[str, list[Line]] = {}
        self._new_folders: dict[str, tuple[FolderRef, list[Line]]] = {}
        self._outcome: tuple[MutationRequest, Outcome] | None = None
        self.content_bytes = 0

    def add_folder(self, parent: FolderRef, line: FolderLine) -> FolderRef:
        """A new folder, which may stand in one that this transaction makes."""
        path = f"{parent.path}/{line.name}" if parent.path else line.name
        folder = FolderRef(line.id, path, (*parent.lineage, line.id))
        self._operations.append(MakeFolder((CONTENT, *_components(folder))))
        self._new_folders[line.id] = (folder, [OwnLine(lsn=self.lsn_of_change, id=line.id)])
        self._add_line(parent, line)
        return folder

    def save_entry(self, folder: FolderRef, line: EntryLine, content: bytes | None) -> None:
        """A new or changed entry; ``content`` is None where only metadata changed."""
        if content is not None:
            self.content_bytes += len(content)
            self._operations.append(Put((CONTENT, *_components(folder), line.name), content))
        self._add_line(folder, line)

    def remove_entry(self, folder: FolderRef, line: TombstoneLine) -> None:
        """Remove a live entry and keep its tombstone."""
        self._operations.append(Remove((CONTENT, *_components(folder), line.name)))
        self._add_line(folder, line)

    def keep_outcome(self, request: MutationRequest, outcome: Outcome) -> None:
        """Let the request's outcome be part of the change."""
        self._outcome = (request, outcome)

    def commit(
        self, action: str, actor: Actor, subjects: Sequence[Subject], *, reason: str | None = None
    ) -> None:
        """Make the change durable and visible, as one record.

        Raises StorageUnavailable: nothing changed, or the same request id will tell.
        """
        added, appended, registries = self._encoded()
        operations = [*self._operations, *registries]
        request: MutationRequest | None = None
        if self._outcome is not None:
            request, outcome = self._outcome
            operations.append(Put(outcomes.outcome_path(request.key), outcomes.encode(outcome)))
        cause = Cause(
            action=action,
            time=self.time,
            actor=actor,
            subjects=tuple(subjects),
            request_key=request.key if request else None,
            arguments_hash=request.arguments_hash if request else None,
            reason=reason,
        )
        before = self.mark
        end = self._store.append(cause, operations)
        self._store.take_over(before, end, self.time, added, appended)

    def changed_folders(self) -> list[str]:
        """The ids of the folders that were there before and have new lines."""
        return list(self._appended)

    def _add_line(self, folder: FolderRef, line: Line) -> None:
        if folder.id in self._new_folders:
            self._new_folders[folder.id][1].append(line)
        else:
            self._appended.setdefault(folder.id, []).append(line)

    def _encoded(self) -> tuple[list[Added], list[Appended], list[Operation]]:
        """The registries as they change: in memory twice, and as operations."""
        added, appended, operations = [], [], list[Operation]()
        for folder, own_lines in self._new_folders.values():
            lines = [SnapshotLine(lsn=self.lsn_of_change), *own_lines]
            data = registry.encode_lines(lines)
            added.append(Added(folder, data, lines))
            operations.append(Put((CONTENT, *_components(folder), registry.REGISTRY_NAME), data))
        for folder_id, new_lines in self._appended.items():
            known = self._index.registries[folder_id]
            data = registry.encode_lines(new_lines)
            appended.append(Appended(folder_id, new_lines, len(data)))
            path = (CONTENT, *_components(known.folder), registry.REGISTRY_NAME)
            operations.append(Append(path, known.size, data))
        return added, appended, operations


class ContentStore:
    """One organization's store in this process; any thread may use it. Opened by ``kb.store.stores``."""

    def __init__(self, layout: Layout, queue: WriterQueue) -> None:
        self.layout = layout
        self._queue = queue
        self._segments = Segments(layout)
        self._index = Index(layout, Segments(layout))
        self._index_lock = threading.Lock()
        self._start_lock = threading.Lock()
        self._alive: FileLock | None = None
        self._since_checkpoint = [0, 0]
        # When this process last saw that everything up to a moment before was durable; at first, when it came.
        self._durable_at = clock.monotonic()
        self._checkpoint_due = threading.Event()
        self._closing = threading.Event()
        self._checkpointer: threading.Thread | None = None
        self._before_close: list[Callable[[], None]] = []

    # -- reading --------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[View]:
        """One whole state, held still for the length of the block: copy what is needed, then leave.

        Raises StorageUnavailable.
        """
        with self.still() as applied:
            self._refresh(applied)
            view = View(self.layout, self._index)
            try:
                yield view
            finally:
                view.close()

    @contextmanager
    def still(self) -> Iterator[Mark]:
        """Hold the tree still and tell how far it follows the log, without decoding anything: for checks and copies.

        Raises StorageUnavailable.
        """
        self._start()
        for _ in range(RECOVERY_TRIES):
            with self._faults_refused():
                with locks.hold_content(self.layout.locks, shared=True, wait_seconds=CONTENT_WAIT_SECONDS):
                    applied = self.layout.read_applied()
                    if applied is not None and applied.is_whole:
                        yield applied
                        return
                # The writer died on the way: finish its record, then look again.
                with self._queue.hold():
                    recovery.recover(self.layout, self._segments, from_checkpoint=False)
        raise StorageUnavailable

    @contextmanager
    def images(self) -> Iterator[Images]:
        """Read entries without holding anything: one that has changed or gone meanwhile is a DamagedEntry."""
        images = Images(self.layout)
        try:
            yield images
        finally:
            images.close()

    def _refresh(self, applied: Mark) -> bool:
        """Let the index follow; False where it found damage, which is marked, though reading can go on."""
        with self._index_lock:
            self._index.refresh(applied)
            damage = self._index.take_damage()
        if damage is not None:
            faults.mark(self.layout, damage)
        return damage is None

    # -- changing -------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """The right to change the tree; one holder at a time in all processes. Without ``commit`` nothing changes.

        Raises StorageUnavailable.
        """
        with self.writing() as applied:
            if not self._refresh(applied):
                raise StorageUnavailable
            transaction = Transaction(self, self.layout, self._index, time=self._next_time(applied))
            try:
                yield transaction
            finally:
                transaction.close()
            self._compact(transaction)

    @contextmanager
    def writing(self) -> Iterator[Mark]:
        """Hold ``writer`` with the tree brought to the end of the log, without decoding anything: for upkeep.

        Raises StorageUnavailable, also where a media fault is marked.
        """
        self._start()
        with self._queue.hold(), self._faults_refused():
            if faults.is_marked(self.layout):
                raise StorageUnavailable
            yield recovery.recover(self.layout, self._segments, from_checkpoint=False)

    @contextmanager
    def claim(self, request: MutationRequest) -> Iterator[None]:
        """Be the one call that works on this request. Raises RequestInProgress, StorageUnavailable."""
        with self._faults_refused(), claims.hold_claim(self.layout.private, request.key):
            yield

    def take_over(
        self, before: Mark, end: Mark, time: str, added: Sequence[Added], appended: Sequence[Appended]
    ) -> None:
        """Let the index follow a record that this process just made, unless a reader has led it there already."""
        with self._index_lock:
            self._index.take_over(before, end, time, added, appended)

    def append(self, cause: Cause, operations: Sequence[Operation], *, new_segment: bool = False) -> Mark:
        """Append one record and carry it out; returns the mark behind it.

        The caller holds ``writer`` and has recovered. ``new_segment`` lets the record begin a segment, so that nobody
        appends to the one before any more.

        Raises OSError, LockBusy, StorageUnavailable.
        """
        applied = self.layout.read_applied()
        assert applied is not None
        lsn = applied.lsn + 1
        data = record.encode(lsn, cause, operations)
        self._refuse_without_room(len(data), len(operations))
        staged = applying.stage(self.layout, lsn, operations)
        end = self._append_bytes(applied, lsn, data, staged, new_segment=new_segment)
        with locks.hold_content(self.layout.locks, shared=False, wait_seconds=CONTENT_WAIT_SECONDS):
            applying.write_applied(self.layout, applied.while_applying(lsn))
            applying.apply(self.layout, lsn, operations, staged=staged)
            applying.write_applied(self.layout, end)
        self._count(len(data))
        return end

    def _append_bytes(
        self, applied: Mark, lsn: int, data: bytes, staged: set[str], *, new_segment: bool
    ) -> Mark:
        segment, offset = applied.segment, applied.offset
        try:
            if offset > 0 and (new_segment or offset + len(data) > SEGMENT_BYTES):
                segment, offset = lsn, 0
                descriptor = self._segments.begin(segment)
            else:
                descriptor = self._segments.for_appending(segment)
            try:
                steps.write_at(descriptor, offset, data, recovery.LOG_PLACE)
            except OSError:
                # Cut back, the record never was: a definite refusal. If that fails too, recovery judges it.
                steps.truncate(descriptor, offset, recovery.LOG_PLACE)
                raise
        except OSError:
            applying.unstage(self.layout, staged)
            raise
        steps.sync_data(descriptor, recovery.LOG_PLACE)
        if offset == 0:
            self._segments.sync_directory()
        return Mark(lsn, segment, offset + len(data), lsn)

    def _refuse_without_room(self, record_bytes: int, operations: int) -> None:
        status = os.fstatvfs(self.layout.root)
        free = status.f_bavail * status.f_frsize
        short_of_inodes = status.f_files > 0 and status.f_favail < operations + FREE_INODES_MIN
        if free < 2 * record_bytes + FREE_BYTES_MIN or short_of_inodes:
            log.error("the disk is nearly full: writes are refused", free_bytes=free)
            raise StorageUnavailable

    def _next_time(self, applied: Mark) -> str:
        # Others may have saved since, by a clock that was ahead of ours.
        with self._index_lock:
            if self._index.time is None:
                self._index.time = self._time_of_last_record(applied)
            return max(clock.timestamp(), self._index.time)

    def _time_of_last_record(self, applied: Mark) -> str:
        # The newest segment may be empty, then the one before it holds the last record.
        first = max((lsn for lsn in self._segments.first_lsns() if lsn <= applied.lsn), default=0)
        if first == 0:
            return ""
        start = Mark(first - 1, first, 0, first - 1)
        return max((head.cause.time for head in self._segments.heads(start, applied)), default="")

    def _compact(self, transaction: Transaction) -> None:
        for folder_id in transaction.changed_folders():
            known = self._index.folder(folder_id)
            if known is None or known.line_count <= 2 * known.live_count + COMPACT_SLACK_LINES:
                continue
            try:
                self._compact_one(folder_id)
            except (OSError, MediaFault, locks.LockBusy, StorageUnavailable):
                # The save itself is done; a longer registry does no harm.
                log.warning("a registry could not be compacted", folder=folder_id)
                return

    def _compact_one(self, folder_id: str) -> None:
        applied = self.layout.read_applied()
        if applied is None or not applied.is_whole or not self._refresh(applied):
            return
        known = self._index.registries[folder_id]
        path = (CONTENT, *_components(known.folder), registry.REGISTRY_NAME)
        data = registry.encode_snapshot(applied.lsn + 1, known.all_lines())
        subject = Subject(folder_id=folder_id, path=known.folder.path)
        cause = Cause("compact", self._next_time(applied), SYSTEM_ACTOR, (subject,))
        self.append(cause, [Put(path, data)])

    # -- life -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._alive is not None:
            return
        with self._start_lock:
            if self._alive is None:
                self._alive = self._come_alive()
                self._checkpointer = threading.Thread(
                    target=self._keep_checkpoints, name="checkpoints", daemon=True
                )
                self._checkpointer.start()

    def _come_alive(self) -> FileLock:
        with self._queue.hold(), self._faults_refused():
            alone: FileLock | None = None
            try:
                alone = FileLock(self.layout.locks, "alive", Rank.ALIVE).acquire(wait_seconds=0)
            except locks.LockBusy:
                pass
            try:
                recovery.recover(self.layout, self._segments, from_checkpoint=alone is not None)
                # A writer that died before its record was whole left nothing else behind.
                applying.empty_stage(self.layout)
                if alone is not None:
                    checkpoint.forget_unsynced(self.layout)
            except (OSError, MediaFault, locks.LockBusy, StorageUnavailable) as problem:
                self._refuse_unless_whole(problem, alone=alone is not None)
            finally:
                if alone is not None:
                    alone.release()
            alive = FileLock(self.layout.locks, "alive", Rank.ALIVE, shared=True)
            alive.acquire(wait_seconds=CONTENT_WAIT_SECONDS)
            alive.keep()
            return alive

    def _refuse_unless_whole(self, problem: Exception, *, alone: bool) -> None:
        # Others have kept the tree whole since the last stop: reads can go on with the old state.
        if isinstance(problem, MediaFault):
            faults.mark(self.layout, problem)
        applied = self.layout.read_applied()
        if alone or applied is None or not applied.is_whole:
            raise problem
        log.error("the store could not recover and serves the last whole state", problem=str(problem))

    def _count(self, record_bytes: int) -> None:
        self._since_checkpoint[0] += 1
        self._since_checkpoint[1] += record_bytes
        if (
            self._since_checkpoint[0] >= checkpoint.RECORDS_MAX
            or self._since_checkpoint[1] >= checkpoint.BYTES_MAX
        ):
            self._checkpoint_due.set()

    def _keep_checkpoints(self) -> None:
        while not self._closing.is_set():
            self._checkpoint_due.wait(checkpoint.SECONDS_MAX)
            self._checkpoint_due.clear()
            if not self._closing.is_set():
                self.checkpoint()

    def checkpoint(self, *, wait_seconds: float = 0) -> None:
        """Make the tree durable now, as far as it goes. A failure is logged: the replay only gets longer."""
        self._since_checkpoint = [0, 0]
        if _sync_failed.is_set():
            return
        try:
            applied = self.layout.read_applied()
            checkpoint.make_checkpoint(self.layout, wait_seconds=wait_seconds)
            # Perhaps another process made it.
            durable = self.layout.read_checkpoint()
            if applied is not None and durable is not None and durable.lsn >= applied.lsn:
                self._durable_at = clock.monotonic()
        except checkpoint.TreeNotDurable:
            log.error("the disk could not keep the tree: there are no more checkpoints before a new start")
            _sync_failed.set()
        except (MediaFault, locks.LockBusy) as problem:
            log.error("a checkpoint failed", problem=type(problem).__name__)
        except OSError as error:
            log.error("a checkpoint failed", problem=_errno_name(error))

    def behind_checkpoint(self) -> Behind:
        """How far the tree on the disk is behind the log. Raises StorageUnavailable where a mark cannot be read."""
        applied, durable = self.layout.read_applied(), self.layout.read_checkpoint()
        if applied is None or durable is None:
            raise StorageUnavailable
        if applied.lsn == durable.lsn:
            return Behind(0, 0, 0)
        begun = [first for first in self._segments.first_lsns() if durable.segment <= first < applied.segment]
        size = sum(self._segments.size_of(first) for first in begun) + applied.offset - durable.offset
        return Behind(applied.lsn - durable.lsn, size, clock.monotonic() - self._durable_at)

    def records_behind_checkpoint(self) -> int:
        """How many records a start after a crash would replay. Raises StorageUnavailable."""
        return self.behind_checkpoint().records

    def before_close(self, act: Callable[[], None]) -> None:
        """Have something done when the store is closed, before its files are let go."""
        self._before_close.append(act)

    def close(self) -> None:
        """Stop cleanly: checkpoint, and let go of everything."""
        for act in self._before_close:
            act()
        self._closing.set()
        self._checkpoint_due.set()
        if self._checkpointer is not None:
            self._checkpointer.join()
            # Another process that stops at the same time may be at it, without our last record.
            self.checkpoint(wait_seconds=CONTENT_WAIT_SECONDS)
        if self._alive is not None:
            self._alive.drop_kept()
            self._alive = None
        self._segments.close()
        self.layout.close()

    @contextmanager
    def _faults_refused(self) -> Iterator[None]:
        try:
            yield
        except MediaFault as fault:
            faults.mark(self.layout, fault)
            raise StorageUnavailable from fault
        except DamagedEntry as damaged:
            log.error("an entry is damaged", organization=self.layout.organization_id, entry=str(damaged))
            raise StorageUnavailable from damaged
        except locks.LockBusy as busy:
            raise StorageUnavailable from busy
        except OSError as error:
            log.error("the disk refused", problem=_errno_name(error))
            raise StorageUnavailable from error


def _errno_name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "unknown")


def _components(folder: FolderRef) -> list[str]:
    return folder.path.split("/") if folder.path else []
