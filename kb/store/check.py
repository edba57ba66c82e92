"""Comparing an organization's files, registries and log with each other, while people go on working.

Each folder is looked at under one hold of the content lock, together with what the log says at that moment; between
two folders others may save.
"""

import os
from dataclasses import dataclass, field

from core import ids, locks, safe_open
from core.errors import StorageUnavailable
from core.progress import SILENT, Progress
from kb import registry
from kb.registry import EntryLine
from kb.store import checkpoint, faults, fold, outcomes, reserve, upkeep
from kb.store.content_store import ContentStore
from kb.store.layout import CONTENT, FAULT, OUTCOMES, PRIVATE, RESERVE, Layout, segment_name
from kb.store.marks import Mark

Components = tuple[str, ...]
UPKEEP_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Something that is not as it should be. ``place`` is a path below the organization's directory."""

    place: str
    what: str


@dataclass(slots=True)
class CheckReport:
    """What a check found. ``notes`` are facts that nothing is wrong with."""

    disagreements: list[Disagreement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    folder_ids: set[str] = field(default_factory=set)
    folders: int = 0
    entries: int = 0
    content_bytes: int = 0
    records: int = 0
    first_record: int = 0

    def add(self, place: str, what: str) -> None:
        """Note one disagreement."""
        self.disagreements.append(Disagreement(place, what))


def check(store: ContentStore, progress: Progress = SILENT) -> CheckReport:
    """Compare everything. Changes nothing.

    Where no whole state can be reached, only marks and log are told of. Raises StorageUnavailable where these do not
    tell why, and where history is shortened for a minute or more.
    """
    try:
        with upkeep.hold_upkeep(store.layout, wait_seconds=UPKEEP_WAIT_SECONDS):
            return _check(store, progress)
    except locks.LockBusy as busy:
        raise StorageUnavailable from busy


def _check(store: ContentStore, progress: Progress) -> CheckReport:
    report = CheckReport()
    layout = store.layout
    _check_marks(layout, report)
    try:
        with store.still() as applied:
            start = applied
    except StorageUnavailable:
        _check_log_alone(layout, report, progress)
        if not report.disagreements:
            raise
        return report
    _check_fault(layout, report)
    progress.begin("Reading the log", start.lsn)
    account = fold.fold_log(layout, up_to=start.lsn, progress=progress)
    _check_log(account, start, report)
    progress.begin("Comparing folders", sum(path[-1] == registry.REGISTRY_NAME for path in account.files))
    pending: list[Components] = [()]
    while pending:
        components = pending.pop()
        with store.still() as applied:
            fold.follow(layout, account, start, applied)
            start = applied
            pending.extend(FolderCheck(layout, account, report).check(components))
        progress.advance()
    _check_outcomes(layout, report)
    _note_reserve(layout, report)
    report.records, report.first_record = account.records, account.first_lsn
    return report


class FolderCheck:
    """The comparison of one folder with its registry and the log."""

    def __init__(self, layout: Layout, account: fold.Fold, report: CheckReport) -> None:
        self._layout = layout
        self._account = account
        self._report = report

    def check(self, components: Components) -> list[Components]:
        """Compare the folder; returns the child folders that its registry names."""
        place = "/".join((CONTENT, *components))
        self._report.folders += 1
        try:
            directory = safe_open.open_directory(self._layout.root, (CONTENT, *components))
        except OSError:
            self._report.add(place, "the folder is missing or cannot be opened")
            return []
        try:
            return self._check_open(directory, place, components)
        finally:
            os.close(directory)

    def _check_open(self, directory: int, place: str, components: Components) -> list[Components]:
        try:
            data = safe_open.read_file(directory, (registry.REGISTRY_NAME,))
            lines = registry.decode_lines(data)
        except OSError:
            self._report.add(f"{place}/{registry.REGISTRY_NAME}", "the registry is missing or cannot be read")
            return []
        except registry.DamagedRegistry as error:
            self._report.add(f"{place}/{registry.REGISTRY_NAME}", f"the registry is damaged: {error}")
            return []
        known = self._account.files.get(fold.registry_path(components))
        if known is not None and not known.matches(data):
            self._report.add(f"{place}/{registry.REGISTRY_NAME}", "the registry is not what the log says")
        live = registry.live(lines)
        if live.own is None:
            self._report.add(f"{place}/{registry.REGISTRY_NAME}", "the registry does not name its folder")
        else:
            self._report.folder_ids.add(live.own.id)
        self._check_names(directory, place, live)
        for entry in live.entries.values():
            self._check_entry(directory, place, entry)
        return [(*components, child.name) for child in live.children.values()]

    def _check_names(self, directory: int, place: str, live: registry.LiveLines) -> None:
        expected = {entry.name for entry in live.entries.values()}
        folders = {child.name for child in live.children.values()}
        for name in sorted(set(os.listdir(directory)) - expected - folders - {registry.REGISTRY_NAME}):
            self._report.add(f"{place}/{name}", "this is in no registry")

    def _check_entry(self, directory: int, place: str, entry: EntryLine) -> None:
        self._report.entries += 1
        try:
            data = safe_open.read_file(directory, (entry.name,))
        except OSError:
            self._report.add(
                f"{place}/{entry.name}", "the entry's file is missing, no regular file, or cannot be read"
            )
            return
        self._report.content_bytes += len(data)
        if ids.sha256_hex(data) != entry.content_hash:
            self._report.add(f"{place}/{entry.name}", "the file is not what its registry says")


def _check_fault(layout: Layout, report: CheckReport) -> None:
    reason = faults.reason_of(layout)
    if reason is not None:
        report.add(
            f"{PRIVATE}/{FAULT}",
            f"a media fault was found here: {reason}. Writes are refused until it is repaired",
        )


def _check_log_alone(layout: Layout, report: CheckReport, progress: Progress) -> None:
    """Tell why no whole state can be reached, as far as marks and log show it: nothing else can be compared then."""
    _check_fault(layout, report)
    progress.begin("Reading the log", 0)
    account = fold.fold_log(layout, progress=progress)
    _check_damages(account, report)
    if report.disagreements:
        report.add(CONTENT, "no whole state can be reached, so the tree was not compared")
    report.records, report.first_record = account.records, account.first_lsn


def _check_marks(layout: Layout, report: CheckReport) -> None:
    applied, durable = layout.read_applied(), layout.read_checkpoint()
    if applied is None:
        report.add(f"{PRIVATE}/applied", "the mark is damaged; the next start replays from the checkpoint")
    if durable is None:
        report.add(f"{PRIVATE}/checkpoint", "the mark is damaged")
    if checkpoint.is_unsynced(layout):
        report.add(
            f"{PRIVATE}/unsynced",
            "the disk failed to keep the tree; look at it, then stop every process and start Brain again: "
            "the start writes everything since the last checkpoint again",
        )
    if applied and durable and durable.lsn > applied.lsn:
        report.add(f"{PRIVATE}/checkpoint", "the checkpoint is ahead of what was applied")


def _check_log(account: fold.Fold, applied: Mark, report: CheckReport) -> None:
    _check_damages(account, report)
    if account.last_lsn < applied.lsn:
        report.add(f"{PRIVATE}/log", f"the log ends at {account.last_lsn}, record {applied.lsn} was applied")
    if account.first_lsn > 1:
        report.notes.append(f"History begins with record {account.first_lsn}; older ones were let go.")


def _check_damages(account: fold.Fold, report: CheckReport) -> None:
    for damage in account.damages:
        report.add(f"{PRIVATE}/log/{segment_name(damage.segment)}", f"at byte {damage.offset}: {damage.what}")


def _check_outcomes(layout: Layout, report: CheckReport) -> None:
    top = safe_open.open_directory(layout.private, (OUTCOMES,))
    try:
        for shard in sorted(os.listdir(top)):
            directory = safe_open.open_directory(top, (shard,))
            try:
                for name in os.listdir(directory):
                    _check_outcome(directory, f"{PRIVATE}/{OUTCOMES}/{shard}", name, report)
            finally:
                os.close(directory)
    finally:
        os.close(top)


def _check_outcome(directory: int, place: str, name: str, report: CheckReport) -> None:
    try:
        outcomes.decode(safe_open.read_file(directory, (name,)))
    except FileNotFoundError:
        # Swept in this moment.
        return
    except (OSError, outcomes.DamagedOutcome):
        report.add(f"{place}/{name}", "this is no outcome of a request")


def _note_reserve(layout: Layout, report: CheckReport) -> None:
    directory = safe_open.open_directory(layout.private, (RESERVE,))
    try:
        missing = reserve.FILES - len(os.listdir(directory))
    finally:
        os.close(directory)
    if missing:
        report.notes.append(
            f"{missing} of {reserve.FILES} reserve files were given up; a checkpoint makes them again."
        )
