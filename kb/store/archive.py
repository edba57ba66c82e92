"""The file that an instance backup is: a plain tar of regular files, closed by a list of them with their hashes.

Any tar can read it. The reader here takes exactly what the writer makes and refuses everything else that a tar may
hold: links, devices, folders, owners of its own, sizes that the file does not have, anything behind the end.
"""

import hashlib
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import msgspec

from core import clock, limits, safe_open
from core.progress import SILENT, Progress
from kb.store import steps

FORMAT = 1
MANIFEST = "manifest.json"
MANIFEST_SUM = "manifest.sha256"
PARTIAL_SUFFIX = ".partial"
CHUNK_BYTES = 1 << 20
MANIFEST_MAX_BYTES = 1_024 * limits.MIB
PATH_MAX_BYTES = 4 * limits.KIB
_BLOCK = tarfile.BLOCKSIZE
_CHECKSUM = slice(148, 156)
_EXTENSION = re.compile(rb"(\d{1,5}) (path|size)=")


class BadArchive(Exception):
    """This is no whole instance backup. The message says why, for an administrator."""


class ArchivedFile(msgspec.Struct, frozen=True):
    """One file of the archive."""

    path: str
    size: int
    sha256: str


class Place(msgspec.Struct, frozen=True):
    """How far the log goes: the last record, its segment, and the offset behind it."""

    lsn: int
    segment: int
    offset: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the archive is of, and every file in it in their order. ``layout`` is that of the data directory."""

    format: int = FORMAT
    layout: str
    made_at: str
    organization_id: str
    log_end: Place
    has_secrets: bool
    files: tuple[ArchivedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A file in the archive, and where its bytes begin."""

    path: str
    size: int
    start: int


class ArchiveWriter:
    """A new archive, which has another name until it is whole. Use it in a ``with`` block, and ``finish`` inside it."""

    def __init__(self, target: Path, progress: Progress = SILENT) -> None:
        self._target = target
        self._partial = target.name + PARTIAL_SUFFIX
        self._progress = progress
        self._directory = -1
        self._descriptor = -1
        self._is_whole = False
        self.restart()

    def __enter__(self) -> "ArchiveWriter":
        """Make the file. Raises FileExistsError where the target or a part of it is there, OSError."""
        self._directory = os.open(self._target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if self._target.name in os.listdir(self._directory):
                raise FileExistsError(self._target.name)
            self._descriptor = steps.create(self._directory, self._partial, "")
        except BaseException:
            os.close(self._directory)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        try:
            if not self._is_whole:
                steps.unlink(self._directory, self._partial, "")
        finally:
            os.close(self._directory)

    def restart(self) -> None:
        """Forget what was written: it is all written again."""
        self._offset = 0
        self._buffer = bytearray()
        self._files: list[ArchivedFile] = []
        if self._descriptor != -1:
            steps.truncate(self._descriptor, 0, self._partial)

    def add(self, path: str, data: bytes) -> None:
        """Add a file with these bytes."""
        self.add_stream(path, len(data), (data,))

    def add_stream(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        """Add a file of ``size`` bytes. Raises OSError, also where it turns out to be shorter."""
        digest = self._write_member(path, size, chunks)
        self._files.append(ArchivedFile(path, size, digest))

    def finish(self, manifest: Manifest) -> int:
        """Write the list of files, sync, and give the archive its name; returns its size.

        Raises OSError, FileExistsError where somebody took the name meanwhile.
        """
        listed = msgspec.json.encode(msgspec.structs.replace(manifest, files=tuple(self._files)))
        digest = self._write_member(MANIFEST, len(listed), (listed,))
        self._write_member(MANIFEST_SUM, len(digest), (digest.encode("ascii"),))
        self._write(bytes(2 * _BLOCK))
        self._flush()
        steps.sync_file(self._descriptor, self._partial)
        steps.rename_new(self._directory, self._partial, self._target.name, "")
        self._is_whole = True
        steps.sync_directory(self._directory, "")
        return self._offset

    def _write_member(self, path: str, size: int, chunks: Iterable[bytes]) -> str:
        header = tarfile.TarInfo(path)
        header.size, header.mode, header.mtime = size, safe_open.PRIVATE_FILE, int(clock.now().timestamp())
        self._write(header.tobuf(tarfile.PAX_FORMAT))
        digest, written = hashlib.sha256(), 0
        for chunk in chunks:
            digest.update(chunk)
            written += len(chunk)
            self._write(chunk)
            self._progress.advance(len(chunk))
        if written != size:
            raise OSError(f"{path} changed its size while it was copied")
        self._write(bytes(-size % _BLOCK))
        return digest.hexdigest()

    def _write(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) >= CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        steps.write_at(self._descriptor, self._offset, bytes(self._buffer), self._partial)
        self._offset += len(self._buffer)
        self._buffer.clear()


class ArchiveReader:
    """An archive that is there. Use it in a ``with`` block."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._descriptor = -1
        self.size = 0

    def __enter__(self) -> "ArchiveReader":
        """Open the file. Raises OSError, UnsafeFile."""
        directory = os.open(self._source.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._descriptor = safe_open.open_file(directory, self._source.name)
        finally:
            os.close(directory)
        self.size = os.fstat(self._descriptor).st_size
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def members(self) -> Iterator[Member]:
        """Every file in the archive, in order, with the list of them at the end. Raises BadArchive."""
        offset = 0
        while True:
            block = self._read(offset, _BLOCK)
            if block == bytes(_BLOCK):
                break
            extended: dict[str, str] = {}
            header = _parse(block)
            offset += _BLOCK
            if header.type == tarfile.XHDTYPE:
                extended = self._extension(header, offset)
                offset += _padded(header.size)
                header = _parse(self._read(offset, _BLOCK))
                offset += _BLOCK
            if header.type != tarfile.REGTYPE or header.linkname:
                raise BadArchive(f"{header.name!r} is no regular file")
            size = int(extended.get("size", header.size))
            if not 0 <= size <= self.size - offset:
                raise BadArchive("it ends inside a file")
            yield Member(extended.get("path", header.name), size, offset)
            if any(self._read(offset + size, _padded(size) - size)):
                raise BadArchive("something stands behind the end of a file")
            offset += _padded(size)
        if self.size - offset != 2 * _BLOCK or self._read(offset, 2 * _BLOCK) != bytes(2 * _BLOCK):
            raise BadArchive("something stands behind its end")

    def chunks(self, member: Member) -> Iterator[bytes]:
        """The bytes of a file, piece by piece. Raises BadArchive, OSError."""
        offset, end = member.start, member.start + member.size
        while offset < end:
            chunk = self._read(offset, min(CHUNK_BYTES, end - offset))
            yield chunk
            offset += len(chunk)

    def read(self, member: Member, *, most_bytes: int) -> bytes:
        """All bytes of a file. Raises BadArchive where it has more than ``most_bytes``."""
        if member.size > most_bytes:
            raise BadArchive(f"{member.path} is far too large")
        return b"".join(self.chunks(member))

    def prove(self, progress: Progress = SILENT) -> tuple[Manifest, list[Member]]:
        """Hash every file and compare with the list; returns the list and its files. Raises BadArchive, OSError."""
        progress.begin("Verifying", self.size)
        found: list[Member] = []
        hashes: list[str] = []
        names: set[str] = set()
        for member in self.members():
            if member.path in names:
                raise BadArchive(f"{member.path!r} is in it twice")
            names.add(member.path)
            digest = hashlib.sha256()
            for chunk in self.chunks(member):
                digest.update(chunk)
                progress.advance(len(chunk))
            found.append(member)
            hashes.append(digest.hexdigest())
        if [member.path for member in found[-2:]] != [MANIFEST, MANIFEST_SUM]:
            raise BadArchive("its list of files is missing: it is no instance backup, or not whole")
        if self.read(found[-1], most_bytes=len(hashes[-2])) != hashes[-2].encode("ascii"):
            raise BadArchive("its list of files is damaged")
        manifest = _decode(self.read(found[-2], most_bytes=MANIFEST_MAX_BYTES))
        for listed, member, digest_found in zip_longest(manifest.files, found[:-2], hashes[:-2]):
            if listed is None or member is None or (listed.path, listed.size) != (member.path, member.size):
                raise BadArchive("it does not hold the files that it lists")
            if listed.sha256 != digest_found:
                raise BadArchive(f"{member.path} is damaged")
        return manifest, found[:-2]

    def _extension(self, header: tarfile.TarInfo, offset: int) -> dict[str, str]:
        if not 0 < header.size <= PATH_MAX_BYTES:
            raise BadArchive("a file's name is far too long")
        data = self._read(offset, header.size)
        if any(self._read(offset + header.size, _padded(header.size) - header.size)):
            raise BadArchive("something stands behind a file's name")
        found: dict[str, str] = {}
        while data:
            match = _EXTENSION.match(data)
            end = int(match[1]) if match else 0
            if match is None or not match.end() < end <= len(data) or data[end - 1 : end] != b"\n":
                raise BadArchive("it has a form that no instance backup has")
            value = data[match.end() : end - 1]
            try:
                found[match[2].decode("ascii")] = value.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BadArchive("a file's name is no text") from error
            data = data[end:]
        if not re.fullmatch(r"\d{0,18}", found.get("size", ""), re.ASCII):
            raise BadArchive("a file's size is no number")
        return found

    def _read(self, offset: int, length: int) -> bytes:
        data = os.pread(self._descriptor, length, offset)
        if len(data) != length:
            raise BadArchive("it ends too early")
        return data


def _parse(block: bytes) -> tarfile.TarInfo:
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as error:
        raise BadArchive("it is no tar file, or damaged") from error
    if block[_CHECKSUM] != b"%06o\0 " % header.chksum:
        # The one field that the checksum does not cover.
        raise BadArchive("it is no tar file, or damaged")
    return header


def _decode(data: bytes) -> Manifest:
    try:
        version = msgspec.json.decode(data, type=_Version).format
        if version != FORMAT:
            raise BadArchive(f"it has the format {version}; this version of Brain reads {FORMAT} alone")
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise BadArchive("its list of files has an unknown form") from error


class _Version(msgspec.Struct):
    format: int


def _padded(size: int) -> int:
    return size + -size % _BLOCK
