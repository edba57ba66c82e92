"""The log's segments: reading them from a mark on, judging the tail, and the open one for appending."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from core import safe_open
from kb.store import record as records
from kb.store import steps
from kb.store.faults import MediaFault
from kb.store.layout import LOG, SEGMENT_SUFFIX, Layout, segment_name
from kb.store.marks import Mark
from kb.store.record import DamagedRecord, Record, RecordHead


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a valid record stands."""

    lsn: int
    segment: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What the log holds behind a mark: its valid records, and where the last of them ends.

    Bytes from ``end`` to ``size`` of ``segment`` are a torn append.
    """

    places: list[RecordPlace]
    last_lsn: int
    segment: int
    end: int
    size: int


class Segments:
    """The log of one organization. Appending and cutting is for the holder of ``writer``."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._open_segment = 0
        self._descriptor = -1

    def first_lsns(self) -> list[int]:
        """The first record of each segment, ascending."""
        return sorted(
            int(name.removesuffix(SEGMENT_SUFFIX))
            for name in os.listdir(self._layout.log)
            if name.endswith(SEGMENT_SUFFIX)
        )

    def scan(self, start: Mark) -> Scan:
        """All valid records behind ``start``. Raises MediaFault where a hole or a shortened file shows itself."""
        places: list[RecordPlace] = []
        lsn, segment, offset = start.lsn, start.segment, start.offset
        known = self.first_lsns()
        while True:
            if segment not in known:
                raise MediaFault("a segment of the log is missing", segment=segment)
            data = self._read(segment, offset)
            if data is None:
                raise MediaFault("the log is shorter than its mark", segment=segment)
            position = 0
            while True:
                try:
                    found = records.decode_at(data, position, expected_lsn=lsn + 1, base=offset)
                except DamagedRecord as error:
                    raise MediaFault(str(error), segment=segment) from error
                if found is None:
                    break
                places.append(RecordPlace(found.lsn, segment, found.start, found.end))
                lsn = found.lsn
                position = found.end - offset
            torn = position < len(data)
            if torn:
                self._refuse_record_behind(data, position, segment)
            later = [first for first in known if first > segment]
            if lsn + 1 in later:
                if torn:
                    raise MediaFault("a damaged record stands before a later segment", segment=segment)
                segment, offset = lsn + 1, 0
                continue
            if any(first > lsn + 1 for first in later):
                raise MediaFault("records are missing between two segments", segment=segment)
            return Scan(places, lsn, segment, offset + position, offset + len(data))

    def read(self, place: RecordPlace) -> Record:
        """The record at a place that ``scan`` found. Raises MediaFault when it is no longer there."""
        found = records.decode_at(self.read_bytes(place), 0, expected_lsn=place.lsn, base=place.start)
        if found is None:
            raise MediaFault("a record changed while it was read", segment=place.segment)
        return found

    def read_bytes(self, place: RecordPlace) -> bytes:
        """The bytes of the record at a place."""
        return self.read_range(place.segment, place.start, place.end)

    def read_range(self, segment: int, start: int, end: int) -> bytes:
        """The bytes of a segment between two offsets."""
        descriptor = self._open_for_reading(segment)
        try:
            return os.pread(descriptor, end - start, start)
        finally:
            os.close(descriptor)

    def heads(self, start: Mark, end: Mark) -> Iterator[RecordHead]:
        """The heads of the records behind ``start`` up to ``end``, which are known to be whole.

        Reads no payload. Raises MediaFault, FileNotFoundError where the segment is gone.
        """
        lsn, segment, offset = start.lsn, start.segment, start.offset
        while lsn < end.lsn:
            descriptor = self._open_for_reading(segment)
            try:
                size = os.fstat(descriptor).st_size
                while lsn < end.lsn and offset < size:
                    head = _read_head(descriptor, offset, segment)
                    if head.lsn != lsn + 1:
                        raise MediaFault("the log does not count on", segment=segment)
                    lsn, offset = head.lsn, head.end
                    yield head
            finally:
                os.close(descriptor)
            if lsn < end.lsn:
                if segment == lsn + 1:
                    raise MediaFault("the log is shorter than its mark", segment=segment)
                segment, offset = lsn + 1, 0

    def for_appending(self, segment: int) -> int:
        """The descriptor of a segment, kept open until another one is asked for."""
        if self._open_segment != segment:
            self.close()
            self._descriptor = steps.open_for_change(self._layout.log, segment_name(segment))
            self._open_segment = segment
        return self._descriptor

    def begin(self, segment: int) -> int:
        """A new, empty segment, opened for appending."""
        self.close()
        self._descriptor = steps.create(self._layout.log, segment_name(segment), LOG)
        self._open_segment = segment
        return self._descriptor

    def exists(self, segment: int) -> bool:
        """Whether a segment begins with this record."""
        try:
            os.stat(segment_name(segment), dir_fd=self._layout.log, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def size_of(self, segment: int) -> int:
        """How many bytes the segment has. Raises FileNotFoundError."""
        return os.stat(segment_name(segment), dir_fd=self._layout.log, follow_symlinks=False).st_size

    def sync_directory(self) -> None:
        """Make the segments' names durable."""
        steps.sync_directory(self._layout.log, LOG)

    def close(self) -> None:
        """Close the segment that was open for appending."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._open_segment = -1, 0

    def _open_for_reading(self, segment: int) -> int:
        return safe_open.open_file(self._layout.log, segment_name(segment))

    def _read(self, segment: int, offset: int) -> bytes | None:
        descriptor = self._open_for_reading(segment)
        try:
            if os.fstat(descriptor).st_size < offset:
                return None
            return safe_open.read_all(descriptor, offset)
        finally:
            os.close(descriptor)

    @staticmethod
    def _refuse_record_behind(data: bytes, position: int, segment: int) -> None:
        # A torn append is the last thing in a log. A valid record behind it means that it was whole once.
        while (position := data.find(records.MAGIC, position + 1)) >= 0:
            try:
                behind = records.decode_at(data, position, expected_lsn=None)
            except DamagedRecord as error:
                raise MediaFault(str(error), segment=segment) from error
            if behind is not None:
                raise MediaFault("a valid record stands behind a damaged one", segment=segment)


def _read_head(descriptor: int, offset: int, segment: int) -> RecordHead:
    try:
        prefix = os.pread(descriptor, records.PREFIX_BYTES, offset)
        if len(prefix) < records.PREFIX_BYTES:
            raise DamagedRecord("the log ends inside a record")
        length, lsn, header_length = records.head_lengths(prefix)
        header = os.pread(descriptor, header_length, offset + records.PREFIX_BYTES)
        return records.decode_head(lsn, header, segment=segment, end=offset + length)
    except DamagedRecord as error:
        raise MediaFault(str(error), segment=segment) from error
