"""A disk that refuses: errors before chosen steps, as the kernel would report them, and what must hold then."""

import errno
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from core.errors import StorageUnavailable
from kb.store import content_store, steps
from kb.store.content_store import ContentStore
from tests.store import account
from tests.store.changes import Change, Create, make, request_of
from tests.store.kills import REQUEST, Case, with_constants
from tests.store.seeing import picture
from tests.store.small import Small, vanish

CHANGING = ("create", "write", "truncate", "allocate", "rename", "mkdir")
CAN_FAIL_WITH = {
    errno.ENOSPC: CHANGING,
    errno.EROFS: (*CHANGING, "unlink"),
    errno.EIO: (*CHANGING, "unlink", "sync data", "sync file", "sync directory", "sync filesystem"),
}


@dataclass
class Refusing:
    """A hook for ``steps``: raises ``number`` before each step that ``concerns`` picks, from the ``first`` on.

    ``seen`` lists what was refused, at most ``times`` steps.
    """

    concerns: Callable[[str, str], bool]
    number: int = errno.EIO
    first: int = 1
    times: int = 1_000_000
    seen: list[str] = field(default_factory=list)
    met: int = 0

    def __call__(self, step: str, place: str) -> None:
        if not self.concerns(step, place):
            return
        self.met += 1
        if self.met >= self.first and len(self.seen) < self.times:
            self.seen.append(f"{step} {place}")
            raise OSError(self.number, os.strerror(self.number))


def syncs_of(part: str) -> Callable[[str, str], bool]:
    """Every sync of what lies below this path of the organization."""
    return lambda step, place: step.startswith("sync") and (place + "/").startswith(part)


@dataclass
class Findings:
    """How many errors were injected, what the calls said, and what was wrong."""

    errors: int = 0
    saved: int = 0
    refused: int = 0
    reads_refused: int = 0
    violations: list[str] = field(default_factory=list)


def refuse_everywhere(past: Small, case: Case, number: int, *, lasting: bool) -> Findings:
    """Fail each step of a change in turn, once or from there on; others live, one reader started before."""
    findings = Findings()
    kinds = CAN_FAIL_WITH[number]
    with pytest.MonkeyPatch.context() as patched:
        with_constants(patched, case)
        for first in itertools.count(1):
            trial = past.copy_to(past.data_dir.parent / "trial")
            reader, store = trial.open(), trial.open()
            refusing = Refusing(
                lambda step, place: step in kinds, number, first=first, times=1_000_000 if lasting else 1
            )
            try:
                picture(reader), picture(store)
                steps.hook = refusing
                problems = _meet(trial, case, reader, store, findings, refusing)
            finally:
                steps.hook = None
                vanish(reader)
                vanish(store)
            if not refusing.seen:
                return findings
            findings.errors += 1
            where = f"{case.name}, {errno.errorcode[number]} at {refusing.seen[0]}"
            findings.violations += [f"{where}: {problem}" for problem in problems]
    raise AssertionError


def _meet(
    trial: Small,
    case: Case,
    reader: ContentStore,
    store: ContentStore,
    findings: Findings,
    refusing: Refusing,
) -> list[str]:
    answer = attempt(store, case.change)
    if answer == "saved":
        findings.saved += 1
    else:
        findings.refused += 1
    problems = []
    for who, one in (("a reader", reader), ("the saver", store)):
        try:
            seen = picture(one)
        except StorageUnavailable:
            findings.reads_refused += 1
            applied = account.mark(trial.private / "applied")
            if applied is not None and applied[3] <= applied[0]:
                problems.append(f"{who} is refused, though the tree is whole")
        else:
            if seen != _picture_at_mark(trial):
                problems.append(f"{who} sees a state that never was")
    # The trouble is over: what was saved is there, what was refused can be repeated, for one effect.
    steps.hook = None
    heir = trial.open()
    try:
        if picture(heir) != _picture_at_mark(trial):
            problems.append("a later start sees something else than the log says")
        logged = request_of(REQUEST).key in account.read_log(trial.top).request_keys()
        if case.change is not None and answer == "saved" and not logged:
            problems.append("it was saved, and is not in the log")
        again = [attempt(heir, case.change), attempt(store, case.change)]
        if again != ["saved", "saved"]:
            problems.append(f"a repeated request is answered {again}")
        if trial.fault.exists():
            problems.append("a fault is marked")
        return problems + account.problems_at_rest(trial.top)
    except StorageUnavailable as refused:
        return [*problems, f"a later start is refused: {refused.__cause__!r}"]
    finally:
        vanish(heir)


def attempt(store: ContentStore, change: Change | None, request: str = REQUEST) -> str:
    """``saved`` or ``refused``; for upkeep, that it was tried."""
    if change is None:
        store.checkpoint()
        content_store._sync_failed.clear()
        return "saved"
    try:
        make(store, change, request)
    except StorageUnavailable:
        return "refused"
    return "saved"


def _picture_at_mark(trial: Small) -> account.Picture:
    applied = account.mark(trial.private / "applied")
    assert applied is not None
    reading = account.read_log(trial.top)
    files, _ = account.fold(record for record in reading.records if record.lsn <= applied[0])
    return account.picture_of(files)


def space_runs_out_behind_the_commit(
    small: Small, change: Change, use_up: Callable[[], object], give_back: Callable[[], object]
) -> list[str]:
    """Somebody takes all that is free once the record is durable; later it is given back. What is wrong."""
    problems = []
    with small.opened() as store:
        picture(store)
        taken: list[str] = []

        def take_all(step: str, place: str) -> None:
            if not taken and step == "write" and place == "private/applied":
                taken.append(place)
                use_up()

        steps.hook = take_all
        answer = attempt(store, change)
        steps.hook = None
        assert taken
        if answer != "saved":
            problems.append("a committed save could not be finished")
        try:
            if picture(store) != _picture_at_mark(small):
                problems.append("a reader sees a state that never was")
        except StorageUnavailable:
            problems.append("a reader is refused")
        give_back()
        if attempt(store, change) != "saved":
            problems.append("the request cannot be repeated when there is space again")
        store.checkpoint()
    return problems + account.problems_at_rest(small.top)


def disk_fills_up(small: Small, give_space: Callable[[], None], *, text: str, saves: int) -> list[str]:
    """Save until there is no room, and on; then there is room again. What is wrong."""
    problems = []
    saved: list[str] = []
    refused = 0
    with small.opened() as store:
        for number in range(saves):
            request = f"save {number}"
            if attempt(store, Create(f"e{number}.md", text), request) == "saved":
                saved.append(request_of(request).key)
            else:
                refused += 1
            try:
                if picture(store) != _picture_at_mark(small):
                    problems.append(f"after save {number} a reader sees a state that never was")
            except StorageUnavailable:
                problems.append(f"after save {number} a reader is refused")
        if refused == 0:
            problems.append("the disk never was full")
        if small.leftovers():
            problems.append(f"{small.leftovers()} is left in stage")
        give_space()
        if attempt(store, Create("after.md", text), "after") != "saved":
            problems.append("writes do not come back with the space")
        store.checkpoint()
    return problems + account.problems_at_rest(small.top, acknowledged=saved)
