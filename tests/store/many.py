"""Many processes on one organization, killed at random: writers, readers, and one that keeps checkpoints and checks."""

import contextlib
import hashlib
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection

import pytest

from core.errors import StorageUnavailable
from kb.registry import REGISTRY_NAME
from kb.store import check, checkpoint, content_store
from kb.store.content_store import View
from kb.store.images import DamagedEntry
from tests.store import account
from tests.store.changes import Change, Create, Delete, MakeFolder, Refused, Retitle, Update, make, request_of
from tests.store.children import Child
from tests.store.seeing import picture_in
from tests.store.small import Small

WRITERS, READERS, KEEPERS = 4, 2, 1
FOLDERS = ["", "F", "F/G"]
ALL_DEAD_EVERY = 40


@dataclass
class Findings:
    """What many processes did, and what was wrong."""

    kills: int = 0
    restarts: int = 0
    acknowledged: dict[str, tuple[int, str]] = field(default_factory=dict)
    won: Counter[tuple[str, int]] = field(default_factory=Counter)
    reads: int = 0
    checks: int = 0
    violations: list[str] = field(default_factory=list)


def write(small: Small, seed: int, connection: Connection) -> None:
    """Save at random, for ever; tell each acknowledgement."""
    rng = random.Random(seed)
    store = small.open()
    number = 0
    while True:
        number += 1
        request = f"writer {seed}, request {number}"
        path = f"{rng.choice(FOLDERS)}/e{rng.randrange(8)}.md".lstrip("/")
        text = f"{request}\n" * rng.choice([1, 50, 1500])
        change: Change
        known = None
        match rng.randrange(10):
            case 0:
                change = Delete(path)
            case 1:
                change = MakeFolder(f"F/S{seed}n{number}") if number % 20 == 0 else Retitle(path, request)
            case 2 | 3 | 4:
                change = Create(path, text)
            case _:
                with contextlib.suppress(StorageUnavailable):
                    known = lsn_of(store.snapshot, path)
                change = Update(path, text, expected_lsn=known)
        try:
            answer = make(store, change, request)
        except (Refused, StorageUnavailable):
            continue
        told = hashlib.sha256(text.encode()).hexdigest() if isinstance(change, Create | Update) else ""
        connection.send(("saved", (request_of(request).key, answer["lsn"], told, path, known)))


def lsn_of(snapshot: Callable[[], contextlib.AbstractContextManager[View]], path: str) -> int | None:
    """The change sequence of an entry as it is read now."""
    parent, _, name = path.rpartition("/")
    with snapshot() as view:
        folder = view.folder_at(parent.split("/") if parent else [])
        line = folder.entry_named(name) if folder else None
        return line.lsn if line else None


def read(small: Small, connection: Connection) -> None:
    """Read everything, for ever; tell when something does not fit."""
    store = small.open()
    last, versions = 0, dict[str, int]()
    while True:
        try:
            with store.snapshot() as view:
                problems = _misfits(small, view, versions)
                if view.lsn < last:
                    problems.append(f"the state went back from {last} to {view.lsn}")
                last = view.lsn
        except StorageUnavailable as refused:
            problems = [f"a read is refused: {refused.__cause__!r}"]
        connection.send(("bad", problems) if problems else ("read", None))


def _misfits(small: Small, view: View, versions: dict[str, int]) -> list[str]:
    problems = []
    try:
        _, folders = picture_in(view)
    except DamagedEntry as damaged:
        return [f"the text of {damaged} is not what its registry says"]
    for path, folder_id in folders.items():
        known = view.folder(folder_id)
        assert known is not None
        names = {line.name for line in known.entries.values()} | {
            line.name for line in known.children.values()
        }
        if set(os.listdir(small.content / path)) != names | {REGISTRY_NAME}:
            problems.append(f"the folder {path!r} holds something else than its registry says")
        for line in known.entries.values():
            if line.lsn < versions.get(line.id, 0):
                problems.append(f"the version of {line.name} went back")
            versions[line.id] = line.lsn
    return problems


def keep(small: Small, connection: Connection) -> None:
    """Make checkpoints and check everything, as the server and an administrator do."""
    store = small.open()
    while True:
        try:
            store.checkpoint()
            report = check.check(store)
            problems = [f"{one.place}: {one.what}" for one in report.disagreements]
        except StorageUnavailable as refused:
            problems = [f"a check is refused: {refused.__cause__!r}"]
        connection.send(("bad", problems) if problems else ("checked", None))
        time.sleep(0.05)


def run(small: Small, *, seconds: float, seed: int) -> Findings:
    """Let them work and kill them for so long. Every so often all die at once, and a first process starts."""
    findings = Findings()
    rng = random.Random(seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(content_store, "SEGMENT_BYTES", 150_000)
        patched.setattr(content_store, "COMPACT_SLACK_LINES", 8)
        patched.setattr(checkpoint, "RECORDS_MAX", 60)
        seeds = iter(range(1, 1_000_000))

        def start(place: int) -> Child:
            if place < WRITERS:
                return Child(partial(write, small, next(seeds)))
            return Child(partial(read if place < WRITERS + READERS else keep, small))

        everybody = [start(place) for place in range(WRITERS + READERS + KEEPERS)]
        try:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                time.sleep(rng.choice([0.004, 0.02, 0.06]) * rng.random() * 2)
                for child in everybody:
                    _hear(child, findings)
                all_at_once = findings.kills % ALL_DEAD_EVERY == ALL_DEAD_EVERY - 1
                for place in range(len(everybody)) if all_at_once else [rng.randrange(len(everybody))]:
                    _kill(everybody[place], findings)
                    findings.kills += 1
                    if not all_at_once:
                        everybody[place] = start(place)
                if all_at_once:
                    findings.restarts += 1
                    everybody = [start(place) for place in range(len(everybody))]
        finally:
            for child in everybody:
                _kill(child, findings)
    return findings


def _kill(child: Child, findings: Findings) -> None:
    os.kill(child.pid, 9)
    child.wait()
    _hear(child, findings)
    child.kill()


def _hear(child: Child, findings: Findings) -> None:
    try:
        while child.connection.poll(0):
            kind, value = child.connection.recv()
            if kind == "saved":
                key, lsn, text, path, known = value
                findings.acknowledged[key] = (lsn, text)
                if known is not None:
                    findings.won[path, known] += 1
            elif kind == "read":
                findings.reads += 1
            elif kind == "checked":
                findings.checks += 1
            else:
                findings.violations += [value] if isinstance(value, str) else value
    except (EOFError, ConnectionResetError, BrokenPipeError, TypeError):
        # Killed in the middle of a word: it was never said.
        return


def problems_with(small: Small, findings: Findings) -> list[str]:
    """What is wrong once everybody is gone and one process has started."""
    found = list(findings.violations)
    reading = account.read_log(small.top)
    logged = {record.request_key: record for record in reading.records}
    for key, (lsn, text) in findings.acknowledged.items():
        record = logged.get(key)
        if record is None or record.lsn != lsn:
            found.append(f"the acknowledged save {lsn} is lost")
        elif text:
            puts = [
                hashlib.sha256(data).hexdigest() for op, path, _, data in record.operations if op == "put"
            ]
            if text not in puts:
                found.append(f"save {lsn} holds another text than was acknowledged")
    lsns = [lsn for lsn, _ in findings.acknowledged.values()]
    if len(set(lsns)) != len(lsns):
        found.append("two saves have one number")
    found += [f"{count} writers won on {version}" for version, count in findings.won.items() if count > 1]
    return found + account.problems_at_rest(small.top, acknowledged=findings.acknowledged)
