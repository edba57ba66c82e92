"""Rigs for what two processes may do to each other: who waits for whom, and what each of them sees."""

import itertools
import mmap
import struct
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection

import pytest

from core.errors import StorageUnavailable
from kb.store import content_store
from kb.store.images import DamagedEntry
from tests.store import account
from tests.store.changes import Create, Import, Refused, Retitle, Update, make
from tests.store.children import Child, ChildFailed, in_child, killed_at
from tests.store.kills import Findings, look, look_with_lsn
from tests.store.seeing import picture
from tests.store.small import Small

CROWD = 3
# How long a reader stays inside while nobody relieves it.
PATIENCE_SECONDS = 0.03


def read_while_another_saves(small: Small) -> list[str]:
    """A reader stands in the middle of its look while another process saves all that it looks at."""

    def read(connection: Connection) -> None:
        with small.opened() as store, store.snapshot() as view:
            before = {line.name: line for line in view.root.entries.values()}
            connection.send(("done", None))
            connection.recv()
            try:
                texts = {view.read_content(view.root.folder, line) for line in before.values()}
            except DamagedEntry:
                texts = set()
            connection.send(("done", texts))

    def save(text: str) -> str:
        with pytest.MonkeyPatch.context() as patched, small.opened() as store:
            patched.setattr(content_store, "CONTENT_WAIT_SECONDS", 0.05)
            try:
                for name in ("x.md", "y.md"):
                    make(store, Update(name, text))
            except StorageUnavailable:
                return "waits"
            return "saved"

    def seed() -> None:
        with small.opened() as store:
            make(store, Import({"x.md": "old\n", "y.md": "old\n"}))

    in_child(seed)
    reader = Child(read)
    try:
        reader.hear()
        saved = in_child(partial(save, "new\n"))
        texts = reader.ask("go on")
    finally:
        reader.kill()
    problems = [] if texts == {b"old\n"} else [f"the reader got {texts} in one look"]
    return problems if saved == "waits" else [*problems, "a save went through under a reader"]


def crowd(
    small: Small,
    *,
    readers: int,
    writers: int,
    enough: Callable[[int, int], bool],
    patience_seconds: float = PATIENCE_SECONDS,
) -> tuple[int, int]:
    """Let so many read and so many save without a pause until ``enough(saves, reads)``; returns both.

    A reader stays inside until another one came in after it, or for ``patience_seconds``: left to themselves they
    never all leave.
    """
    counted, entered = (mmap.mmap(-1, 8 * (readers + writers)) for _ in range(2))

    def count(place: int) -> None:
        before = struct.unpack_from("q", counted, 8 * place)[0]
        struct.pack_into("q", counted, 8 * place, before + 1)

    def write(place: int, connection: Connection) -> None:
        store = small.open()
        picture(store)
        while not all(moment for (moment,) in struct.iter_unpack("q", entered[8 * writers :])):
            time.sleep(0.0005)  # everybody is there first
        for number in itertools.count():
            try:
                make(store, Update(f"w{place}.md", f"{number}\n"))
            except StorageUnavailable:
                continue
            count(place)

    def read(place: int, connection: Connection) -> None:
        store = small.open()
        while True:
            try:
                with store.still():
                    now = time.monotonic_ns()
                    struct.pack_into("q", entered, 8 * place, now)
                    _wait_for_relief(entered, now, patience_seconds)
            except StorageUnavailable:
                continue
            count(place)

    def seed() -> None:
        with small.opened() as store:
            for place in range(writers):
                make(store, Create(f"w{place}.md", "text\n"))

    in_child(seed)
    children = [
        Child(partial(write if place < writers else read, place)) for place in range(writers + readers)
    ]
    try:
        while True:
            counts = struct.unpack(f"{readers + writers}q", counted[:])
            saves, reads = sum(counts[:writers]), sum(counts[writers:])
            if enough(saves, reads):
                return saves, reads
            time.sleep(0.001)
    finally:
        for child in children:
            child.kill()


def _wait_for_relief(entered: mmap.mmap, now: int, patience_seconds: float) -> None:
    until = time.monotonic() + patience_seconds
    while time.monotonic() < until:
        if any(moment > now for (moment,) in struct.iter_unpack("q", entered[:])):
            return
        time.sleep(0.0002)


def compact_twice_beside_a_reader(small: Small) -> list[str]:
    """A registry is written anew twice, to the same size, between two looks of a process that knows it."""
    problems = []
    with pytest.MonkeyPatch.context() as patched, small.opened() as reader, small.opened() as writer:
        patched.setattr(content_store, "COMPACT_SLACK_LINES", -1000)
        make(writer, Create("again.md", "text\n"))
        for title in ("aaaa", "bbbb", "cccc", "dddd"):
            picture(reader)
            try:
                make(writer, Retitle("again.md", title))
                make(writer, Retitle("again.md", title[::-1].upper()))
                if picture(reader) != account.picture_of(account.tree(small.top)[0]):
                    problems.append(f"a reader missed the change to {title}")
            except (StorageUnavailable, Refused) as refused:
                problems.append(f"a reader or writer is refused: {refused!r}")
    return problems


def rot_in_the_last_record(past: Small) -> list[str]:
    """A byte of the last record turns, which was acknowledged; a process starts."""
    problems = []
    keys = account.read_log(past.top).request_keys()
    record = account.read_log(past.top).records[-1]
    for position in range(record.start, record.end, 97):
        trial = past.copy_to(past.data_dir.parent / "trial")
        segment = trial.segments()[-1]
        data = bytearray(segment.read_bytes())
        data[position] ^= 1
        segment.write_bytes(bytes(data))
        try:
            in_child(partial(look, trial))
        except ChildFailed:
            if not trial.fault.exists():
                problems.append("a start failed and nothing is marked")
            continue
        if account.read_log(trial.top).request_keys() != keys:
            problems.append("an acknowledged record was cut off as if it were torn")
    return problems


def kill_the_replay_of_many(past: Small) -> Findings:
    """``applied`` is damaged while a reader lives; who replays is killed before each step; the reader looks at once."""
    findings = Findings()
    last = account.read_log(past.top).last_lsn
    for number in itertools.count(1):
        trial = past.copy_to(past.data_dir.parent / "trial")
        reader = Child(partial(_live, trial))
        try:
            reader.hear()
            (trial.private / "applied").write_bytes(bytes(40))
            step = killed_at(number, partial(look, trial))
            if step is None:
                return findings
            findings.kills += 1
            lsn, seen = reader.ask(look_with_lsn)
            files, _ = account.fold(account.read_log(trial.top).records)
            if lsn != last or seen != account.picture_of(files):
                findings.violations.append(f"killed before {step}: the reader sees another state")
        except ChildFailed as failure:
            findings.violations.append(f"killed before {step}: {str(failure).strip().splitlines()[-1]}")
        finally:
            reader.kill()
    raise AssertionError


def _live(small: Small, connection: Connection) -> None:
    store = small.open()
    connection.send(("done", look_with_lsn(store)))
    while True:
        connection.send(("done", connection.recv()(store)))
