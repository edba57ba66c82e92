"""The lines of a folder's ``.registry.jsonl``: what Brain knows of a folder beside the Markdown itself.

A file begins with a snapshot line that carries the number of the log record that wrote the whole file; then one
line for each change, and of two lines with one id the last wins. A line is eight hexadecimal digits of the CRC-32
of its JSON, a blank, the JSON and LF. Times are RFC 3339 in UTC. Sequences are numbers of log records, so they
only grow; callers never see them.
"""

import zlib
from collections.abc import Iterable, Iterator

import msgspec

from core.types import Actor

REGISTRY_NAME = ".registry.jsonl"
# A snapshot line fits into this many bytes: the key under which a process recognises a registry file.
KEY_BYTES = 64


class DamagedRegistry(Exception):
    """A line's checksum or form is wrong. Unreadable is never taken for empty."""


class SnapshotLine(msgspec.Struct, frozen=True, tag="snapshot", tag_field="kind"):
    """The first line: the file was written whole by record ``lsn``."""

    lsn: int


class OwnLine(msgspec.Struct, frozen=True, tag="self", tag_field="kind"):
    """The folder's own id. ``ever_backed_up`` is a fact about the organization and stands at the root alone."""

    lsn: int
    id: str
    ever_backed_up: bool = False


class FolderLine(msgspec.Struct, frozen=True, tag="folder", tag_field="kind"):
    """A child folder."""

    lsn: int
    id: str
    name: str
    created_at: str
    created_by: Actor


class EntryLine(msgspec.Struct, frozen=True, tag="entry", tag_field="kind"):
    """A live entry. ``lsn`` is its change sequence: content, metadata and existence all advance it.

    ``content_hash`` is the SHA-256 and ``git_blob`` Git's id of the same bytes; ``content_seq`` and
    ``existence_seq`` are the records that last changed the bytes and that created the entry.
    """

    lsn: int
    id: str
    name: str
    title: str
    type: str
    description: str
    tags: tuple[str, ...]
    content_seq: int
    existence_seq: int
    content_hash: str
    git_blob: str
    size_bytes: int
    total_lines: int
    created_at: str
    created_by: Actor
    updated_at: str
    updated_by: Actor


class TombstoneLine(msgspec.Struct, frozen=True, tag="tombstone", tag_field="kind"):
    """A deleted entry. ``id`` is the deletion id; ``reserved`` says that its path may not be used again yet."""

    lsn: int
    id: str
    entry_id: str
    name: str
    content_hash: str
    git_blob: str
    content_seq: int
    existence_seq: int
    deleted_at: str
    deleted_by: Actor
    reserved: bool


Line = OwnLine | FolderLine | EntryLine | TombstoneLine


def tombstone_of(
    entry: EntryLine, deletion_id: str, *, lsn: int, at: str, by: Actor, reserved: bool
) -> TombstoneLine:
    """The line that ends an entry: deleted by record ``lsn`` as it stood then."""
    return TombstoneLine(
        lsn=lsn,
        id=deletion_id,
        entry_id=entry.id,
        name=entry.name,
        content_hash=entry.content_hash,
        git_blob=entry.git_blob,
        content_seq=entry.content_seq,
        existence_seq=lsn,
        deleted_at=at,
        deleted_by=by,
        reserved=reserved,
    )


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[SnapshotLine | Line] = msgspec.json.Decoder(
    SnapshotLine | OwnLine | FolderLine | EntryLine | TombstoneLine
)


def encode_lines(lines: Iterable[SnapshotLine | Line]) -> bytes:
    """The bytes that these lines append to a registry file."""
    return b"".join(_encode(line) for line in lines)


def encode_snapshot(lsn: int, lines: Iterable[Line]) -> bytes:
    """The bytes of a whole registry file, written by record ``lsn``."""
    return _encode(SnapshotLine(lsn=lsn)) + encode_lines(lines)


def decode_lines(data: bytes) -> list[SnapshotLine | Line]:
    """The lines in these bytes, which begin and end at line ends. Raises DamagedRegistry."""
    if data and not data.endswith(b"\n"):
        raise DamagedRegistry("the last line is not complete")
    return [_decode(line) for line in data.split(b"\n")[:-1]]


def readable_lines(data: bytes) -> Iterator[SnapshotLine | Line]:
    """The lines that can still be read in a damaged registry: for repair alone."""
    for line in data.split(b"\n"):
        try:
            yield _decode(line)
        except DamagedRegistry:
            continue


class LiveLines:
    """The lines of a registry that count: the last one of each id. A tombstone ends its entry."""

    def __init__(self) -> None:
        self.own: OwnLine | None = None
        self.children: dict[str, FolderLine] = {}
        self.entries: dict[str, EntryLine] = {}
        self.tombstones: dict[str, TombstoneLine] = {}

    def take(self, line: SnapshotLine | Line) -> None:
        """Let a line count."""
        match line:
            case OwnLine():
                self.own = line
            case FolderLine():
                self.children[line.id] = line
            case EntryLine():
                self.entries[line.id] = line
            case TombstoneLine():
                self.entries.pop(line.entry_id, None)
                self.tombstones[line.id] = line

    @property
    def live_count(self) -> int:
        """How many lines a registry written anew has beside its first one."""
        return 1 + len(self.children) + len(self.entries) + len(self.tombstones)

    def all_lines(self) -> list[Line]:
        """The lines that a registry written anew has. The folder's own line must be among them."""
        assert self.own is not None
        return [self.own, *self.children.values(), *self.entries.values(), *self.tombstones.values()]


def live(lines: Iterable[SnapshotLine | Line]) -> LiveLines:
    """What counts of these lines, which stand in the order of the file."""
    counting = LiveLines()
    for line in lines:
        counting.take(line)
    return counting


def _encode(line: SnapshotLine | Line) -> bytes:
    body = _encoder.encode(line)
    return b"%08x " % zlib.crc32(body) + body + b"\n"


def _decode(line: bytes) -> SnapshotLine | Line:
    body = line[9:]
    if line[:9] != b"%08x " % zlib.crc32(body):
        raise DamagedRegistry("a line does not match its checksum")
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise DamagedRegistry("a line has an unknown form") from error
