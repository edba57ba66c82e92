"""What is kept for a while only, and goes when its time is over: outcomes, claims, leftovers, old segments of the log.

A segment goes only when nothing needs it any more: it lies wholly below the durable checkpoint, and every entry,
folder, tombstone and outcome that it alone holds was synced into the tree and read again from the disk. Oldest first,
never the newest, and at most a tenth of the history a day, so that a clock that jumps does not take everything with it.
"""

import datetime as dt
import errno
import hashlib
import os
import re
from dataclasses import dataclass, field
from itertools import pairwise

from core import claims, clock, limits, locks, safe_open
from core.claims import CLAIMS
from core.errors import RequestInProgress, StorageUnavailable
from core.locks import FileLock, Rank
from core.log import get_logger
from core.progress import SILENT, Progress
from kb import registry
from kb.registry import SnapshotLine
from kb.store import applying, checkpoint, faults, fold, outcomes, steps, upkeep
from kb.store.content_store import ContentStore, View
from kb.store.faults import MediaFault
from kb.store.fold import Fold, FoldedFile, LogDamage
from kb.store.images import DamagedEntry
from kb.store.layout import LOCKS, OUTCOMES, PRIVATE, Layout, segment_name
from kb.store.marks import Mark
from kb.store.segments import Segments
from kb.store.upkeep import LOG_PLACE

log = get_logger(__name__)

_OUTCOME_FILE = re.compile(r"[0-9a-f]{64}\.json")
# A claim is held for seconds and says nothing by being there; this only spares those of retries under way.
CLAIM_SECONDS = 60 * 60
# The share of the history that may go in a day, as its divisor, and the part of the volume it may fill.
DAILY_SHARE = 10
VOLUME_SHARE = 4
DAY = dt.timedelta(days=1)
# No rest can be longer: one that ends later was written by a clock that stood wrong.
LONGEST_REST = DAY * DAILY_SHARE


@dataclass(slots=True)
class Swept:
    """What went, in numbers of files; ``history_bytes`` are those of the segments. ``kept`` says why history stayed."""

    outcomes: int = 0
    claims: int = 0
    leftovers: int = 0
    segments: int = 0
    history_bytes: int = 0
    kept: str | None = None


@dataclass(slots=True)
class _History:
    """The log's segments that may go now, oldest first, and the record that would be the first one after it."""

    segments: list[int] = field(default_factory=list)
    first_kept: int = 0
    size: int = 0
    rest: dt.timedelta = DAY


class _NotProved(Exception):
    """Something that only the oldest segments hold is not safe in the tree."""


def sweep(
    store: ContentStore, *, history_days: int, history_bytes: int | None, progress: Progress = SILENT
) -> Swept:
    """Remove what is past its time. ``history_bytes`` is None for a quarter of the volume.

    Raises LockBusy at once where another sweep, a purge or a backup is under way; StorageUnavailable, OSError.
    """
    swept = Swept()
    layout = store.layout
    with upkeep.hold_upkeep(layout, wait_seconds=0):
        swept.leftovers = upkeep.remove_leftovers(layout)
        swept.outcomes = _sweep_outcomes(layout, progress)
        swept.claims = _sweep_claims(layout, progress)
        if faults.is_marked(layout) or checkpoint.is_unsynced(layout):
            swept.kept = "the disk failed, and the log may be all that is left of something"
        else:
            swept.leftovers += _sweep_stage(store)
            _sweep_history(store, swept, history_days, history_bytes, progress)
    return swept


# -- requests ---------------------------------------------------------------------------------------------------


def _sweep_outcomes(layout: Layout, progress: Progress) -> int:
    oldest = clock.now() - dt.timedelta(days=limits.OUTCOME_DAYS)
    removed = 0
    shards = _shards(layout, OUTCOMES)
    progress.begin("Looking at outcomes", len(shards))
    for shard in shards:
        directory = safe_open.open_directory(layout.private, (OUTCOMES, shard))
        try:
            with os.scandir(directory) as found:
                # Written after the moment that the outcome tells, so a young file need not be read.
                names = [
                    one.name
                    for one in found
                    if _OUTCOME_FILE.fullmatch(one.name) and _modified(one) <= oldest.timestamp()
                ]
            for name in names:
                if _is_expired(directory, name, oldest):
                    removed += _remove_outcome(layout, directory, shard, name, oldest)
        finally:
            os.close(directory)
        progress.advance()
    return removed


def _remove_outcome(layout: Layout, directory: int, shard: str, name: str, oldest: dt.datetime) -> bool:
    key = name.partition(".")[0]
    try:
        # The request id may be used anew at this moment: then the outcome is another one, and stays.
        with claims.hold_claim(layout.private, key):
            if not _is_expired(directory, name, oldest):
                return False
            steps.unlink(directory, name, f"{PRIVATE}/{OUTCOMES}/{shard}")
    except RequestInProgress:
        return False
    claimed = safe_open.open_directory(layout.private, (CLAIMS, shard))
    try:
        _remove_claim(claimed, key, shard)
    finally:
        os.close(claimed)
    return True


def _is_expired(directory: int, name: str, oldest: dt.datetime) -> bool:
    try:
        outcome = outcomes.decode(safe_open.read_file(directory, (name,)))
    except (outcomes.DamagedOutcome, safe_open.UnsafeFile, FileNotFoundError):
        # Not ours to judge: ``check_store`` names it.
        return False
    return clock.from_timestamp(outcome.time) <= oldest


def _sweep_claims(layout: Layout, progress: Progress) -> int:
    oldest = clock.now().timestamp() - CLAIM_SECONDS
    removed = 0
    shards = _shards(layout, CLAIMS)
    progress.begin("Looking at claims", len(shards))
    for shard in shards:
        directory = safe_open.open_directory(layout.private, (CLAIMS, shard))
        try:
            with os.scandir(directory) as found:
                keys = [one.name for one in found if _modified(one) <= oldest]
            removed += sum(_remove_claim(directory, key, shard) for key in keys)
        finally:
            os.close(directory)
        progress.advance()
    return removed


def _remove_claim(directory: int, key: str, shard: str) -> bool:
    try:
        lock = FileLock(directory, key, Rank.CLAIM).acquire(wait_seconds=0)
    except (locks.LockBusy, FileNotFoundError):
        return False
    try:
        # Under its own lock: whoever opened it before and locks it after finds that it is nobody's claim any more.
        if os.stat(key, dir_fd=directory, follow_symlinks=False).st_ino != lock.inode:
            return False
        steps.unlink(directory, key, f"{PRIVATE}/{CLAIMS}/{shard}")
        return True
    finally:
        lock.release()


def _sweep_stage(store: ContentStore) -> int:
    if not os.listdir(store.layout.stage):
        return 0
    with store.writing():
        left = len(os.listdir(store.layout.stage))
        applying.empty_stage(store.layout)
        return left - len(os.listdir(store.layout.stage))


def _shards(layout: Layout, name: str) -> list[str]:
    directory = safe_open.open_directory(layout.private, (name,))
    try:
        return sorted(os.listdir(directory))
    finally:
        os.close(directory)


def _modified(one: "os.DirEntry[str]") -> float:
    try:
        return one.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return float("inf")


# -- history ----------------------------------------------------------------------------------------------------


def _sweep_history(
    store: ContentStore, swept: Swept, days: int, most_bytes: int | None, progress: Progress
) -> None:
    layout = store.layout
    try:
        due = _due(layout, clock.now() - dt.timedelta(days=days), most_bytes)
        if not due.segments or _rests(layout):
            return
        _prove(store, due, progress)
    except (_NotProved, MediaFault) as reason:
        swept.kept = str(reason)
    except StorageUnavailable:
        swept.kept = "the store could not be read whole"
    except OSError as error:
        swept.kept = f"the disk refused ({errno.errorcode.get(error.errno or 0, 'unknown')})"
    else:
        # First, so that a crash shortens what goes today and never adds to it.
        _rest_until(layout, clock.now() + due.rest)
        _remove_segments(store, due, swept)
    if swept.kept is not None:
        log.error("history past its time is kept", problem=swept.kept, organization=layout.organization_id)


def _due(layout: Layout, oldest: dt.datetime, most_bytes: int | None) -> _History:
    sizes = _segment_sizes(layout)
    durable = layout.read_checkpoint()
    if durable is None:
        raise MediaFault("the checkpoint cannot be read")
    whole = left = sum(sizes.values())
    if most_bytes is None:
        status = os.fstatvfs(layout.root)
        most_bytes = status.f_blocks * status.f_frsize // VOLUME_SHARE
    due = _History()
    for first, following in pairwise(sizes):
        if first >= durable.segment:
            break
        if left <= most_bytes and not _is_older(layout, first, following, sizes[first], oldest):
            break
        if due.segments and (due.size + sizes[first]) * DAILY_SHARE > whole:
            break
        due.segments.append(first)
        due.first_kept = following
        due.size += sizes[first]
        left -= sizes[first]
    if due.segments:
        # A segment may be more than a day's share by itself; then the rest after it is longer.
        due.rest = max(DAY, DAY * (due.size * DAILY_SHARE / whole))
    return due


def _segment_sizes(layout: Layout) -> dict[int, int]:
    return {
        first: os.stat(segment_name(first), dir_fd=layout.log, follow_symlinks=False).st_size
        for first in Segments(layout).first_lsns()
    }


def _is_older(layout: Layout, first: int, following: int, size: int, oldest: dt.datetime) -> bool:
    """Whether the segment's last record is older than ``oldest``. Times never go down along the log."""
    before, behind = Mark(first - 1, first, 0, first - 1), Mark(following - 1, first, size, following - 1)
    last = max((head.cause.time for head in Segments(layout).heads(before, behind)), default="")
    return last < clock.timestamp(oldest)


def _remove_segments(store: ContentStore, due: _History, swept: Swept) -> None:
    layout = store.layout
    for first in due.segments:
        with store.writing():
            durable = layout.read_checkpoint()
            if durable is None or first >= durable.segment:
                return
            size = os.stat(segment_name(first), dir_fd=layout.log, follow_symlinks=False).st_size
            steps.unlink(layout.log, segment_name(first), LOG_PLACE)
            # Each by itself: a power cut may then leave too much, and never a gap.
            steps.sync_directory(layout.log, LOG_PLACE)
        swept.segments += 1
        swept.history_bytes += size
    log.info("history was let go", segments=swept.segments, before=due.first_kept)


# -- the rest between two days ----------------------------------------------------------------------------------


def _rests(layout: Layout) -> bool:
    """Whether history rests today. Until when stands in the lock file of upkeep, as text."""
    written = safe_open.read_file(layout.locks, (upkeep.LOCK_FILE,))
    if not written:
        return False
    now = clock.now()
    try:
        until = clock.from_timestamp(written.decode("ascii").strip())
        if until <= now:
            return False
        is_credible = until <= now + LONGEST_REST
    except (ValueError, TypeError):
        is_credible = False
    if not is_credible:
        _rest_until(layout, now + DAY)
    return True


def _rest_until(layout: Layout, moment: dt.datetime) -> None:
    place = f"{PRIVATE}/{LOCKS}/{upkeep.LOCK_FILE}"
    written = clock.timestamp(moment).encode("ascii") + b"\n"
    descriptor = steps.open_for_change(layout.locks, upkeep.LOCK_FILE)
    try:
        steps.write_at(descriptor, 0, written, place)
        if os.fstat(descriptor).st_size != len(written):
            steps.truncate(descriptor, len(written), place)
        steps.sync_file(descriptor, place)
        steps.sync_directory(layout.locks, f"{PRIVATE}/{LOCKS}")
    finally:
        os.close(descriptor)


# -- proof ------------------------------------------------------------------------------------------------------


def _prove(store: ContentStore, due: _History, progress: Progress) -> None:
    """Prove that the tree keeps what only the segments that are due hold. Raises _NotProved and what reading raises."""
    account, times = _account_of(store.layout, due, progress)
    # Another descriptor than the checkpoints use: the kernel tells each of a lost page once, and theirs must hear it.
    witness = safe_open.open_directory(store.layout.private)
    try:
        steps.sync_filesystem(witness, PRIVATE)
    finally:
        os.close(witness)
    progress.begin("Reading the tree again", len(account.files))
    for path, known in account.files.items():
        if path[0] == PRIVATE:
            _prove_outcome(store.layout, path, known, times[path])
        else:
            with store.snapshot() as view:
                if path[-1] == registry.REGISTRY_NAME:
                    _prove_registry(store.layout, view, path, known, due.first_kept)
                else:
                    _prove_entry(store.layout, view, path, known, due.first_kept)
        progress.advance()


def _account_of(layout: Layout, due: _History, progress: Progress) -> tuple[Fold, dict[tuple[str, ...], str]]:
    account = Fold()
    times: dict[tuple[str, ...], str] = {}
    progress.begin("Reading old history", due.first_kept - due.segments[0])
    for found in fold.walk_log(layout):
        if isinstance(found, LogDamage):
            raise _NotProved(f"segment {segment_name(found.segment)} at byte {found.offset}: {found.what}")
        record = found[1]
        account.take(record)
        for operation in record.operations:
            if operation.path[0] == PRIVATE:
                times[operation.path] = record.cause.time
        progress.advance()
        if record.lsn == due.first_kept - 1:
            return account, times
    raise _NotProved("the oldest segments end before the next one begins")


def _prove_registry(
    layout: Layout, view: View, path: tuple[str, ...], known: FoldedFile, first_kept: int
) -> None:
    place = "/".join(path)
    if view.folder_at(list(path[1:-1])) is None:
        raise _NotProved(f"{place}: no registry names this folder")
    data = _read_from_disk(layout, path)
    try:
        lines = registry.decode_lines(data)
    except registry.DamagedRegistry as error:
        raise _NotProved(f"{place}: {error}") from error
    if lines and isinstance(lines[0], SnapshotLine) and lines[0].lsn >= first_kept:
        # Written whole by a later record: the rest of the log holds all of it.
        return
    if hashlib.sha256(data[known.known_from : known.size]).digest() != known.digest.digest():
        raise _NotProved(f"{place}: the registry is not what the log says")


def _prove_entry(
    layout: Layout, view: View, path: tuple[str, ...], known: FoldedFile, first_kept: int
) -> None:
    place = "/".join(path)
    folder = view.folder_at(list(path[1:-1]))
    entry = folder.entry_named(path[-1]) if folder else None
    if folder is None or entry is None or entry.content_seq >= first_kept:
        # Deleted since, or saved again since.
        return
    if known.digest.hexdigest() != entry.content_hash:
        raise _NotProved(f"{place}: log and registry disagree about the text")
    _forget_cached(layout, path)
    try:
        view.read_content(folder.folder, entry)
    except DamagedEntry as error:
        raise _NotProved(f"{place}: the file is not what its registry says") from error


def _prove_outcome(layout: Layout, path: tuple[str, ...], known: FoldedFile, time: str) -> None:
    if clock.now() - clock.from_timestamp(time) >= dt.timedelta(days=limits.OUTCOME_DAYS):
        return
    try:
        data = _read_from_disk(layout, path)
    except FileNotFoundError as error:
        raise _NotProved(f"{'/'.join(path)}: the outcome is missing") from error
    if not known.matches(data):
        raise _NotProved(f"{'/'.join(path)}: the outcome is not what the log says")


def _read_from_disk(layout: Layout, path: tuple[str, ...]) -> bytes:
    _forget_cached(layout, path)
    return safe_open.read_file(layout.root, path)


def _forget_cached(layout: Layout, path: tuple[str, ...]) -> None:
    """Let the kernel drop what it remembers of a file, so that the next read asks the disk."""
    directory = safe_open.open_directory(layout.root, path[:-1])
    try:
        descriptor = safe_open.open_file(directory, path[-1])
    except FileNotFoundError:
        return
    finally:
        os.close(directory)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
