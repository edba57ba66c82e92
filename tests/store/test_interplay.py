"""What two processes may do to each other: a look stays whole, nobody starves, and the locks are taken in order."""

from collections.abc import Iterator

import pytest

from core import locks
from core.locks import Rank, WrongLockOrder, hold
from kb.store import steps
from kb.store.content_store import ContentStore
from tests.core.waiting import Task
from tests.store import account
from tests.store.changes import Create, Import, Update, make
from tests.store.interplay import (
    CROWD,
    compact_twice_beside_a_reader,
    crowd,
    kill_the_replay_of_many,
    read_while_another_saves,
    rot_in_the_last_record,
)
from tests.store.small import Small

SAVES_ENOUGH = 15
READS_FOR_EACH = 200


@pytest.fixture(autouse=True)
def no_hook_stays() -> Iterator[None]:
    yield
    steps.hook = None


def test_a_save_waits_for_the_reader_that_is_inside(small: Small) -> None:
    assert read_while_another_saves(small) == []


def test_a_registry_that_is_written_anew_twice_is_read_anew(small: Small) -> None:
    assert compact_twice_beside_a_reader(small) == []


def test_an_acknowledged_record_that_rots_is_never_cut_off(past: Small) -> None:
    assert rot_in_the_last_record(past) == []


def test_a_replay_of_many_records_that_is_killed_is_never_shown_half(past: Small) -> None:
    findings = kill_the_replay_of_many(past)

    assert findings.violations == []
    assert findings.kills > 10


def test_readers_do_not_starve_a_writer(small: Small) -> None:
    saves, reads = crowd(
        small,
        readers=CROWD,
        writers=1,
        enough=lambda saves, reads: saves >= SAVES_ENOUGH or reads > SAVES_ENOUGH * READS_FOR_EACH,
    )

    assert saves >= SAVES_ENOUGH, f"{saves} saves beside {reads} reads"


def test_writers_do_not_starve_a_reader(small: Small) -> None:
    saves, reads = crowd(
        small,
        readers=1,
        writers=4,
        enough=lambda saves, reads: reads >= SAVES_ENOUGH or saves > SAVES_ENOUGH * READS_FOR_EACH,
    )

    assert reads >= SAVES_ENOUGH, f"{reads} reads beside {saves} saves"


def test_nothing_waits_for_the_disk_while_readers_are_kept_out(store: ContentStore) -> None:
    held: list[tuple[str, list[Rank]]] = []
    steps.hook = lambda step, place: held.append((f"{step} {place}", list(locks._held.ranks)))

    make(store, Import({"A/a.md": "text\n", "b.md": "text\n"}), "r1")
    make(store, Update("b.md", "other\n"), "r2")

    inside = [step for step, ranks in held if Rank.CONTENT in ranks]
    assert inside
    assert [step for step in inside if step.startswith("sync")] == []
    assert [step for step, ranks in held if Rank.GATE in ranks] == []
    assert {tuple(ranks) for _, ranks in held} == {
        (Rank.CLAIM, Rank.WRITER),
        (Rank.CLAIM, Rank.WRITER, Rank.CONTENT),
    }
    renames = [step for step, _ in held if step.startswith(("rename", "mkdir"))]
    assert set(renames) <= set(inside)


def test_a_checkpoint_keeps_nobody_waiting(store: ContentStore) -> None:
    make(store, Import({"A/a.md": "text\n", "b.md": "text\n"}))
    held: list[list[Rank]] = []
    steps.hook = lambda step, place: held.append(list(locks._held.ranks))

    store.checkpoint()

    assert held
    assert held == [[Rank.CHECKPOINT]] * len(held)


def test_a_save_inside_a_look_is_a_wrong_order_and_no_deadlock(store: ContentStore) -> None:
    make(store, Create("a.md", "text\n"))

    with store.snapshot(), pytest.raises(WrongLockOrder):
        make(store, Update("a.md", "other\n"))


def test_a_checkpoint_inside_a_save_is_a_wrong_order(store: ContentStore) -> None:
    with store.transaction(), pytest.raises(WrongLockOrder):
        store.checkpoint()


def test_what_a_thread_held_when_it_failed_is_free(small: Small, store: ContentStore) -> None:
    def fail(step: str, place: str) -> None:
        raise ZeroDivisionError

    steps.hook = fail
    with pytest.raises(ZeroDivisionError):
        make(store, Create("a.md", "text\n"), "r1")
    steps.hook = None

    for name, rank in (("writer", Rank.WRITER), ("gate", Rank.GATE), ("content", Rank.CONTENT)):
        with hold(store.layout.locks, name, rank):
            pass
    Task(lambda: make(store, Create("a.md", "text\n"), "r1")).result()
    assert account.read_log(small.top).problems == []
