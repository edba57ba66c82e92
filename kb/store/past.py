"""Looking back along the log for one entry: which records are about it, newest first, and the bytes they hold.

Nothing is held meanwhile. Heads are read in large pieces and payloads one at a time, and a look back reads no more
than it was allowed, however long the log and however large its records are.
"""

import bisect
import os
from collections.abc import Iterator
from dataclasses import dataclass

from core import safe_open
from kb.store import record as records
from kb.store.layout import Layout, segment_name
from kb.store.marks import Mark
from kb.store.record import Cause, Payload
from kb.store.segments import Segments

WINDOW_BYTES = 256 * 1024


class LookedFarEnough(Exception):
    """As many bytes were read as this look back may read."""


@dataclass(frozen=True, slots=True)
class PastRecord:
    """A record of the past: what it was for, and where its payloads stand in its segment."""

    lsn: int
    segment: int
    cause: Cause
    payloads: list[Payload]


@dataclass(frozen=True, slots=True)
class _Head:
    lsn: int
    segment: int
    start: int
    end: int
    header: bytes


class LookBack:
    """One look back from the record at ``end``, which must be applied.

    Its methods raise LookedFarEnough, FileNotFoundError where a segment was let go meanwhile, and DamagedRecord.
    """

    def __init__(self, layout: Layout, end: Mark, *, bytes_max: int) -> None:
        self._layout = layout
        self._end = end
        self._bytes_left = bytes_max
        self._firsts = [first for first in Segments(layout).first_lsns() if first <= end.lsn]

    def about(self, entry_id: str, *, since: int) -> Iterator[PastRecord]:
        """The records about an entry, newest first, none before record ``since``."""
        needle = entry_id.encode()
        for index in reversed(range(len(self._firsts))):
            heads = [head for head in self._heads(self._firsts[index]) if needle in head.header]
            for head in reversed(heads):
                if head.lsn < since:
                    return
                found = _past_record(head)
                if any(subject.entry_id == entry_id for subject in found.cause.subjects):
                    yield found
            if self._firsts[index] <= since:
                return

    def record(self, lsn: int) -> PastRecord | None:
        """The record with this number; None where it is no longer kept."""
        index = bisect.bisect_right(self._firsts, lsn) - 1
        if index < 0:
            return None
        for head in self._heads(self._firsts[index]):
            if head.lsn == lsn:
                return _past_record(head)
        return None

    def read(self, past: PastRecord, path: tuple[str, ...]) -> bytes | None:
        """The bytes that a record gave the file at ``path``."""
        for payload in past.payloads:
            if payload.path == path:
                descriptor = safe_open.open_file(self._layout.log, segment_name(past.segment))
                try:
                    return self._pread(descriptor, payload.start, payload.end - payload.start)
                finally:
                    os.close(descriptor)
        return None

    def _heads(self, segment: int) -> Iterator[_Head]:
        descriptor = safe_open.open_file(self._layout.log, segment_name(segment))
        try:
            # Behind the end stands what is not applied: it may yet vanish.
            is_last = segment == self._end.segment
            size = self._end.offset if is_last else os.fstat(descriptor).st_size
            window, window_start, at = b"", 0, 0
            while at < size:
                wanted = records.PREFIX_BYTES
                if not window_start <= at <= window_start + len(window) - wanted:
                    window, window_start = self._window(descriptor, at, size), at
                length, lsn, header_length = records.head_lengths(_part(window, at - window_start, wanted))
                begin = at + records.PREFIX_BYTES
                if begin + header_length > window_start + len(window):
                    window, window_start = self._window(descriptor, begin, size, header_length), begin
                header = _part(window, begin - window_start, header_length)
                yield _Head(lsn, segment, at, at + length, header)
                at += length
        finally:
            os.close(descriptor)

    def _window(self, descriptor: int, start: int, size: int, least: int = 0) -> bytes:
        return self._pread(descriptor, start, min(max(WINDOW_BYTES, least), size - start))

    def _pread(self, descriptor: int, start: int, length: int) -> bytes:
        if length > self._bytes_left:
            raise LookedFarEnough
        self._bytes_left -= length
        return os.pread(descriptor, length, start)


def _part(window: bytes, start: int, length: int) -> bytes:
    part = window[start : start + length]
    if len(part) != length:
        raise records.DamagedRecord("the log ends inside a record")
    return part


def _past_record(head: _Head) -> PastRecord:
    begin = head.start + records.PREFIX_BYTES + len(head.header)
    decoded = records.decode_head(head.lsn, head.header, segment=head.segment, end=head.end)
    return PastRecord(
        head.lsn, head.segment, decoded.cause, records.decode_payloads(head.header, begin=begin)
    )
