"""One record of the log: everything that one save changes, checksummed as a whole.

    magic (8) | length (8) | lsn (8) | header length (4) | header JSON | payloads | SHA-256 of all before (32)

Operations are absolute, so carrying them out twice is the same as once. Their paths are lists of names below the
organization's directory and are validated when a record is made and again when it is read.
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from core import names
from core.types import Actor
from kb.registry import REGISTRY_NAME

# No text and no header can contain FF, so the magic is found nowhere else.
MAGIC = b"\xff\x00BRNLG1"
FORMAT = 1
DIGEST_BYTES = 32
_PREFIX = struct.Struct(">8sQQI")
PREFIX_BYTES = _PREFIX.size
RECORD_MIN_BYTES = PREFIX_BYTES + DIGEST_BYTES

CONTENT = "content"
PRIVATE = "private"
OUTCOMES = "outcomes"
_OUTCOME_SHARD = re.compile(r"[0-9a-f]{2}")
_OUTCOME_NAME = re.compile(r"[0-9a-f]{64}\.json")


class DamagedRecord(Exception):
    """A record whose checksum holds names a path or form that no record may have."""


class MakeFolder(msgspec.Struct, frozen=True, tag="mkdir", tag_field="op"):
    """Make a folder; one that is there already is left alone."""

    path: tuple[str, ...]


class Put(msgspec.Struct, frozen=True, tag="put", tag_field="op"):
    """Give a file these bytes, whole."""

    path: tuple[str, ...]
    data: bytes


class Append(msgspec.Struct, frozen=True, tag="append", tag_field="op"):
    """Cut a file to ``offset`` and write these bytes there."""

    path: tuple[str, ...]
    offset: int
    data: bytes


class Remove(msgspec.Struct, frozen=True, tag="del", tag_field="op"):
    """Remove a file; one that is gone already is left alone."""

    path: tuple[str, ...]


Operation = MakeFolder | Put | Append | Remove


class Subject(msgspec.Struct, frozen=True):
    """What a record is about: the folder of ``folder_id``, or the entry ``entry_id`` in it."""

    folder_id: str
    path: str
    entry_id: str | None = None


class Cause(msgspec.Struct, frozen=True):
    """Why a record exists: what was done, by whom, when, and by which request.

    ``request_key`` and ``arguments_hash`` are those of the MutationRequest, None for the shell and for upkeep.
    """

    action: str
    time: str
    actor: Actor
    subjects: tuple[Subject, ...] = ()
    request_key: str | None = None
    arguments_hash: str | None = None
    reason: str | None = None


class _Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operation in the header: its payload stands behind the header, ``length`` bytes from ``at`` on."""

    op: str
    path: tuple[str, ...]
    at: int = 0
    length: int = 0
    offset: int = 0


class _Header(msgspec.Struct, frozen=True):
    format: int
    cause: Cause
    operations: tuple[_Place, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record. ``start`` and ``end`` are its offsets in its segment."""

    lsn: int
    cause: Cause
    operations: tuple[Operation, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Payload:
    """Bytes that a record gives a file, whole or appended; ``start`` and ``end`` are their offsets in the segment."""

    path: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RecordHead:
    """What is known of a record without its payloads: enough to follow which folders changed."""

    lsn: int
    cause: Cause
    paths: tuple[tuple[str, ...], ...]
    segment: int
    end: int


_header_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(_Header)


def encode(lsn: int, cause: Cause, operations: Sequence[Operation]) -> bytes:
    """The bytes of a record. Raises DamagedRecord for a path that no record may have."""
    places: list[_Place] = []
    payloads: list[bytes] = []
    at = 0
    for operation in operations:
        check_path(operation)
        data = operation.data if isinstance(operation, Put | Append) else b""
        places.append(
            _Place(
                op=operation.__struct_config__.tag,  # type: ignore[arg-type]
                path=operation.path,
                at=at if data else 0,
                length=len(data),
                offset=operation.offset if isinstance(operation, Append) else 0,
            )
        )
        if data:
            payloads.append(data)
            at += len(data)
    header = _header_encoder.encode(_Header(format=FORMAT, cause=cause, operations=tuple(places)))
    length = RECORD_MIN_BYTES + len(header) + at
    body = b"".join([_PREFIX.pack(MAGIC, length, lsn, len(header)), header, *payloads])
    return body + hashlib.sha256(body).digest()


def decode_at(
    data: bytes | memoryview, position: int, *, expected_lsn: int | None, base: int = 0
) -> Record | None:
    """The record at ``position`` of ``data``, or None where no whole valid one with ``expected_lsn`` stands.

    ``base`` is the offset of ``data`` in its segment. Raises DamagedRecord where the checksum holds and the form
    does not: that was never written by a Brain that knows this format.
    """
    view = memoryview(data)
    if len(view) - position < RECORD_MIN_BYTES:
        return None
    magic, length, lsn, header_length = _PREFIX.unpack(view[position : position + PREFIX_BYTES])
    if magic != MAGIC or (expected_lsn is not None and lsn != expected_lsn):
        return None
    if length < RECORD_MIN_BYTES + header_length or position + length > len(view):
        return None
    whole = view[position : position + length]
    if hashlib.sha256(whole[:-DIGEST_BYTES]).digest() != whole[-DIGEST_BYTES:]:
        return None
    header = _decode_header(bytes(whole[PREFIX_BYTES : PREFIX_BYTES + header_length]))
    payloads = whole[PREFIX_BYTES + header_length : -DIGEST_BYTES]
    operations = tuple(_operation(place, payloads) for place in header.operations)
    for operation in operations:
        check_path(operation)
    start = base + position
    return Record(lsn, header.cause, operations, start, start + length)


def head_lengths(prefix: bytes) -> tuple[int, int, int]:
    """(length of the record, its lsn, length of its header) from its first ``PREFIX_BYTES``. Raises DamagedRecord."""
    magic, length, lsn, header_length = _PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise DamagedRecord("no record begins here")
    return length, lsn, header_length


def decode_head(lsn: int, header_data: bytes, *, segment: int, end: int) -> RecordHead:
    """The head of a record that is known to be whole, such as one at or below ``applied``."""
    header = _decode_header(header_data)
    return RecordHead(lsn, header.cause, tuple(place.path for place in header.operations), segment, end)


def decode_payloads(header_data: bytes, *, begin: int) -> list[Payload]:
    """Where the payloads of a record stand, whose header ends at ``begin`` of its segment. Raises DamagedRecord."""
    return [
        Payload(place.path, begin + place.at, begin + place.at + place.length)
        for place in _decode_header(header_data).operations
        if place.op in ("put", "append")
    ]


def is_purged(data: bytes) -> bool:
    """Whether these bytes of a Put stand in for a text that ``purge_history`` removed: NULs, which no text holds."""
    return bool(data) and data.count(0) == len(data)


def purge(data: bytes, path: tuple[str, ...]) -> bytes:
    """A whole record, whose checksum was proved, without the bytes that it puts at ``path``.

    NULs stand in their place and the checksum is computed again, so length, number and offsets stay what they were.
    """
    _, _, header_length = head_lengths(data[:PREFIX_BYTES])
    begin = PREFIX_BYTES + header_length
    purged = bytearray(data)
    for place in _decode_header(data[PREFIX_BYTES:begin]).operations:
        if place.op == "put" and place.path == path:
            at = begin + place.at
            purged[at : at + place.length] = bytes(place.length)
    purged[-DIGEST_BYTES:] = hashlib.sha256(purged[:-DIGEST_BYTES]).digest()
    return bytes(purged)


def check_path(operation: Operation) -> None:
    """Refuse an operation on anything but Markdown, registries, folders of content, and outcomes.

    Raises DamagedRecord.
    """
    top, *rest = operation.path or ("",)
    if top == CONTENT and rest:
        *folders, last = rest
        if all(names.is_stem(name) for name in folders):
            if isinstance(operation, MakeFolder):
                if names.is_stem(last):
                    return
            elif last == REGISTRY_NAME and not isinstance(operation, Remove):
                return
            elif last.endswith(names.ENTRY_SUFFIX) and names.is_stem(last[: -len(names.ENTRY_SUFFIX)]):
                if not isinstance(operation, Append):
                    return
    elif top == PRIVATE and len(rest) == 3 and rest[0] == OUTCOMES and isinstance(operation, Put):
        if _OUTCOME_SHARD.fullmatch(rest[1]) and _OUTCOME_NAME.fullmatch(rest[2]):
            return
    raise DamagedRecord("a record names a path that no record may change")


def _decode_header(data: bytes) -> _Header:
    try:
        header = _header_decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise DamagedRecord("a record's header has an unknown form") from error
    if header.format != FORMAT:
        raise DamagedRecord(f"a record has the unknown format {header.format}")
    return header


def _operation(place: _Place, payloads: memoryview) -> Operation:
    data = bytes(payloads[place.at : place.at + place.length])
    if len(data) != place.length:
        raise DamagedRecord("a payload is missing")
    match place.op:
        case "mkdir":
            return MakeFolder(place.path)
        case "put":
            return Put(place.path, data)
        case "append":
            return Append(place.path, place.offset, data)
        case "del":
            return Remove(place.path)
    raise DamagedRecord("a record holds an unknown operation")
