"""Remove the kept texts of one entry: a password that was saved by mistake shall not be found in the history."""

import datetime as dt
from dataclasses import dataclass

from access import audit, authorizer
from access.audit import AuditAction
from access.principals import Principal
from core import clock, names
from core.errors import NotFound
from core.progress import SILENT, Progress
from core.types import FolderRef
from kb.registry import EntryLine, TombstoneLine
from kb.store import faults, purging
from kb.store.content_store import View
from kb.store.layout import CONTENT
from kb.store.purging import Images
from kb.store.record import Cause, Subject
from kb.store.stores import store_of
from kb.store.upkeep import hold_upkeep, remove_leftovers

UPKEEP_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What a purge did. ``deleted_before`` counts deleted entries of the same path whose texts were not meant.

    ``quarantined`` counts damaged files that were put aside once, and that nobody looked into.
    """

    path: str
    images: int
    is_live: bool
    deleted_before: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class _Target:
    folder: FolderRef
    path: str
    live: EntryLine | None
    deleted: list[TombstoneLine]


def purge_history(
    principal: Principal,
    path: str,
    *,
    before: dt.datetime | None = None,
    deleted: bool = False,
    progress: Progress = SILENT,
) -> PurgeReport:
    """Remove the texts that the log keeps of the entry at ``path``, except the one it has now.

    Where no entry stands there, or with ``deleted``, the deleted ones are meant that stood there, with all their texts.
    ``before`` spares texts saved at or after that moment.

    Raises NotFound, Forbidden, InvalidArgument, LimitExceeded, LockBusy (a sweep or a backup is under way),
    StorageUnavailable, MediaFault, OSError.
    """
    components, filename = names.split_entry_path(path)
    authorizer.content_sight_of(principal).require_administrator()
    store = store_of(principal.organization_id)
    with hold_upkeep(store.layout, wait_seconds=UPKEEP_WAIT_SECONDS):
        remove_leftovers(store.layout)
        with store.transaction() as transaction:
            target = _find(transaction, components, filename, deleted=deleted)
            audit.record(
                principal,
                AuditAction.PURGE_HISTORY,
                folder=target.folder,
                before=target.path,
                after=f"texts before {clock.timestamp(before)}" if before else "",
            )
            lsn = transaction.lsn_of_change
            cause = Cause(
                "purge", transaction.time, principal.actor, tuple(_subjects(target, is_live=not deleted))
            )
            store.append(cause, [], new_segment=True)
        images = _images(target, lsn, before, deleted=deleted)
        removed = purging.purge(store, images, purged_by=lsn, progress=progress)
        quarantined = len(faults.quarantined(store.layout))
    is_live = target.live is not None and not deleted
    return PurgeReport(target.path, removed, is_live, len(target.deleted) if is_live else 0, quarantined)


def _find(view: View, components: list[str], filename: str, *, deleted: bool) -> _Target:
    known = view.folder_at(components)
    if known is None:
        raise NotFound
    live = known.entry_named(filename)
    gone = [line for line in known.tombstones.values() if names.fold(line.name) == names.fold(filename)]
    if not gone and (live is None or deleted):
        raise NotFound
    name = live.name if live else gone[-1].name
    folder = known.folder
    return _Target(folder, f"{folder.path}/{name}" if folder.path else name, live, gone)


def _subjects(target: _Target, *, is_live: bool) -> list[Subject]:
    if target.live is not None and is_live:
        return [Subject(target.folder.id, target.path, entry_id=target.live.id)]
    return [Subject(target.folder.id, target.path, entry_id=line.entry_id) for line in target.deleted]


def _images(target: _Target, purged_by: int, before: dt.datetime | None, *, deleted: bool) -> list[Images]:
    above = (CONTENT, *(target.folder.path.split("/") if target.folder.path else ()))
    limit = clock.timestamp(before) if before else None
    live = target.live
    if live is not None and not deleted:
        # Its text as it stands was put by ``content_seq``, and stays.
        return [Images((*above, live.name), live.existence_seq, live.content_seq - 1, limit)]
    last = live.existence_seq - 1 if live else purged_by - 1
    return [Images((*above, name), 1, last, limit) for name in sorted({line.name for line in target.deleted})]
