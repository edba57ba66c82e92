"""Finishing what a dead writer began, and taking back what a power cut took. Under ``writer``, always.

Whoever finds a record beyond ``applied`` first writes its bytes again in place, syncs them and the log's folder,
and only then applies it: its writer may have died before the sync, or the kernel may have dropped the pages of a
sync that failed.
"""

import os

from core import clock, locks
from core.errors import StorageUnavailable
from core.log import get_logger
from kb.store import applying, steps
from kb.store.faults import MediaFault
from kb.store.layout import LOG, PRIVATE, Layout
from kb.store.marks import Mark
from kb.store.segments import RecordPlace, Scan, Segments

log = get_logger(__name__)
LOG_PLACE = f"{PRIVATE}/{LOG}"
CONTENT_WAIT_SECONDS = 10.0


def recover(layout: Layout, segments: Segments, *, from_checkpoint: bool) -> Mark:
    """Bring the tree to the end of the log and return the mark there. The caller holds ``writer``.

    ``from_checkpoint`` replays everything since the last checkpoint, for a process that finds nobody alive;
    else only what ``applied`` lacks. Cheap when there is nothing to do: two calls to the disk.

    Raises MediaFault, OSError, StorageUnavailable (readers do not let go of ``content``).
    """
    applied = layout.read_applied()
    if not from_checkpoint and applied is not None and applied.is_whole and _ends_at(segments, applied):
        return applied
    begun = clock.monotonic()
    checkpoint = layout.read_checkpoint()
    if checkpoint is None:
        raise MediaFault("the checkpoint cannot be read")
    base = checkpoint if from_checkpoint or applied is None else applied
    scan = segments.scan(base)
    floor = _synced(checkpoint, applied)
    if scan.last_lsn < floor:
        raise MediaFault(f"the log ends at {scan.last_lsn}, its marks say {floor}", segment=scan.segment)
    if scan.size > scan.end:
        # Torn, so never acknowledged.
        steps.truncate(segments.for_appending(scan.segment), scan.end, LOG_PLACE)
    if scan.places and (applied is None or scan.last_lsn > applied.lsn):
        _harden(segments, scan.places[-1])
    end = Mark(scan.last_lsn, scan.segment, scan.end, scan.last_lsn)
    if scan.places or applied != end:
        _replay(layout, segments, scan, base=base, end=end, whole=from_checkpoint or len(scan.places) > 1)
    if scan.places:
        seconds = round(clock.monotonic() - begun, 3)
        log.info("the log was replayed", records=len(scan.places), last=end.lsn, seconds=seconds)
    applying.empty_stage(layout)
    return end


def _synced(checkpoint: Mark, applied: Mark | None) -> int:
    """The last record that is known to have been durable: below it nothing can be torn, only damaged."""
    # What ``applied`` names, as done or as being done, was synced before it was named.
    return max(checkpoint.lsn, applied.lsn, applied.applying) if applied else checkpoint.lsn


def _ends_at(segments: Segments, applied: Mark) -> bool:
    try:
        size = os.fstat(segments.for_appending(applied.segment)).st_size
    except FileNotFoundError:
        raise MediaFault("the segment that was applied last is missing", segment=applied.segment) from None
    if size != applied.offset:
        return False
    return applied.segment == applied.lsn + 1 or not segments.exists(applied.lsn + 1)


def _harden(segments: Segments, place: RecordPlace) -> None:
    data = segments.read_bytes(place)
    descriptor = segments.for_appending(place.segment)
    steps.write_at(descriptor, place.start, data, LOG_PLACE)
    steps.sync_data(descriptor, LOG_PLACE)
    segments.sync_directory()


def _replay(layout: Layout, segments: Segments, scan: Scan, *, base: Mark, end: Mark, whole: bool) -> None:
    try:
        with locks.hold_content(layout.locks, shared=False, wait_seconds=CONTENT_WAIT_SECONDS):
            for place in scan.places:
                if place is scan.places[0] or not whole:
                    # Of several records only the state after the last one need be whole.
                    start = base if whole else Mark(place.lsn - 1, place.segment, place.start, place.lsn - 1)
                    applying.write_applied(layout, start.while_applying(end.lsn))
                applying.apply(layout, place.lsn, segments.read(place).operations, staged=set())
            applying.write_applied(layout, end)
    except locks.LockBusy as busy:
        raise StorageUnavailable from busy
