import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from core import clock, limits
from core.errors import StorageUnavailable
from core.locks import Rank, WriterQueue, WrongLockOrder, heavy_work, hold
from core.safe_open import DIRECTORY_FLAGS
from tests.core.neighbours import Neighbour, Stranger
from tests.core.waiting import PATIENCE_SECONDS, Task, until

Start = Callable[..., Neighbour]


class Desk:
    """A queue before ``writer``, and the names of those who had it, in order."""

    def __init__(self, locks_directory: int) -> None:
        self.queue = WriterQueue(locks_directory)
        self.served: list[str] = []

    @property
    def length(self) -> int:
        """How many threads stand here, with the one that is served."""
        return len(self.queue._turns)

    def send(self, name: str, *, urgent: bool = False, leave: threading.Event | None = None) -> Task:
        """A thread that joins the queue now; when its turn has come it stays until ``leave``."""

        def visit() -> None:
            with self.queue.hold(urgent=urgent, wait_seconds=PATIENCE_SECONDS):
                self.served.append(name)
                if leave is not None:
                    assert leave.wait(PATIENCE_SECONDS)

        length = self.length
        task = Task(visit)

        def stands_here() -> bool:
            return self.length > length or task.is_over

        until(stands_here)
        return task


@contextmanager
def all_places_taken(*, but: int = 0) -> Iterator[None]:
    """Other threads have all places, or all but so many, for the length of a block."""
    inside: list[int] = []
    leave = threading.Event()

    def stay() -> None:
        with heavy_work():
            inside.append(1)
            assert leave.wait(PATIENCE_SECONDS)

    tasks = [Task(stay) for _ in range(limits.HEAVY_WORK_MAX - but)]
    until(lambda: len(inside) == len(tasks) or any(task.is_over for task in tasks))
    try:
        yield
    finally:
        leave.set()
        for task in tasks:
            task.result()


@pytest.fixture
def desk(locks_directory: int) -> Desk:
    return Desk(locks_directory)


@pytest.fixture(autouse=True)
def _every_place_is_given_back() -> Iterator[None]:
    yield
    with all_places_taken():
        pass


# -- turns ----------------------------------------------------------------------------------------------------


def test_the_holder_of_the_queue_holds_writer(desk: Desk, stranger: Stranger) -> None:
    with desk.queue.hold():
        assert not stranger.could_take("writer")
        assert desk.length == 1

    assert stranger.could_take("writer")
    assert desk.length == 0


def test_first_come_first_served(desk: Desk) -> None:
    with desk.queue.hold():
        tasks = [desk.send(name) for name in "abcde"]

    for task in tasks:
        task.result()
    assert desk.served == list("abcde")


def test_access_changes_go_first_and_keep_their_own_order(desk: Desk) -> None:
    with desk.queue.hold():
        tasks = [
            desk.send("save 1"),
            desk.send("save 2"),
            desk.send("revoke 1", urgent=True),
            desk.send("save 3"),
            desk.send("revoke 2", urgent=True),
        ]

    for task in tasks:
        task.result()
    assert desk.served == ["revoke 1", "revoke 2", "save 1", "save 2", "save 3"]


def test_an_access_change_that_comes_late_still_passes_those_who_wait(desk: Desk) -> None:
    leave = threading.Event()
    with desk.queue.hold():
        tasks = [desk.send("save 1", leave=leave), desk.send("save 2")]
    until(lambda: desk.served == ["save 1"])

    tasks.append(desk.send("revoke", urgent=True))
    leave.set()

    for task in tasks:
        task.result()
    assert desk.served == ["save 1", "revoke", "save 2"]


def test_who_comes_while_writer_is_just_free_does_not_pass_the_first_in_the_queue(
    desk: Desk, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    wake = threading.Event()
    sleeping = threading.Event()

    def sleep_until_woken(_seconds: float) -> None:
        sleeping.set()
        assert wake.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(clock, "sleep", sleep_until_woken)
    assert stranger.take("writer")
    first = desk.send("first")
    until(sleeping.is_set)
    stranger.drop("writer")

    second = desk.send("second")
    third = desk.send("revoke", urgent=True)
    third.result()
    assert desk.served == ["revoke"]
    wake.set()

    first.result()
    second.result()
    assert desk.served == ["revoke", "first", "second"]


def test_one_at_a_time(desk: Desk, locks: Path, neighbour: Start) -> None:
    others = [neighbour(count_up, locks) for _ in range(2)]
    (locks / "count").write_text("0")
    for other in others:
        other.tell("go")

    tasks = [Task(lambda: count_through(desk.queue, locks)) for _ in range(4)]

    for task in tasks:
        task.result()
    for other in others:
        assert other.hear() == "done"
    assert (locks / "count").read_text() == str(6 * COUNTS)


COUNTS = 25


def count_through(queue: WriterQueue, locks: Path) -> None:
    for _ in range(COUNTS):
        with queue.hold(wait_seconds=PATIENCE_SECONDS):
            count = int((locks / "count").read_text())
            (locks / "count").write_text(str(count + 1))


def count_up(test: Connection, locks: Path) -> None:
    queue = WriterQueue(os.open(locks, DIRECTORY_FLAGS))
    test.recv()
    count_through(queue, locks)
    test.send("done")


def test_who_breaks_off_gives_its_turn_to_the_next(desk: Desk) -> None:
    def break_off() -> None:
        with desk.queue.hold():
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        break_off()

    desk.send("next").result()
    assert desk.served == ["next"]


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("urgent", [False, True])
@pytest.mark.parametrize("wait_seconds", [0, 0.05])
def test_when_another_process_keeps_writer_the_wait_ends_in_a_refusal(
    desk: Desk, stranger: Stranger, urgent: bool, wait_seconds: float
) -> None:
    assert stranger.take("writer")

    with pytest.raises(StorageUnavailable), desk.queue.hold(urgent=urgent, wait_seconds=wait_seconds):
        pass

    assert desk.length == 0
    stranger.drop("writer")
    desk.send("next").result()


@pytest.mark.parametrize("urgent", [False, True])
@pytest.mark.parametrize("wait_seconds", [0, 0.05])
def test_when_another_thread_keeps_writer_the_wait_ends_in_a_refusal(
    desk: Desk, urgent: bool, wait_seconds: float
) -> None:
    leave = threading.Event()
    holder = desk.send("holder", leave=leave)
    until(lambda: desk.served == ["holder"])

    with pytest.raises(StorageUnavailable), desk.queue.hold(urgent=urgent, wait_seconds=wait_seconds):
        pass

    assert desk.length == 1
    leave.set()
    holder.result()
    desk.send("next").result()
    assert desk.served == ["holder", "next"]


def test_a_refused_thread_does_not_block_those_behind_it(desk: Desk) -> None:
    def wait_in_vain() -> None:
        with desk.queue.hold(wait_seconds=0.05):
            pass

    with desk.queue.hold():
        impatient = Task(wait_in_vain)
        patient = desk.send("patient")
        with pytest.raises(StorageUnavailable):
            impatient.result()

    patient.result()


def test_a_thread_that_holds_writer_or_more_is_told_so_instead_of_waiting_for_itself(
    desk: Desk, locks_directory: int
) -> None:
    with (
        desk.queue.hold(),
        pytest.raises(WrongLockOrder),
        desk.queue.hold(wait_seconds=PATIENCE_SECONDS),
    ):
        pass
    with (
        hold(locks_directory, "content", Rank.CONTENT, shared=True),
        pytest.raises(WrongLockOrder),
        desk.queue.hold(wait_seconds=PATIENCE_SECONDS),
    ):
        pass
    assert desk.length == 0


# -- places for those who wait --------------------------------------------------------------------------------


def fill(desk: Desk) -> list[Task]:
    """As many threads as may wait."""
    return [desk.send(f"save {number}") for number in range(limits.HEAVY_WORK_MAX)]


def refuse_one_more(desk: Desk) -> None:
    """The next one is refused at once: it would wait long, and this call comes back."""
    with pytest.raises(StorageUnavailable), desk.queue.hold(wait_seconds=100 * PATIENCE_SECONDS):
        pass


def test_at_most_half_of_the_threads_wait_and_the_next_is_refused_at_once(desk: Desk) -> None:
    leave = threading.Event()
    holder = desk.send("holder", leave=leave)
    waiting = fill(desk)

    refuse_one_more(desk)

    assert desk.length == 1 + limits.HEAVY_WORK_MAX
    leave.set()
    for task in [holder, *waiting]:
        task.result()
    desk.send("later").result()
    assert len(desk.served) == limits.HEAVY_WORK_MAX + 2


def test_who_waits_for_another_process_counts_too(desk: Desk, stranger: Stranger) -> None:
    assert stranger.take("writer")
    waiting = fill(desk)
    assert desk.length == limits.HEAVY_WORK_MAX

    refuse_one_more(desk)

    stranger.drop("writer")
    for task in waiting:
        task.result()
    assert desk.served == [f"save {number}" for number in range(limits.HEAVY_WORK_MAX)]


def test_an_access_change_waits_even_when_all_places_are_taken(desk: Desk) -> None:
    leave = threading.Event()
    holder = desk.send("holder", leave=leave)
    waiting = fill(desk)

    revocation = desk.send("revoke", urgent=True)
    assert desk.length == 2 + limits.HEAVY_WORK_MAX
    leave.set()

    for task in [holder, revocation, *waiting]:
        task.result()
    assert desk.served[:2] == ["holder", "revoke"]


def test_who_need_not_wait_needs_no_place(desk: Desk) -> None:
    with all_places_taken():
        desk.send("save").result()
        with pytest.raises(StorageUnavailable):
            Task(lambda: enter(heavy_work())).result()

    assert desk.served == ["save"]


def test_large_bodies_and_waiting_share_the_places(desk: Desk) -> None:
    leave = threading.Event()
    holder = desk.send("holder", leave=leave)
    until(lambda: desk.served == ["holder"])

    with all_places_taken():
        refuse_one_more(desk)

    leave.set()
    holder.result()


def test_a_thread_that_has_a_place_waits_in_it(desk: Desk) -> None:
    leave = threading.Event()
    holder = desk.send("holder", leave=leave)

    def save_a_large_body() -> None:
        with heavy_work(), heavy_work(), desk.queue.hold(wait_seconds=PATIENCE_SECONDS):
            desk.served.append("large")

    with all_places_taken(but=1):
        large = Task(save_a_large_body)
        until(lambda: desk.length == 2)
        leave.set()
        large.result()
    holder.result()
    assert desk.served == ["holder", "large"]


def test_a_place_is_free_again_once_the_outermost_block_is_left() -> None:
    with all_places_taken(but=1):
        with heavy_work():
            with heavy_work():
                pass
            with pytest.raises(StorageUnavailable):
                Task(lambda: enter(heavy_work())).result()
        Task(lambda: enter(heavy_work())).result()


def enter(block: Any) -> None:
    with block:
        pass


# -- fork -----------------------------------------------------------------------------------------------------


def fork_with_places_taken(test: Connection) -> None:
    with all_places_taken(but=1), heavy_work():
        child = os.fork()
        if child == 0:
            try:
                test.send(count_places())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        test.send(count_places())


def count_places() -> int:
    """How many other threads get a place now."""
    leave = threading.Event()
    places: list[int] = []

    def stay() -> None:
        with heavy_work():
            places.append(1)
            leave.wait(PATIENCE_SECONDS)

    tasks = [Task(stay) for _ in range(limits.HEAVY_WORK_MAX + 1)]
    until(lambda: len(places) + sum(task.is_over for task in tasks) == len(tasks))
    leave.set()
    return len(places)


def test_a_forked_child_keeps_the_place_of_its_thread_and_no_other(neighbour: Start) -> None:
    process = neighbour(fork_with_places_taken)

    assert process.hear() == limits.HEAVY_WORK_MAX - 1
    assert process.hear() == 0
