import itertools
import os
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from core import clock
from core import locks as core_locks
from core.locks import FileLock, LockBusy, Rank, WrongLockOrder, hold, hold_content
from core.safe_open import DIRECTORY_FLAGS, UnsafeFile
from tests.core.neighbours import Neighbour, Stranger
from tests.core.waiting import PATIENCE_SECONDS, Task, until

Start = Callable[..., Neighbour]


def name_of(rank: Rank) -> str:
    return rank.name.lower()


# -- the order ------------------------------------------------------------------------------------------------

TAKEN_ALONE = {Rank.BUILDING, Rank.CHECKPOINT}


def test_the_ranks_stand_in_the_order_of_the_design() -> None:
    in_order = [rank for rank in sorted(Rank) if rank not in TAKEN_ALONE]

    assert in_order == [Rank.CLAIM, Rank.PUBLICATION, Rank.WRITER, Rank.ALIVE, Rank.GATE, Rank.CONTENT]


@pytest.mark.parametrize(("held", "wanted"), list(itertools.product(Rank, Rank)), ids=name_of)
def test_a_thread_takes_locks_upwards_only(
    locks_directory: int, stranger: Stranger, held: Rank, wanted: Rank
) -> None:
    with hold(locks_directory, name_of(held), held):
        if wanted > held and wanted not in TAKEN_ALONE:
            with hold(locks_directory, name_of(wanted), wanted):
                assert not stranger.could_take(name_of(wanted))
        else:
            with pytest.raises(WrongLockOrder):
                FileLock(locks_directory, name_of(wanted), wanted).acquire(wait_seconds=0)

    # Refused or given back: nothing stays behind, and the thread may begin at the bottom again.
    assert stranger.could_take(name_of(wanted))
    with hold(locks_directory, name_of(min(Rank)), min(Rank)):
        pass


def test_the_order_is_kept_when_the_lower_lock_is_given_back_first(locks_directory: int) -> None:
    gate = FileLock(locks_directory, "gate", Rank.GATE).acquire(wait_seconds=0)
    content = FileLock(locks_directory, "content", Rank.CONTENT).acquire(wait_seconds=0)
    gate.release()

    with pytest.raises(WrongLockOrder):
        FileLock(locks_directory, "gate", Rank.GATE).acquire(wait_seconds=0)

    content.release()
    FileLock(locks_directory, "gate", Rank.GATE).acquire(wait_seconds=0).release()


def test_each_thread_has_an_order_of_its_own(locks_directory: int) -> None:
    def take_writer() -> None:
        with hold(locks_directory, "writer", Rank.WRITER):
            pass

    with hold(locks_directory, "content", Rank.CONTENT):
        Task(take_writer).result()


def test_a_lock_that_is_kept_stands_outside_the_order(locks_directory: int, stranger: Stranger) -> None:
    alive = FileLock(locks_directory, "alive", Rank.ALIVE, shared=True).acquire(wait_seconds=0)
    alive.keep()

    with hold(locks_directory, "claim", Rank.CLAIM), hold(locks_directory, "writer", Rank.WRITER):
        assert not stranger.could_take("alive")
        assert stranger.could_take("alive", shared=True)

    alive.drop_kept()
    alive.drop_kept()
    assert stranger.could_take("alive")


# -- taking and giving back -----------------------------------------------------------------------------------


def test_a_lock_excludes_other_processes_until_it_is_given_back(
    locks_directory: int, stranger: Stranger
) -> None:
    lock = FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0)
    assert not stranger.could_take("writer")
    assert not stranger.could_take("writer", shared=True)

    lock.release()
    lock.release()

    assert stranger.could_take("writer")


def test_a_shared_lock_is_shared_with_other_processes(locks_directory: int, stranger: Stranger) -> None:
    with hold(locks_directory, "content", Rank.CONTENT, shared=True):
        assert stranger.could_take("content", shared=True)
        assert not stranger.could_take("content")


def test_a_lock_is_given_back_when_the_block_breaks(locks_directory: int, stranger: Stranger) -> None:
    def break_while_holding() -> None:
        with hold(locks_directory, "writer", Rank.WRITER):
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        break_while_holding()

    assert stranger.could_take("writer")


def test_a_refused_lock_leaves_no_descriptor_open(
    locks: Path, locks_directory: int, stranger: Stranger
) -> None:
    assert stranger.take("writer")

    for _ in range(3):
        with pytest.raises(LockBusy):
            FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0)

    opened = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    assert str(locks / "writer") not in opened


def test_a_link_in_the_place_of_a_lock_file_is_refused(locks: Path, locks_directory: int) -> None:
    (locks / "writer").unlink()
    (locks / "writer").symlink_to("gate")

    with pytest.raises(UnsafeFile):
        FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0)


def hold_until_killed(test: Connection, locks: Path) -> None:
    FileLock(os.open(locks, DIRECTORY_FLAGS), "writer", Rank.WRITER).acquire(wait_seconds=0)
    test.send("holds")
    test.recv()


def test_a_killed_process_holds_nothing(locks: Path, locks_directory: int, neighbour: Start) -> None:
    process = neighbour(hold_until_killed, locks)
    assert process.hear() == "holds"
    with pytest.raises(LockBusy):
        FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0)

    process.kill()

    FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0).release()


# -- waiting --------------------------------------------------------------------------------------------------


class ClockThatIsSlept:
    """A monotonic clock that only goes on while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        self.naps: list[float] = []
        self.wakes: Callable[[], None] = lambda: None
        monkeypatch.setattr(clock, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(clock, "sleep", self._sleep)
        monkeypatch.setattr(clock, "wait_for", self._wait_for)

    def _wait_for(self, event: threading.Event, seconds: float) -> bool:
        until = self.seconds + seconds
        while not event.is_set() and self.seconds < until:
            self._sleep(min(0.01, until - self.seconds))
        return event.is_set()

    def _sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.naps.append(seconds)
        self.seconds += seconds
        self.wakes()


def test_without_waiting_a_busy_lock_is_asked_once(
    locks_directory: int, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = ClockThatIsSlept(monkeypatch)
    assert stranger.take("writer")

    with pytest.raises(LockBusy):
        FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0)

    assert slept.naps == []


def test_a_busy_lock_is_waited_for_until_the_deadline_and_no_longer(
    locks_directory: int, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = ClockThatIsSlept(monkeypatch)
    assert stranger.take("writer")

    with pytest.raises(LockBusy):
        FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=3)

    assert sum(slept.naps) == pytest.approx(3)
    stranger.drop("writer")
    FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0).release()


def test_a_lock_that_comes_free_at_the_very_end_of_the_wait_is_taken(
    locks_directory: int, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = ClockThatIsSlept(monkeypatch)
    assert stranger.take("writer")
    slept.wakes = lambda: stranger.drop("writer") if slept.seconds >= 1003 else None

    FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=3).release()

    assert slept.seconds == pytest.approx(1003)


def test_one_deadline_holds_for_gate_and_content_together(
    locks_directory: int, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = ClockThatIsSlept(monkeypatch)
    assert stranger.take("gate")
    assert stranger.take("content", shared=True)
    gate_is_held = iter([True])

    def open_the_gate_after_two_seconds() -> None:
        if slept.seconds >= 1002 and next(gate_is_held, False):
            stranger.drop("gate")

    slept.wakes = open_the_gate_after_two_seconds

    with pytest.raises(LockBusy), hold_content(locks_directory, shared=False, wait_seconds=3):
        pass

    assert sum(slept.naps) == pytest.approx(3)


def test_a_thread_that_waits_gets_the_lock_when_another_process_gives_it_back(
    locks_directory: int, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_line = threading.Event()
    wait_for = clock.wait_for

    def tell_and_wait_for(event: threading.Event, seconds: float) -> bool:
        in_line.set()
        return wait_for(event, seconds)

    monkeypatch.setattr(clock, "wait_for", tell_and_wait_for)
    assert stranger.take("writer")

    def take_and_give_back() -> None:
        with hold(locks_directory, "writer", Rank.WRITER, wait_seconds=PATIENCE_SECONDS):
            pass

    waiting = Task(take_and_give_back)
    until(in_line.is_set)
    stranger.drop("writer")

    waiting.result()
    assert stranger.could_take("writer")


def test_who_gave_up_does_not_get_the_lock_when_it_comes_free(
    locks_directory: int, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "wait_for", lambda event, seconds: False)
    assert stranger.take("writer")
    with pytest.raises(LockBusy):
        FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=PATIENCE_SECONDS)

    stranger.drop("writer")

    until(lambda: stranger.could_take("writer"))
    until(lambda: not core_locks._places)
    assert stranger.could_take("writer")


def standing_in_line(lock_file: Path) -> int:
    """How many the kernel lets wait for this file."""
    inode = f":{lock_file.stat().st_ino} "
    return sum("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def test_those_who_wait_are_served_in_the_order_in_which_they_came(
    locks: Path, locks_directory: int, stranger: Stranger
) -> None:
    served: list[int] = []

    def stand_in_line(number: int) -> None:
        with hold(locks_directory, "writer", Rank.WRITER, wait_seconds=PATIENCE_SECONDS):
            served.append(number)

    assert stranger.take("writer")
    waiting = []
    for number in range(5):
        waiting.append(Task(partial(stand_in_line, number)))
        until(lambda number=number: standing_in_line(locks / "writer") == number + 1)  # type: ignore[misc]
    stranger.drop("writer")

    for task in waiting:
        task.result()
    assert served == [0, 1, 2, 3, 4]


# -- the gate before the content ------------------------------------------------------------------------------


def test_readers_read_beside_each_other(locks_directory: int, stranger: Stranger) -> None:
    with hold_content(locks_directory, shared=True, wait_seconds=0):
        assert stranger.could_take("gate")
        assert stranger.could_take("content", shared=True)
        assert not stranger.could_take("content")
        Task(lambda: read_once(locks_directory)).result()


def test_the_mutator_is_alone(locks_directory: int, stranger: Stranger) -> None:
    with hold_content(locks_directory, shared=False, wait_seconds=0):
        assert stranger.could_take("gate")
        assert not stranger.could_take("content", shared=True)
        with pytest.raises(LockBusy):
            Task(lambda: read_once(locks_directory)).result()

    read_once(locks_directory)
    assert stranger.could_take("content")


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("busy", ["gate", "content"])
def test_whoever_does_not_get_in_leaves_the_gate_open(
    locks_directory: int, stranger: Stranger, busy: str, shared: bool
) -> None:
    assert stranger.take(busy)

    with pytest.raises(LockBusy), hold_content(locks_directory, shared=shared, wait_seconds=0.02):
        pass

    stranger.drop(busy)
    assert stranger.could_take("gate")
    assert stranger.could_take("content")


def read_once(locks_directory: int, wait_seconds: float = 0) -> None:
    with hold_content(locks_directory, shared=True, wait_seconds=wait_seconds):
        pass


def test_a_waiting_mutator_lets_no_new_reader_in_before_it(locks_directory: int, stranger: Stranger) -> None:
    assert stranger.take("content", shared=True)  # an earlier reader

    def change() -> None:
        with hold_content(locks_directory, shared=False, wait_seconds=PATIENCE_SECONDS):
            pass

    mutator = Task(change)
    until(lambda: not stranger.could_take("gate", shared=True))
    for _ in range(20):
        with pytest.raises(LockBusy):
            read_once(locks_directory)
    assert not mutator.is_over
    stranger.drop("content")

    mutator.result()
    read_once(locks_directory)


def test_a_reader_before_the_content_lets_no_new_mutator_in_before_it(
    locks_directory: int, stranger: Stranger
) -> None:
    assert stranger.take("content")  # a mutator at work
    reader = Task(lambda: read_once(locks_directory, PATIENCE_SECONDS))

    until(lambda: not stranger.could_take("gate"))
    with pytest.raises(LockBusy), hold_content(locks_directory, shared=False, wait_seconds=0):
        pass
    stranger.drop("content")

    reader.result()


READERS = 4
TURNS = 25


def read_for_ever(test: Connection, locks: Path) -> None:
    directory = os.open(locks, DIRECTORY_FLAGS)
    count = 0
    while True:
        with hold_content(directory, shared=True, wait_seconds=PATIENCE_SECONDS):
            # Long against the way from one hold to the next, so that somebody reads at every moment.
            clock.sleep(0.005)
        count += 1
        if test.poll():
            test.send((test.recv(), count))


def change_for_ever(test: Connection, locks: Path) -> None:
    directory = os.open(locks, DIRECTORY_FLAGS)
    count = 0
    while True:
        with hold_content(directory, shared=False, wait_seconds=PATIENCE_SECONDS):
            count += 1
        if test.poll():
            test.send((test.recv(), count))


def test_a_mutator_comes_through_among_readers_that_never_pause_and_they_go_on(
    locks: Path, locks_directory: int, neighbour: Start
) -> None:
    readers = [neighbour(read_for_ever, locks) for _ in range(READERS)]
    before = [reader.ask("how many?")[1] for reader in readers]

    for _ in range(TURNS):
        with hold_content(locks_directory, shared=False, wait_seconds=PATIENCE_SECONDS):
            pass

    after = [reader.ask("how many?")[1] for reader in readers]
    assert all(late > early for early, late in zip(before, after, strict=True))


def test_a_reader_comes_through_beside_a_mutator_that_never_pauses_and_it_goes_on(
    locks: Path, locks_directory: int, neighbour: Start
) -> None:
    mutator = neighbour(change_for_ever, locks)
    before = mutator.ask("how many?")[1]

    for _ in range(TURNS):
        read_once(locks_directory, PATIENCE_SECONDS)

    assert mutator.ask("how many?")[1] > before
