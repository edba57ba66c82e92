"""An account of an organization that knows nothing of the store's code: the log folded by hand, the files as they are.

It is the judge of every rig, so it shares nothing with ``kb.store`` but the format written down in docs and code.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAGIC = b"\xff\x00BRNLG1"
PREFIX = struct.Struct(">8sQQI")
REGISTRY = ".registry.jsonl"

Files = dict[str, bytes]
# What a reader sees: for each entry its bytes and its registry line; for each folder its id.
Picture = tuple[dict[str, tuple[bytes, str]], dict[str, str]]


@dataclass(frozen=True)
class LoggedRecord:
    """One record as it stands in the log."""

    lsn: int
    time: str
    action: str
    request_key: str | None
    operations: tuple[tuple[str, str, int, bytes], ...]
    segment: int
    start: int
    end: int


@dataclass
class LogReading:
    """Everything in the log that can be read, and what is wrong with the rest."""

    records: list[LoggedRecord] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def last_lsn(self) -> int:
        return self.records[-1].lsn if self.records else 0

    def request_keys(self) -> list[str]:
        """The requests that had an effect, in order."""
        return [record.request_key for record in self.records if record.request_key]


def read_log(top: Path) -> LogReading:
    """Read every segment. Records must count on without a gap and be the only thing in the files."""
    reading = LogReading()
    for path in sorted((top / "private/log").iterdir()):
        segment, data, position = int(path.name.removesuffix(".log")), path.read_bytes(), 0
        if reading.records and segment != reading.last_lsn + 1:
            reading.problems.append(f"segment {segment} follows record {reading.last_lsn}")
        while position < len(data):
            record = _read_record(data, position, segment)
            if record is None:
                reading.problems.append(
                    f"segment {segment} ends in {len(data) - position} bytes that are no record"
                )
                break
            if reading.records and record.lsn != reading.last_lsn + 1:
                reading.problems.append(f"record {record.lsn} follows {reading.last_lsn}")
            if reading.records and record.time < reading.records[-1].time:
                reading.problems.append(f"the time went back at record {record.lsn}")
            reading.records.append(record)
            position = record.end
    return reading


def _read_record(data: bytes, position: int, segment: int) -> LoggedRecord | None:
    if len(data) - position < PREFIX.size:
        return None
    magic, length, lsn, header_length = PREFIX.unpack_from(data, position)
    whole = data[position : position + length]
    if magic != MAGIC or len(whole) != length or hashlib.sha256(whole[:-32]).digest() != whole[-32:]:
        return None
    header = json.loads(whole[PREFIX.size : PREFIX.size + header_length])
    payloads = whole[PREFIX.size + header_length : -32]
    operations = tuple(
        (
            place["op"],
            "/".join(place["path"]),
            place.get("offset", 0),
            payloads[place.get("at", 0) : place.get("at", 0) + place.get("length", 0)],
        )
        for place in header["operations"]
    )
    cause = header["cause"]
    return LoggedRecord(
        lsn,
        cause["time"],
        cause["action"],
        cause["request_key"],
        operations,
        segment,
        position,
        position + length,
    )


def fold(records: Iterable[LoggedRecord]) -> tuple[Files, set[str]]:
    """The files and folders that these records lead to."""
    files: Files = {}
    folders: set[str] = set()
    for record in records:
        for operation, path, offset, data in record.operations:
            if operation == "mkdir":
                folders.add(path)
            elif operation == "put":
                files[path] = data
            elif operation == "append":
                before = files.get(path, b"")
                assert len(before) >= offset, f"record {record.lsn} appends behind the end of {path}"
                files[path] = before[:offset] + data
            elif operation == "del":
                files.pop(path, None)
            else:
                raise AssertionError(f"unknown operation {operation}")
    return files, folders


def tree(top: Path) -> tuple[Files, set[str]]:
    """The files and folders that there are: content and outcomes."""
    files: Files = {}
    folders: set[str] = set()
    for part in ("content", "private/outcomes"):
        for path in (top / part).rglob("*"):
            name = path.relative_to(top).as_posix()
            if path.is_file():
                files[name] = path.read_bytes()
            elif part == "content":
                folders.add(name)
    return files, folders


def registry_lines(data: bytes) -> list[dict[str, Any]]:
    """The lines of a registry file, each proved against its checksum."""
    assert data.endswith(b"\n"), "the registry does not end in a line end"
    lines = []
    for line in data[:-1].split(b"\n"):
        assert int(line[:8], 16) == zlib.crc32(line[9:]), "a line does not match its checksum"
        lines.append(json.loads(line[9:]))
    assert lines[0]["kind"] == "snapshot", "the first line is no snapshot"
    return lines


def picture_of(files: Files) -> Picture:
    """What readers must see when these are the files. Raises AssertionError where they contradict each other."""
    entries: dict[str, tuple[bytes, str]] = {}
    folders: dict[str, str] = {}
    wanted = {"content/" + REGISTRY}
    pending = [""]
    while pending:
        path = pending.pop()
        place = f"content/{path}/" if path else "content/"
        live: dict[str, dict[str, Any]] = {}
        for line in registry_lines(files[place + REGISTRY]):
            if line["kind"] == "self":
                folders[path] = line["id"]
            elif line["kind"] == "folder" and line["id"] not in live:
                pending.append(f"{path}/{line['name']}" if path else line["name"])
                wanted.add(f"{place}{line['name']}/{REGISTRY}")
                live[line["id"]] = line
            elif line["kind"] == "entry":
                live[line["id"]] = line
            elif line["kind"] == "tombstone":
                live.pop(line["entry_id"], None)
        for line in live.values():
            if line["kind"] == "entry":
                data = files[place + line["name"]]
                assert hashlib.sha256(data).hexdigest() == line["content_hash"], (
                    f"{place}{line['name']} is another text"
                )
                blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
                assert blob == line["git_blob"], f"{place}{line['name']} has another blob id"
                entries[f"{path}/{line['name']}" if path else line["name"]] = (
                    data,
                    json.dumps(line, sort_keys=True),
                )
                wanted.add(place + line["name"])
    strange = {name for name in files if name.startswith("content/")} - wanted
    assert not strange, f"files that no registry names: {sorted(strange)}"
    return entries, folders


def mark(path: Path) -> tuple[int, int, int, int] | None:
    """The four numbers of ``applied`` or ``checkpoint``: lsn, segment, offset, applying. None where damaged."""
    data = path.read_bytes()[:40]
    if len(data) != 40 or data[:4] != b"BRM1" or struct.unpack(">I", data[36:])[0] != zlib.crc32(data[:36]):
        return None
    lsn, segment, offset, applying = struct.unpack(">QQQQ", data[4:36])
    return lsn, segment, offset, applying


def problems_at_rest(
    top: Path, *, acknowledged: Iterable[str] = (), reading: LogReading | None = None
) -> list[str]:
    """What is wrong with an organization of which no change is under way. ``acknowledged`` are request keys.

    ``reading`` is the log, where more is known of it than the files hold.
    """
    reading = reading or read_log(top)
    found = list(reading.problems)
    try:
        files, folders = fold(reading.records)
        present, present_folders = tree(top)
        found += [f"{name} is missing" for name in sorted(files.keys() - present.keys())]
        found += [f"{name} is too much" for name in sorted(present.keys() - files.keys())]
        found += [
            f"{name} is not what the log says"
            for name in sorted(files.keys() & present.keys())
            if files[name] != present[name]
        ]
        found += [f"the folder {name} differs" for name in sorted(folders ^ present_folders)]
        picture_of(present)
    except (AssertionError, KeyError, ValueError) as error:
        found.append(f"{type(error).__name__}: {error}")
    found += _problems_of_marks(top, reading)
    found += [f"{path.name} is left in stage" for path in (top / "private/stage").iterdir()]
    keys = reading.request_keys()
    found += [
        f"request {key} had {keys.count(key)} effects" for key in sorted(set(keys)) if keys.count(key) > 1
    ]
    found += [f"the acknowledged request {key} is lost" for key in sorted(set(acknowledged) - set(keys))]
    if (top / "private/fault").exists():
        found.append("a fault is marked")
    return found


def _problems_of_marks(top: Path, reading: LogReading) -> list[str]:
    applied, durable = mark(top / "private/applied"), mark(top / "private/checkpoint")
    if applied is None or durable is None:
        return ["a mark is damaged"]
    found = []
    last = reading.records[-1]
    if applied[0] != last.lsn or applied[3] > applied[0]:
        found.append(f"applied says {applied}, the log ends with record {last.lsn}")
    elif applied[1:3] != (last.segment, last.end) and applied[1:3] != (last.lsn + 1, 0):
        found.append(f"applied says {applied}, record {last.lsn} ends at {last.segment}:{last.end}")
    if durable[0] > applied[0]:
        found.append(f"the checkpoint {durable[0]} is ahead of applied {applied[0]}")
    return found
