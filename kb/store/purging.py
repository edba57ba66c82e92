"""Taking kept texts of one entry out of the log, so that nobody can read them again. Numbers and offsets stay.

A purge is a record of its own, which begins a segment. Once a checkpoint covers it nothing is ever replayed from the
segments before it and nobody appends to them; each that holds such a text is then written anew beside itself, with
NULs in the place of the text, and renamed into place. A purge that was cut off is finished by the next one.
"""

import bisect
import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from core import clock, safe_open
from core.errors import StorageUnavailable
from core.log import get_logger
from core.progress import SILENT, Progress
from kb.store import applying, derived, record, steps
from kb.store.content_store import ContentStore
from kb.store.faults import MediaFault
from kb.store.layout import Layout, segment_name
from kb.store.marks import Mark
from kb.store.record import Put, Record, RecordHead
from kb.store.segments import Segments
from kb.store.upkeep import LOG_PLACE

log = get_logger(__name__)

NEW_SUFFIX = ".new"
COPY_CHUNK_BYTES = 1 << 20
CHECKPOINT_WAIT_SECONDS = 60.0
CHECKPOINT_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Images:
    """Texts of an entry: those that records ``first`` to ``last`` put at ``path``, if they are older than ``before``.

    ``path`` is the log's, below the organization's directory; ``before`` is a timestamp.
    """

    path: tuple[str, ...]
    first: int
    last: int
    before: str | None = None


@dataclass(frozen=True, slots=True)
class _Image:
    """One text that the log holds: its path, and where its record stands."""

    path: tuple[str, ...]
    segment: int
    start: int
    end: int


def purge(store: ContentStore, wanted: Sequence[Images], purged_by: int, progress: Progress = SILENT) -> int:
    """Remove these texts from everything before the record ``purged_by``; returns how many there were.

    That record began a segment, after the last of the texts. The caller holds ``hold_upkeep`` and no other lock.
    Raises StorageUnavailable, OSError, and MediaFault where the log is damaged: the same call again finishes.
    """
    layout = store.layout
    _wait_for_checkpoint(store, purged_by)
    images = list(_find(layout, wanted, purged_by, progress))
    progress.begin("Writing segments anew", len(images))
    for segment, inside in groupby(images, key=lambda image: image.segment):
        _rewrite(store, segment, list(inside), progress)
    with store.writing():
        applying.empty_stage(layout)
    derived.forget_derived(layout)
    log.info("history was purged", images=len(images), organization=layout.organization_id)
    return len(images)


def _wait_for_checkpoint(store: ContentStore, purged_by: int) -> None:
    deadline = clock.monotonic() + CHECKPOINT_WAIT_SECONDS
    while True:
        durable = store.layout.read_checkpoint()
        if durable is not None and durable.segment >= purged_by:
            return
        if clock.monotonic() > deadline:
            raise StorageUnavailable
        store.checkpoint()
        clock.sleep(CHECKPOINT_POLL_SECONDS)


def _find(layout: Layout, wanted: Sequence[Images], purged_by: int, progress: Progress) -> Iterator[_Image]:
    segments = Segments(layout)
    oldest = min((images.first for images in wanted), default=purged_by)
    firsts = [first for first in segments.first_lsns() if first < purged_by]
    if not firsts or oldest >= purged_by:
        return
    segment, start = firsts[max(0, bisect.bisect_right(firsts, oldest) - 1)], 0
    begin = Mark(segment - 1, segment, 0, segment - 1)
    progress.begin("Looking through the log", purged_by - segment)
    for head in segments.heads(begin, Mark(purged_by - 1, purged_by, 0, purged_by - 1)):
        if head.segment != segment:
            segment, start = head.segment, 0
        for images in wanted:
            if _is_meant(images, head):
                image = _Image(images.path, segment, start, head.end)
                if _holds_text(_read(segments, image), image.path):
                    yield image
        start = head.end
        progress.advance()


def _is_meant(images: Images, head: RecordHead) -> bool:
    return (
        images.first <= head.lsn <= images.last
        and images.path in head.paths
        and (images.before is None or head.cause.time < images.before)
    )


def _holds_text(found: Record, path: tuple[str, ...]) -> bool:
    return any(
        isinstance(operation, Put)
        and operation.path == path
        and operation.data != b""
        and not record.is_purged(operation.data)
        for operation in found.operations
    )


def _read(segments: Segments, image: _Image) -> Record:
    found = record.decode_at(
        segments.read_range(image.segment, image.start, image.end), 0, expected_lsn=None, base=image.start
    )
    if found is None:
        raise MediaFault(f"the record at byte {image.start} is damaged", segment=image.segment)
    return found


def _rewrite(store: ContentStore, segment: int, images: Sequence[_Image], progress: Progress) -> None:
    layout = store.layout
    name, new = segment_name(segment), segment_name(segment) + NEW_SUFFIX
    source = safe_open.open_file(layout.log, name)
    try:
        with contextlib.suppress(FileNotFoundError):
            steps.unlink(layout.log, new, LOG_PLACE)
        copy = steps.create(layout.log, new, LOG_PLACE)
        try:
            _copy_without(source, copy, segment, images, f"{LOG_PLACE}/{new}", progress)
            steps.sync_file(copy, f"{LOG_PLACE}/{new}")
        except BaseException:
            with contextlib.suppress(OSError):
                steps.unlink(layout.log, new, LOG_PLACE)
            raise
        finally:
            os.close(copy)
    finally:
        os.close(source)
    # Under ``writer``: a recovery that began before the checkpoint moved may still be replaying this segment.
    with store.writing():
        steps.rename(layout.log, new, layout.log, name, LOG_PLACE)
        steps.sync_directory(layout.log, LOG_PLACE)


def _copy_without(
    source: int, copy: int, segment: int, images: Sequence[_Image], place: str, progress: Progress
) -> None:
    size = os.fstat(source).st_size
    offset = 0
    for (start, end), inside in groupby(images, key=lambda image: (image.start, image.end)):
        _copy_range(source, copy, offset, start, place)
        data = os.pread(source, end - start, start)
        for image in inside:
            data = record.purge(data, image.path)
            progress.advance()
        if len(data) != end - start or record.decode_at(data, 0, expected_lsn=None) is None:
            raise MediaFault(f"the record at byte {start} cannot be written anew", segment=segment)
        steps.write_at(copy, start, data, place)
        offset = end
    _copy_range(source, copy, offset, size, place)


def _copy_range(source: int, copy: int, start: int, end: int, place: str) -> None:
    while start < end:
        data = os.pread(source, min(end - start, COPY_CHUNK_BYTES), start)
        if not data:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        steps.write_at(copy, start, data, place)
        start += len(data)
