"""Rigs that kill: at every step of a change, at every step of the recovery after it, with and without a living reader.

Each rig returns what it found; a test says what there must be. A violation is a sentence.
"""

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from core.errors import StorageUnavailable
from kb.store import checkpoint, content_store
from kb.store.content_store import ContentStore
from tests.store import account
from tests.store.changes import Change, Create, Delete, Import, MakeFolder, Retitle, Update, make, request_of
from tests.store.children import Child, ChildFailed, Killed, in_child, killed_at
from tests.store.seeing import picture
from tests.store.small import Small

REQUEST = "the request that is cut off"


@dataclass(frozen=True)
class Case:
    """What is cut off: a change under a request, or upkeep; with constants that bring it about."""

    name: str
    change: Change | None
    constants: Mapping[str, object] = field(default_factory=dict)
    stride: int = 1

    def work(self, small: Small) -> None:
        """What the process does that is killed."""
        store = small.open()
        if self.change is not None:
            make(store, self.change, REQUEST)
        else:
            picture(store)
            store.checkpoint()


CASES = [
    Case("create", Create("F/new.md", "new\n" * 1000)),
    Case("update", Update("a.md", "another text\n" * 500)),
    Case("metadata-only", Retitle("a.md", "Another title")),
    Case("delete", Delete("b.md")),
    Case("create folder", MakeFolder("G/H")),
    Case("reuse of a deleted path", Create("gone.md", "back again\n")),
    Case(
        "import",
        Import({f"I/J{number % 4}/e{number}.md": f"{number}\n" * 40 for number in range(50)}),
        stride=3,
    ),
    Case("several writes", Update("F/c.md", "z" * 3_000_000)),
    Case("compaction", Retitle("a.md", "Another title"), {"content_store.COMPACT_SLACK_LINES": -1000}),
    Case("segment roll", Create("new.md", "new\n"), {"content_store.SEGMENT_BYTES": 1}),
    Case("checkpoint", None),
    Case("checkpoint of the filesystem", None, {"checkpoint.PATHS_MAX": 0}),
]


@dataclass
class Findings:
    """What a rig tried and found."""

    kills: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, case: Case, step: str, problems: list[str]) -> None:
        """Note what was wrong after a kill."""
        self.violations += [f"{case.name}, killed before {step}: {problem}" for problem in problems]


def prepared(data_dir: Path) -> Small:
    """An organization with a past: some records below its checkpoint, some above, and everybody dead."""

    def past() -> None:
        store = small.open()
        changes: list[Change] = [
            Create("a.md", "first\n"),
            Create("b.md", "other\n"),
            MakeFolder("F"),
            Create("F/c.md", "third\n"),
            Create("gone.md", "for a while\n"),
        ]
        for number, change in enumerate(changes):
            make(store, change, f"past {number}")
        store.checkpoint()
        make(store, Update("F/c.md", "fourth\n"), "past 6")
        make(store, Delete("gone.md"), "past 7")

    small = Small(data_dir).provision().without_spare_shards()
    in_child(past)
    return small


def with_constants(patched: pytest.MonkeyPatch, case: Case) -> None:
    """Set the constants of the case, for this process and its children."""
    for name, value in case.constants.items():
        module, _, constant = name.partition(".")
        patched.setattr({"content_store": content_store, "checkpoint": checkpoint}[module], constant, value)


def kills_of(past: Small, case: Case, *, stride: int = 1) -> Iterator[tuple[str, Small]]:
    """Kill the case before its first step, its second one …; gives the step and what was left each time."""
    number = 1
    while True:
        trial = past.copy_to(past.data_dir.parent / "trial")
        step = killed_at(number, partial(case.work, trial))
        if step is None:
            return
        yield step, trial
        number += stride


def look(small: Small) -> account.Picture:
    """What a process that starts now sees; it ends without a stop."""
    return picture(small.open())


def retry(small: Small, change: Change) -> list[object]:
    """What the request is answered, and what once more."""
    store = small.open()
    return [make(store, change, REQUEST), make(store, change, REQUEST)]


def problems_after(past: Small, trial: Small) -> list[str]:
    """What is wrong once a process has started after the kill: nothing between before and after, nothing left."""
    found = problems_of_start(trial)
    known = account.read_log(past.top).records
    logged = account.read_log(trial.top).records
    if logged[: len(known)] != known:
        found.append("the past is another one")
    if any(record.request_key not in (None, request_of(REQUEST).key) for record in logged[len(known) :]):
        found.append("there is more than the request asked for")
    return found + account.problems_at_rest(trial.top)


def problems_of_start(trial: Small) -> list[str]:
    """Let a process start and look; what is wrong with what it sees."""
    try:
        seen = in_child(partial(look, trial))
    except ChildFailed as failure:
        return [f"a start failed: {str(failure).strip().splitlines()[-1]}"]
    except Killed:
        return ["a start was killed"]
    try:
        files, _ = account.fold(account.read_log(trial.top).records)
        return [] if seen == account.picture_of(files) else ["a start sees something else than the log says"]
    except (AssertionError, KeyError) as error:
        return [f"the log makes no sense: {error}"]


def problems_of_retry(trial: Small, case: Case) -> list[str]:
    """Repeat the request twice; it must have had one effect, before or now, and one answer."""
    if case.change is None:
        return []
    try:
        answers = in_child(partial(retry, trial, case.change))
    except ChildFailed as failure:
        return [f"the retry failed: {str(failure).strip().splitlines()[-1]}"]
    records = [r for r in account.read_log(trial.top).records if r.request_key == request_of(REQUEST).key]
    found = account.problems_at_rest(trial.top)
    if len(records) != 1:
        found.append(f"the request had {len(records)} effects")
    elif [answer["lsn"] for answer in answers] != [records[0].lsn] * 2:  # type: ignore[index]
        found.append("the request got another answer than what happened")
    return found


def kill_everywhere(past: Small, case: Case, *, stride: int = 1) -> Findings:
    """Kill before every step while nobody else lives; then a process starts, looks, and repeats the request."""
    findings = Findings()
    with pytest.MonkeyPatch.context() as patched:
        with_constants(patched, case)
        for step, trial in kills_of(past, case, stride=stride):
            findings.kills += 1
            problems = problems_after(past, trial)
            findings.add(case, step, problems or problems_of_retry(trial, case))
    return findings


def kill_beside_a_reader(past: Small, case: Case, *, stride: int = 1) -> Findings:
    """The same beside a reader that started before: it looks at once, saves something small, repeats the request."""
    findings = Findings()
    with pytest.MonkeyPatch.context() as patched:
        with_constants(patched, case)
        number = 1
        while True:
            trial = past.copy_to(past.data_dir.parent / "trial")
            reader = Child(partial(_live, trial))
            try:
                reader.hear()
                step = killed_at(number, partial(case.work, trial))
                if step is None:
                    return findings
                findings.kills += 1
                findings.add(case, step, _problems_of_living(past, trial, case, reader))
            finally:
                reader.kill()
            number += stride


def _live(small: Small, connection: Connection) -> None:
    store = small.open()
    connection.send(("done", picture(store)))
    while True:
        work = connection.recv()
        try:
            connection.send(("done", work(store)))
        except StorageUnavailable as refused:
            connection.send(("failed", repr(refused)))


def look_with_lsn(store: ContentStore) -> tuple[int, account.Picture]:
    """The record that led to what is seen, and what is seen."""
    with store.snapshot() as view:
        lsn = view.lsn
    return lsn, picture(store)


def _problems_of_living(past: Small, trial: Small, case: Case, reader: Child) -> list[str]:
    try:
        lsn, seen = reader.ask(look_with_lsn)
        reading = account.read_log(trial.top)
        found: list[str] = []
        files, _ = account.fold(record for record in reading.records if record.lsn <= lsn)
        if seen != account.picture_of(files):
            found.append("the living reader sees a state that never was")
        if lsn < account.read_log(past.top).last_lsn:
            found.append("the living reader sees less than was acknowledged")
        reader.ask(partial(make, change=Retitle("F/c.md", "small"), request="small"))
        found += account.read_log(trial.top).problems
        if case.change is not None:
            answers = [reader.ask(partial(make, change=case.change, request=REQUEST)) for _ in range(2)]
            if answers[0] != answers[1]:
                found.append("the request got two answers")
    except ChildFailed as failure:
        return [f"the living reader failed: {str(failure).strip().splitlines()[-1]}"]
    except (AssertionError, KeyError) as error:
        return [f"the log makes no sense: {error}"]
    if account.read_log(trial.top).problems:
        found += account.read_log(trial.top).problems
    if found:
        return found
    # What a dead writer staged is removed by the process that comes in its place.
    found = problems_of_start(trial) + account.problems_at_rest(trial.top)
    keys = account.read_log(trial.top).request_keys()
    wanted = [request_of(name).key for name in (["small"] if case.change is None else ["small", REQUEST])]
    return found + [f"a request had {keys.count(key)} effects" for key in wanted if keys.count(key) != 1]


def kill_the_recovery(past: Small, case: Case, *, stride: int = 1, offset: int = 0) -> Findings:
    """Kill before every step, and then the process that starts after it before each of its steps.

    With a ``stride`` each state is tried at every n-th step only, beginning with another one each time.
    """
    findings = Findings()
    seen: set[str] = set()
    with pytest.MonkeyPatch.context() as patched:
        with_constants(patched, case)
        for step, trial in kills_of(past, case, stride=case.stride):
            state = fingerprint(trial)
            if state in seen:
                continue
            seen.add(state)
            left = trial.copy_to(past.data_dir.parent / "left")
            for number in itertools.count(1 + (len(seen) + offset) % stride, stride):
                again = left.copy_to(past.data_dir.parent / "trial")
                second = killed_at(number, partial(_start, again))
                if second is None:
                    break
                findings.kills += 1
                findings.add(case, f"{step}, then {second}", problems_after(past, again))
    return findings


def _start(small: Small) -> None:
    look(small)


def fingerprint(small: Small) -> str:
    """The same for two states of the disk that no process could tell apart."""
    digest = hashlib.sha256()
    for path in sorted(small.top.rglob("*")):
        name = path.relative_to(small.top).as_posix()
        if not name.startswith(("private/claims", "private/locks", "private/reserve")):
            data = path.read_bytes() if path.is_file() else b"/"
            digest.update(f"{len(name)} {len(data)} {name}".encode() + data)
    return digest.hexdigest()
