"""A model of a disk that loses power: what was synced stays, of all else any part may.

``Recorder`` notes every durable step while real stores work on real files. ``Disk`` is fed with those steps and
``sample`` draws a state that a cut could leave: writes that were not synced are there, lost, zeroed or cut;
names that were not synced are there, lost, or there without those before them. Bytes inside the durable size of a
file are old, new, or new up to some point; a sync that failed leaves writes that no later sync makes durable, unless
they are written again.
"""

import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kb.store import steps

Node = tuple[str, int]  # ("file" | "folder", id)
Entry = tuple[int, str, Node | None]  # folder, name, what stands there now
Write = tuple[int, bytes | None]  # offset and bytes; or size and None: cut to it

# How rename counts: one step; two where it leads to another folder; always two.
WHOLE, SPLIT_BETWEEN_FOLDERS, SPLIT = range(3)
RENAMES = (WHOLE, SPLIT_BETWEEN_FOLDERS, SPLIT)


@dataclass(frozen=True)
class Event:
    """One durable step. ``target`` is a file's or folder's id; ``entries`` are the names that it changes."""

    kind: str
    target: int = 0
    entries: tuple[Entry, ...] = ()
    write: Write = (0, None)


@dataclass
class Image:
    """What is on a disk: the names in every folder and the bytes of every file. The top folder has id 0."""

    folders: dict[int, dict[str, Node]] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)

    def copy(self) -> "Image":
        """Another image that can be changed on its own."""
        return Image({number: dict(names) for number, names in self.folders.items()}, dict(self.files))

    def change(self, entry: Entry) -> None:
        """Let one name stand for something else, or for nothing."""
        folder, name, node = entry
        names = self.folders.setdefault(folder, {})
        if node is None:
            names.pop(name, None)
            return
        names[name] = node
        if node[0] == "folder":
            self.folders.setdefault(node[1], {})

    def write_to(self, top: Path) -> None:
        """Make it real, in place of whatever is there."""
        shutil.rmtree(top, ignore_errors=True)
        pending: list[tuple[int, str]] = [(0, str(top))]
        while pending:
            number, path = pending.pop()
            os.mkdir(path, 0o700)
            for name, (kind, node) in self.folders.get(number, {}).items():
                if kind == "folder":
                    pending.append((node, f"{path}/{name}"))
                else:
                    descriptor = os.open(f"{path}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                    os.write(descriptor, self.files[node])
                    os.close(descriptor)


class Recorder:
    """Notes the durable steps of this process below one organization's directory, in order.

    A step that ``dropped`` picks by its name and place is carried out and not noted, as if it had been left out.
    """

    def __init__(self, top: Path, *, dropped: Callable[[str, str], bool] = lambda step, place: False) -> None:
        self.events: list[Event] = []
        self._dropped = dropped
        self._ids: dict[int, int] = {}
        self._next = 0
        self.start = self._read(top)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Note what happens inside the block."""
        with pytest.MonkeyPatch.context() as patched:
            for name in ("create", "write_at", "truncate", "rename", "unlink", "make_directory"):
                patched.setattr(steps, name, getattr(self, "_" + name)(getattr(steps, name)))
            for name in ("sync_data", "sync_file", "sync_directory", "sync_filesystem"):
                patched.setattr(steps, name, self._sync(name.replace("_", " "), getattr(steps, name)))
            yield

    def _read(self, top: Path) -> Image:
        image = Image()
        pending = [top]
        self._new(os.stat(top).st_ino)
        while pending:
            path = pending.pop()
            names: dict[str, Node] = {}
            image.folders[self._ids[os.stat(path).st_ino]] = names
            for found in os.scandir(path):
                number = self._new(found.inode())
                if found.is_dir():
                    names[found.name] = ("folder", number)
                    if path.name == "claims":
                        continue  # locks, not state: they are made beside the steps
                    pending.append(Path(found.path))
                else:
                    names[found.name] = ("file", number)
                    image.files[number] = Path(found.path).read_bytes()
        return image

    def _new(self, inode: int) -> int:
        number = self._ids[inode] = self._next
        self._next += 1
        return number

    def _id(self, descriptor: int) -> int:
        return self._ids[os.fstat(descriptor).st_ino]

    def _note(self, kind: str, **what: Any) -> None:
        self.events.append(Event(kind, **what))

    def _create(self, real: Callable[..., int]) -> Callable[..., int]:
        def create(directory: int, name: str, place: str) -> int:
            descriptor = real(directory, name, place)
            number = self._new(os.fstat(descriptor).st_ino)
            self._note("name", target=number, entries=((self._id(directory), name, ("file", number)),))
            return descriptor

        return create

    def _write_at(self, real: Callable[..., None]) -> Callable[..., None]:
        def write_at(descriptor: int, offset: int, data: bytes, place: str) -> None:
            whole = bytes(data)
            for at in range(0, len(whole), steps.WRITE_CHUNK_BYTES):
                piece = whole[at : at + steps.WRITE_CHUNK_BYTES]
                real(descriptor, offset + at, piece, place)
                self._note("write", target=self._id(descriptor), write=(offset + at, piece))

        return write_at

    def _truncate(self, real: Callable[..., None]) -> Callable[..., None]:
        def truncate(descriptor: int, size: int, place: str) -> None:
            real(descriptor, size, place)
            self._note("write", target=self._id(descriptor), write=(size, None))

        return truncate

    def _rename(self, real: Callable[..., None]) -> Callable[..., None]:
        def rename(source: int, source_name: str, target: int, target_name: str, place: str) -> None:
            moved = os.stat(source_name, dir_fd=source, follow_symlinks=False)
            real(source, source_name, target, target_name, place)
            node = ("folder" if stat.S_ISDIR(moved.st_mode) else "file", self._ids[moved.st_ino])
            self._note(
                "name",
                entries=((self._id(target), target_name, node), (self._id(source), source_name, None)),
            )

        return rename

    def _unlink(self, real: Callable[..., None]) -> Callable[..., None]:
        def unlink(directory: int, name: str, place: str) -> None:
            real(directory, name, place)
            self._note("name", entries=((self._id(directory), name, None),))

        return unlink

    def _make_directory(self, real: Callable[..., None]) -> Callable[..., None]:
        def make_directory(directory: int, name: str, place: str) -> None:
            real(directory, name, place)
            number = self._new(os.stat(name, dir_fd=directory, follow_symlinks=False).st_ino)
            self._note("name", target=number, entries=((self._id(directory), name, ("folder", number)),))

        return make_directory

    def _sync(self, step: str, real: Callable[..., None]) -> Callable[..., None]:
        def sync(descriptor: int, place: str) -> None:
            everything = step == "sync filesystem"
            if not everything and os.fstat(descriptor).st_ino not in self._ids:
                real(descriptor, place)
                return  # above the folder that is modelled
            is_folder = not everything and stat.S_ISDIR(os.fstat(descriptor).st_mode)
            kind = "sync all" if everything else "sync folder" if is_folder else "sync"
            try:
                real(descriptor, place)
            except OSError:
                self._note(f"failed {kind}", target=0 if everything else self._id(descriptor))
                raise
            if not self._dropped(step, place):
                self._note(kind, target=0 if everything else self._id(descriptor))

        return sync


class Disk:
    """The durable image, and in order what is not durable yet."""

    def __init__(self, start: Image, *, renames: int = WHOLE) -> None:
        self.durable = start.copy()
        self._renames = renames
        self._names: list[tuple[Entry, ...]] = []
        self._writes: dict[int, list[Write]] = {}
        self._lost: dict[int, list[Write]] = {}

    def feed(self, event: Event) -> None:
        """Let one more step happen."""
        match event.kind:
            case "name":
                # A file that nobody wrote to is empty, whether or not its name is durable.
                if event.entries[0][2] == ("file", event.target):
                    self.durable.files.setdefault(event.target, b"")
                self._names += self._parts(event.entries)
            case "write":
                self._writes.setdefault(event.target, []).append(event.write)
            case "sync":
                self._flush(event.target)
            case "sync folder":
                self._flush_names(event.target)
            case "sync all":
                for number in list(self._writes):
                    self._flush(number)
                for entries in self._names:
                    for entry in entries:
                        self.durable.change(entry)
                self._names = []
            case "failed sync":
                self._lose(event.target)
            case "failed sync all":
                for number in list(self._writes):
                    self._lose(number)
            case "failed sync folder":
                pass
            case _:
                raise AssertionError(event.kind)

    def sample(self, rng: random.Random) -> Image:
        """One image that could be found after a cut now."""
        image = self.durable.copy()
        for entries in self._names_that_stay(rng):
            for entry in entries:
                image.change(entry)
        for number in self._writes.keys() | self._lost.keys():
            writes = self._lost.get(number, []) + self._writes.get(number, [])
            image.files[number] = _some_of(writes, image.files[number], rng)
        return image

    def _parts(self, entries: tuple[Entry, ...]) -> list[tuple[Entry, ...]]:
        folders = {folder for folder, _, _ in entries}
        if self._renames == SPLIT or (self._renames == SPLIT_BETWEEN_FOLDERS and len(folders) > 1):
            return [(entry,) for entry in entries]
        return [entries]

    def _flush(self, number: int) -> None:
        data = self.durable.files[number]
        writes = self._writes.pop(number, [])
        for write in writes:
            data = _written(data, write)
        self.durable.files[number] = data
        # Only what was written again since is no longer lost.
        lost = [write for write in self._lost.pop(number, []) if not _covers(writes, write)]
        if lost:
            self._lost[number] = lost

    def _flush_names(self, folder: int) -> None:
        kept = []
        for entries in self._names:
            if any(changed == folder for changed, _, _ in entries):
                for entry in entries:
                    self.durable.change(entry)
            else:
                kept.append(entries)
        self._names = kept

    def _lose(self, number: int) -> None:
        self._lost.setdefault(number, []).extend(self._writes.pop(number, []))

    def _names_that_stay(self, rng: random.Random) -> list[tuple[Entry, ...]]:
        match rng.choice(["none", "all", "some", "some", "first", "first of each folder"]):
            case "none":
                return []
            case "some":
                return [entries for entries in self._names if rng.random() < 0.5]
            case "first":
                return self._names[: rng.randint(0, len(self._names))]
            case "first of each folder":
                left = {folder: rng.randint(0, 6) for entries in self._names for folder, _, _ in entries}
                stay = []
                for entries in self._names:
                    if all(left[folder] > 0 for folder, _, _ in entries):
                        stay.append(entries)
                    for folder, _, _ in entries:
                        left[folder] -= 1
                return stay
        return list(self._names)


def _written(data: bytes, write: Write) -> bytes:
    offset, new = write
    if len(data) < offset:
        data += bytes(offset - len(data))
    return data[:offset] if new is None else data[:offset] + new + data[offset + len(new) :]


def _covers(writes: list[Write], lost: Write) -> bool:
    offset, data = lost
    end = offset + len(data or b"")
    return any(
        (new is None and at <= offset) or (new is not None and at <= offset and at + len(new) >= end)
        for at, new in writes
    )


def _some_of(writes: list[Write], durable: bytes, rng: random.Random) -> bytes:
    how = rng.choice(["none", "all", "each", "each", "first", "zero", "cut"])
    if how == "none":
        return durable
    if how == "first":
        writes, how = writes[: rng.randint(0, len(writes))], "all"
    data = durable
    for write in writes:
        this = rng.choice(["all", "none", "zero", "cut"]) if how == "each" else how
        if this == "none":
            continue
        offset, new = write
        if new is not None and this in ("zero", "cut"):
            stays = 0 if this == "zero" else rng.randint(0, len(new))
            # Bytes that were durable are old; those by which the file grew are zeros, or it did not grow.
            old = durable[offset + stays : offset + len(new)]
            grown = bytes(len(new) - stays - len(old)) if this == "zero" or rng.random() < 0.5 else b""
            new = new[:stays] + old + grown
        data = _written(data, (offset, new))
    return data
