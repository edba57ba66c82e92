"""The pack: the folded texts of all entries in path order, in one file that every process maps.

    magic, numbers of entries and folders, lsn | texts | offsets | ids | folders of entries | folder table | SHA-256

A text is filename, title, description and content, folded, with LF between them and a NUL behind. Folding changes
lengths, so places in a text mean nothing outside the pack. The pack holds what readers may not see: it never leaves
``private/``, and its searcher looks only into the runs of folders that the caller may read.
"""

import bisect
import hashlib
import os
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import stringzilla

from core import limits, names
from core.folding import fold
from core.types import FolderRef
from kb.registry import EntryLine
from kb.store.derived import MappedFile

MAGIC = b"BRNPCK2\n"
SUFFIX = ".pack"
# Entry ids are padded to this, so that the n-th is found without a table.
ID_BYTES = 32
# stringzilla holds the interpreter while it looks, so it looks at so much at a time.
SCAN_BYTES = 4 * 1024 * 1024
WRITTEN_BYTES = 1024 * 1024
FILENAME_BYTES = limits.NAME_MAX_CHARACTERS + len(names.ENTRY_SUFFIX) + 1
_HEADER = struct.Struct("<8sQQQQ")
_FOLDER = struct.Struct("<32sII")
DIGEST_BYTES = 32


# The path of a folder id.
FolderPaths = Callable[[str], str]


class DamagedPack(Exception):
    """The file is not a whole pack. It is only a cache: throw it away and build another."""


@dataclass(frozen=True, slots=True)
class PackedText:
    """One entry on its way into a pack."""

    folder: FolderRef
    entry: EntryLine
    text: bytes


def text_of(entry: EntryLine, content: str) -> bytes:
    """What is searched of an entry, folded."""
    return fold("\n".join((entry.name, entry.title, entry.description, content))).encode()


def pack_name(lsn: int) -> str:
    """The file name of the pack that covers the log up to ``lsn``; later packs sort behind earlier ones."""
    return f"{lsn:020d}{SUFFIX}"


def write_pack(descriptor: int, lsn: int, texts: Iterable[PackedText]) -> None:
    """Write a pack of texts that come in path order, holding few of them in memory. Raises OSError."""
    offsets, ids, folders = array("Q", [0]), bytearray(), array("I")
    runs: dict[str, list[int]] = {}
    numbers: dict[str, int] = {}
    pieces = _Pieces(descriptor, _HEADER.size)
    for number, packed in enumerate(texts):
        pieces.add(packed.text)
        pieces.add(b"\0")
        offsets.append(offsets[-1] + len(packed.text) + 1)
        ids += packed.entry.id.encode().ljust(ID_BYTES, b"\0")
        folders.append(numbers.setdefault(packed.folder.id, len(numbers)))
        for folder_id in packed.folder.lineage:
            runs.setdefault(folder_id, [number, number])[1] = number + 1
    # The folders that hold entries come first, in the order of their numbers.
    table = b"".join(
        _FOLDER.pack(folder_id.encode(), *runs[folder_id])
        for folder_id in [*numbers, *(one for one in runs if one not in numbers)]
    )
    for data in (offsets.tobytes(), bytes(ids), folders.tobytes(), table):
        pieces.add(data)
    pieces.finish(_HEADER.pack(MAGIC, len(folders), len(runs), lsn, offsets[-1]))


class _Pieces:
    """Writes what follows a header as it comes, a megabyte at a time; then a digest, and last the header."""

    def __init__(self, descriptor: int, header_size: int) -> None:
        self._descriptor = descriptor
        self._position = header_size
        self._digest = hashlib.sha256()
        self._waiting: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= WRITTEN_BYTES:
            self._flush()

    def finish(self, header: bytes) -> None:
        self._flush()
        self._digest.update(header)
        self._write(self._digest.digest(), self._position)
        self._write(header, 0)

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._digest.update(data)
        self._write(data, self._position)
        self._position += len(data)
        self._waiting, self._size = [], 0

    def _write(self, data: bytes, position: int) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest, position)
            rest, position = rest[written:], position + written


class Pack:
    """A mapped pack. Threads may search it at the same time."""

    def __init__(self, file: MappedFile) -> None:
        """Check and take over a mapped file. Raises DamagedPack."""
        self.file = file
        data = file.data
        if len(data) < _HEADER.size + DIGEST_BYTES:
            raise DamagedPack
        header = data[: _HEADER.size]
        magic, self.count, folder_count, self.lsn, text_bytes = _HEADER.unpack(header)
        ends = [_HEADER.size]
        for size in (
            text_bytes,
            8 * (self.count + 1),
            ID_BYTES * self.count,
            4 * self.count,
            _FOLDER.size * folder_count,
        ):
            ends.append(ends[-1] + size)
        if magic != MAGIC or ends[-1] + DIGEST_BYTES != len(data):
            raise DamagedPack
        digest = hashlib.sha256(data[_HEADER.size : ends[-1]])
        digest.update(header)
        if digest.digest() != data[ends[-1] :]:
            raise DamagedPack
        self._texts = data[ends[0] : ends[1]]
        self._offsets = data[ends[1] : ends[2]].cast("Q")
        self._ids = data[ends[2] : ends[3]]
        self._folders = data[ends[3] : ends[4]].cast("I")
        self._folder_ids: list[str] = []
        self._runs: dict[str, tuple[int, int]] = {}
        for position in range(ends[4], ends[5], _FOLDER.size):
            folder_id, first, last = _FOLDER.unpack(data[position : position + _FOLDER.size])
            name = folder_id.rstrip(b"\0").decode()
            self._folder_ids.append(name)
            self._runs[name] = (first, last)

    def run_of(self, folder_id: str) -> tuple[int, int]:
        """The numbers of the entries in the folder and below it: first, and one behind the last."""
        return self._runs.get(folder_id, (0, 0))

    def entry_id(self, number: int) -> str:
        """The id of the n-th entry."""
        return bytes(self._ids[ID_BYTES * number : ID_BYTES * (number + 1)]).rstrip(b"\0").decode()

    def first_behind(self, place: str, folder_paths: FolderPaths) -> int:
        """The number of the first entry behind a place in path order."""
        if place == "":
            return 0
        return bisect.bisect_right(
            range(self.count), place, key=lambda number: self._place(number, folder_paths)
        )

    def find(self, needle: bytes, runs: Sequence[tuple[int, int]]) -> Iterator[int]:
        """The numbers of the entries in these runs whose text holds ``needle``, ascending."""
        overlap = len(needle) - 1
        for first, last in runs:
            position, end = self._offsets[first], self._offsets[last]
            while position < end:
                stop = min(position + SCAN_BYTES, end)
                found = stringzilla.find(self._texts, needle, position, min(stop + overlap, end))
                if found < 0:
                    position = stop
                    continue
                number = bisect.bisect_right(self._offsets, found) - 1
                yield number
                position = self._offsets[number + 1]

    def _place(self, number: int, folder_paths: FolderPaths) -> str:
        start = self._offsets[number]
        name = bytes(self._texts[start : start + FILENAME_BYTES]).split(b"\n", 1)[0].decode()
        folder = folder_paths(self._folder_ids[self._folders[number]])
        return (names.fold(folder) + "/" if folder else "") + name
