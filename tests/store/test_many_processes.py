"""Many real processes on one organization: nothing is lost, read half or won twice, whoever is killed when."""

from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection

import pytest

from core.errors import RequestInProgress
from tests.store import account
from tests.store.changes import Create, MakeFolder, Refused, Update, make, request_of, text_of
from tests.store.children import Child, in_child
from tests.store.kills import look
from tests.store.many import lsn_of, problems_with, run
from tests.store.small import Small

Tried = Callable[[str, int], None]


@pytest.fixture
def busy(small: Small) -> Small:
    def seed() -> None:
        with small.opened() as store:
            make(store, MakeFolder("F/G"))

    in_child(seed)
    return small


def killed_for(small: Small, seconds: float, tried: Tried) -> None:
    findings = run(small, seconds=seconds, seed=1)
    in_child(partial(look, small))

    assert problems_with(small, findings) == []
    assert findings.restarts > 0
    assert min(len(findings.acknowledged), findings.reads, findings.checks) > 10
    tried("random kills of many processes", findings.kills)
    tried("acknowledged saves beside them", len(findings.acknowledged))
    tried("whole reads beside them", findings.reads)
    tried("whole checks beside them", findings.checks)


def test_writers_readers_and_a_keeper_that_are_killed_for_twenty_seconds(busy: Small, tried: Tried) -> None:
    killed_for(busy, 20, tried)


@pytest.mark.long(reason="the same for a minute")
def test_writers_readers_and_a_keeper_that_are_killed_for_a_minute(busy: Small, tried: Tried) -> None:
    killed_for(busy, 60, tried)


def in_step(small: Small, work: Callable[[Small, int], object], count: int = 2) -> list[object]:
    """What ``work(small, n)`` returns in so many processes that begin at the same moment."""

    def begin(number: int, connection: Connection) -> None:
        look(small)
        connection.send(("done", "ready"))
        connection.recv()
        connection.send(("done", work(small, number)))

    children = [Child(partial(begin, number)) for number in range(count)]
    try:
        for child in children:
            child.hear()
        for child in children:
            child.tell("go")
        return [child.hear() for child in children]
    finally:
        for child in children:
            child.kill()


def test_two_processes_that_create_forty_entries_each_in_one_folder_lose_none(busy: Small) -> None:
    def create(small: Small, number: int) -> int:
        with small.opened() as store:
            for turn in range(40):
                make(store, Create(f"F/p{number}e{turn}.md", f"{number} {turn}\n"))
        return 40

    assert in_step(busy, create) == [40, 40]

    entries, _ = in_child(partial(look, busy))
    assert {path: data for path, (data, _) in entries.items()} == {
        f"F/p{number}e{turn}.md": f"{number} {turn}\n".encode() for number in range(2) for turn in range(40)
    }
    assert account.problems_at_rest(busy.top) == []


def test_of_two_processes_that_update_one_version_one_wins_in_each_of_twenty_rounds(busy: Small) -> None:
    def update(small: Small, number: int) -> list[int]:
        """The versions on which this process won."""
        won = []
        with small.opened() as store:
            for _ in range(20):
                version = lsn_of(store.snapshot, "a.md")
                assert version is not None
                try:
                    make(
                        store,
                        Update("a.md", f"process {number} on version {version}\n", expected_lsn=version),
                    )
                    won.append(version)
                except Refused:
                    continue
        return won

    def seed() -> None:
        with busy.opened() as store:
            make(store, Create("a.md", "first\n"))

    in_child(seed)
    first = account.read_log(busy.top).last_lsn

    one, other = in_step(busy, update)

    assert isinstance(one, list)
    assert isinstance(other, list)
    assert set(one) & set(other) == set()
    assert len(one) + len(other) >= 20
    assert account.read_log(busy.top).last_lsn == first + len(one) + len(other)
    assert account.problems_at_rest(busy.top) == []


def test_one_request_that_arrives_in_four_processes_at_once_has_one_effect(busy: Small) -> None:
    def ask(small: Small, number: int) -> object:
        with small.opened() as store:
            while True:
                try:
                    return make(store, Create("once.md", "text\n"), "the same everywhere")
                except RequestInProgress:
                    continue

    answers = in_step(busy, ask, count=4)

    assert answers == [answers[0]] * 4
    assert account.read_log(busy.top).request_keys().count(request_of("the same everywhere").key) == 1


def test_a_process_that_forks_goes_on_and_its_child_starts_afresh(busy: Small) -> None:
    def fork_and_save() -> list[str | None]:
        with busy.opened() as store:
            make(store, Create("parent.md", "parent\n"))

            def child_saves() -> str | None:
                with busy.opened() as own:
                    make(own, Create("child.md", "child\n"))
                    return text_of(own, "parent.md")

            seen = in_child(child_saves)
            make(store, Create("after.md", "after\n"))
            return [seen, text_of(store, "child.md"), text_of(store, "after.md")]

    assert in_child(fork_and_save) == ["parent\n", "child\n", "after\n"]
    assert account.problems_at_rest(busy.top) == []
