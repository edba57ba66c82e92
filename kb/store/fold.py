"""What the log says the tree should be: an account of every file, made from the records alone.

Damage does not stop it: what can be read behind a damaged record still counts, and the damage is listed.
"""

import errno
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from core import ids, safe_open
from core.progress import SILENT, Progress
from kb.registry import REGISTRY_NAME
from kb.store import record as records
from kb.store.layout import Layout, segment_name
from kb.store.marks import Mark
from kb.store.record import Append, DamagedRecord, MakeFolder, Put, Record, Remove
from kb.store.segments import Segments

Path = tuple[str, ...]


@dataclass(slots=True)
class FoldedFile:
    """What the log knows of a file that should be there.

    ``known_from`` is the offset from which its bytes are known: 0 unless the log no longer holds the file's
    beginning. ``size`` is where they end, ``digest`` runs over all between.
    """

    known_from: int
    size: int
    digest: "hashlib._Hash"

    def matches(self, data: bytes) -> bool:
        """Whether a file with these bytes is what the log says, as far as it knows."""
        return len(data) == self.size and (
            hashlib.sha256(data[self.known_from :]).digest() == self.digest.digest()
        )


@dataclass(frozen=True, slots=True)
class LogDamage:
    """Bytes of a segment that are no record, or numbers that do not count on."""

    segment: int
    offset: int
    what: str


@dataclass(slots=True)
class Fold:
    """The account of the log up to record ``last_lsn``, which began with ``first_lsn``."""

    first_lsn: int = 0
    last_lsn: int = 0
    records: int = 0
    files: dict[Path, FoldedFile] = field(default_factory=dict)
    removed: set[Path] = field(default_factory=set)
    damages: list[LogDamage] = field(default_factory=list)

    def take(self, record: Record) -> None:
        """Let one more record count."""
        self.first_lsn = self.first_lsn or record.lsn
        self.last_lsn = record.lsn
        self.records += 1
        for operation in record.operations:
            match operation:
                case Put(path=path, data=data):
                    self.removed.discard(path)
                    self.files[path] = FoldedFile(0, len(data), hashlib.sha256(data))
                case Append(path=path, offset=offset, data=data):
                    self._append(path, offset, data)
                case Remove(path=path):
                    self.files.pop(path, None)
                    self.removed.add(path)
                case MakeFolder():
                    pass

    def _append(self, path: Path, offset: int, data: bytes) -> None:
        known = self.files.get(path)
        if known is None or known.size != offset:
            known = self.files[path] = FoldedFile(offset, offset, hashlib.sha256())
        known.digest.update(data)
        known.size += len(data)


def fold_log(layout: Layout, *, up_to: int | None = None, progress: Progress = SILENT) -> Fold:
    """Fold every segment, up to record ``up_to`` where given. Reads one segment at a time into memory."""
    fold = Fold()
    for found in walk_log(layout):
        if isinstance(found, LogDamage):
            fold.damages.append(found)
        elif up_to is None or found[1].lsn <= up_to:
            fold.take(found[1])
            progress.advance()
    return fold


def walk_log(layout: Layout) -> Iterator[LogDamage | tuple[int, Record]]:
    """Every readable record with its segment, oldest first, and the damage between them."""
    expected: int | None = None
    for segment in Segments(layout).first_lsns():
        if expected is not None and segment != expected:
            yield LogDamage(
                segment, 0, f"record {expected} should come next, the segment begins with {segment}"
            )
        for found in _walk_segment(layout, segment):
            if not isinstance(found, LogDamage):
                expected = found[1].lsn + 1
            yield found


def follow(layout: Layout, fold: Fold, start: Mark, end: Mark) -> None:
    """Let the records behind ``start`` up to ``end``, which were applied meanwhile, count too."""
    segments = Segments(layout)
    lsn, segment, offset = start.lsn, start.segment, start.offset
    for head in segments.heads(start, end):
        if head.segment != segment:
            segment, offset = head.segment, 0
        data = segments.read_range(segment, offset, head.end)
        found = records.decode_at(data, 0, expected_lsn=lsn + 1, base=offset)
        if found is None:
            fold.damages.append(LogDamage(segment, offset, "a record is damaged"))
        else:
            fold.take(found)
        lsn, offset = head.lsn, head.end


def registry_path(components: tuple[str, ...]) -> Path:
    """The path of a folder's registry as records name it."""
    return (records.CONTENT, *components, REGISTRY_NAME)


def content_in_log(layout: Layout, wanted: dict[Path, str]) -> Iterator[tuple[Path, bytes]]:
    """Images of entries: for each path the bytes with the wanted SHA-256, if the log holds them. Newest last."""
    for found in walk_log(layout):
        if isinstance(found, LogDamage):
            continue
        for operation in found[1].operations:
            if isinstance(operation, Put) and ids.sha256_hex(operation.data) == wanted.get(operation.path):
                yield operation.path, operation.data


def file_in_log(layout: Layout, path: Path, *, up_to: int) -> bytes | None:
    """The bytes that the records up to ``up_to`` give a file; None where the log no longer tells all of them."""
    data: bytes | None = None
    for found in walk_log(layout):
        if isinstance(found, LogDamage):
            # A change of the file may have stood here.
            data = None
            continue
        if found[1].lsn > up_to:
            break
        for operation in found[1].operations:
            if operation.path != path:
                continue
            match operation:
                case Put(data=put):
                    data = put
                case Append(offset=offset, data=tail) if data is not None and len(data) >= offset:
                    data = data[:offset] + tail
                case _:
                    data = None
    return data


def _walk_segment(layout: Layout, segment: int) -> Iterator[LogDamage | tuple[int, Record]]:
    try:
        data = safe_open.read_file(layout.log, (segment_name(segment),))
    except OSError as error:
        yield LogDamage(segment, 0, f"the segment cannot be read ({_problem(error)})")
        return
    position, expected = 0, segment
    while position < len(data):
        found = _decode(data, position, expected)
        if isinstance(found, Record):
            yield segment, found
            position, expected = found.end, found.lsn + 1
            continue
        yield LogDamage(segment, position, found)
        position, behind = _next_record(data, position)
        if behind is None:
            return
        expected = behind


def _problem(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error))


def _decode(data: bytes, position: int, expected: int | None) -> Record | str:
    try:
        found = records.decode_at(data, position, expected_lsn=expected)
    except DamagedRecord as error:
        return str(error)
    return found if found is not None else f"record {expected} should stand here and does not"


def _next_record(data: bytes, position: int) -> tuple[int, int | None]:
    """Where the next readable record begins, and its lsn; None where there is none."""
    while (position := data.find(records.MAGIC, position + 1)) >= 0:
        found = _decode(data, position, None)
        if isinstance(found, Record):
            return position, found.lsn
    return len(data), None
