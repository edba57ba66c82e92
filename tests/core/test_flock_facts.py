"""What flock does, and that ``core.locks`` lives with it. Storage.md, sections 9 and 11.

The first test of each pair shows the trap in this kernel, without Brain; the next ones that Brain stays out of it.
"""

import fcntl
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from core.locks import FileLock, LockBusy, Rank, WrongLockOrder, hold
from core.safe_open import DIRECTORY_FLAGS
from tests.core.neighbours import Neighbour, Stranger
from tests.core.waiting import Task

Start = Callable[..., Neighbour]


def take(directory: int, name: str, *, shared: bool = False) -> FileLock:
    return FileLock(directory, name, Rank[name.upper()], shared=shared).acquire(wait_seconds=0)


# -- one descriptor shared by two threads does not exclude ----------------------------------------------------


def test_one_descriptor_shared_by_two_threads_does_not_exclude(locks: Path) -> None:
    shared = os.open(locks / "writer", os.O_RDONLY)
    fcntl.flock(shared, fcntl.LOCK_EX)

    Task(lambda: fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)).result()

    os.close(shared)


def test_two_threads_that_take_the_same_lock_exclude_each_other(locks_directory: int) -> None:
    mine = take(locks_directory, "writer")

    theirs = Task(lambda: take(locks_directory, "writer"))

    with pytest.raises(LockBusy):
        theirs.result()
    mine.release()
    Task(lambda: take(locks_directory, "writer").release()).result()


# -- a forked child keeps the lock alive ----------------------------------------------------------------------


def hold_plainly_and_fork(test: Connection, locks: Path) -> None:
    fcntl.flock(os.open(locks / "alive", os.O_RDONLY), fcntl.LOCK_EX)
    fork_and_let_the_child_speak(test)


def hold_and_fork(test: Connection, locks: Path) -> None:
    take(os.open(locks, DIRECTORY_FLAGS), "alive").keep()
    fork_and_let_the_child_speak(test)


def fork_and_let_the_child_speak(test: Connection) -> None:
    if os.fork() == 0:
        try:
            test.send("the child lives")
            test.send(test.recv())
        finally:
            os._exit(0)
    os.wait()


@pytest.mark.parametrize(
    ("work", "free"),
    [
        pytest.param(hold_plainly_and_fork, False, id="plain-flock-stays-held"),
        pytest.param(hold_and_fork, True, id="a-lock-of-brain-is-free"),
    ],
)
def test_when_a_process_is_killed_its_forked_child_does_not_keep_its_lock(
    locks: Path, neighbour: Start, stranger: Stranger, work: Callable[..., None], free: bool
) -> None:
    process = neighbour(work, locks)
    assert process.hear() == "the child lives"
    assert not stranger.could_take("alive")

    process.kill()

    assert stranger.could_take("alive") is free
    assert process.ask("still?") == "still?"  # the child lived through all of it


# -- LOCK_UN in a child frees the parent's lock ---------------------------------------------------------------


def let_the_child_unlock_plainly(test: Connection, locks: Path) -> None:
    descriptor = os.open(locks / "writer", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    run_in_child(lambda: fcntl.flock(descriptor, fcntl.LOCK_UN))
    test.send("the child is gone")
    test.recv()


def let_the_child_release(test: Connection, locks: Path) -> None:
    lock = take(os.open(locks, DIRECTORY_FLAGS), "writer")
    run_in_child(lock.release)
    test.send("the child is gone")
    test.recv()


def let_the_child_drop_what_is_kept(test: Connection, locks: Path) -> None:
    lock = take(os.open(locks, DIRECTORY_FLAGS), "writer")
    lock.keep()
    run_in_child(lock.drop_kept)
    test.send("the child is gone")
    test.recv()


def let_the_child_leave_the_block(test: Connection, locks: Path) -> None:
    child = -1
    with hold(os.open(locks, DIRECTORY_FLAGS), "writer", Rank.WRITER):
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            test.send("the child is gone")
            test.recv()
    if child == 0:
        os._exit(0)


def run_in_child(work: Callable[[], None]) -> None:
    """Run ``work`` in a forked child; it has to end well."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("work", "free"),
    [
        pytest.param(let_the_child_unlock_plainly, True, id="plain-flock-is-lost"),
        pytest.param(let_the_child_release, False, id="release-in-the-child"),
        pytest.param(let_the_child_drop_what_is_kept, False, id="drop-kept-in-the-child"),
        pytest.param(let_the_child_leave_the_block, False, id="block-left-in-the-child"),
    ],
)
def test_a_forked_child_cannot_give_its_parents_lock_away(
    locks: Path, neighbour: Start, stranger: Stranger, work: Callable[..., None], free: bool
) -> None:
    process = neighbour(work, locks)
    assert process.hear() == "the child is gone"

    assert stranger.could_take("writer") is free


def let_the_child_lock_and_release_the_inherited(test: Connection, locks: Path) -> None:
    directory = os.open(locks, DIRECTORY_FLAGS)
    inherited = take(directory, "alive", shared=True)
    inherited.keep()
    if os.fork() == 0:
        try:
            own = take(
                directory, "writer"
            )  # gets the number of the descriptor that was closed after the fork
            inherited.drop_kept()
            inherited.release()
            test.send("released")
            test.recv()
            own.release()
            test.send("done")
        finally:
            os._exit(0)
    os.wait()


def test_a_forked_child_that_releases_an_inherited_lock_keeps_its_own(
    locks: Path, neighbour: Start, stranger: Stranger
) -> None:
    process = neighbour(let_the_child_lock_and_release_the_inherited, locks)

    assert process.hear() == "released"

    assert not stranger.could_take("writer")
    assert process.ask("go on") == "done"
    assert stranger.could_take("writer")


def let_the_child_start_afresh(test: Connection, locks: Path) -> None:
    directory = os.open(locks, DIRECTORY_FLAGS)
    take(directory, "content", shared=True)
    if os.fork() == 0:
        try:
            take(directory, "writer")
            test.send("the child has writer")
            test.recv()
        finally:
            os._exit(0)
    os.wait()


def test_a_forked_child_holds_nothing_and_may_take_any_rank(locks: Path, neighbour: Start) -> None:
    process = neighbour(let_the_child_start_afresh, locks)

    assert process.hear() == "the child has writer"
    process.tell("go")


# -- a failed upgrade loses the lock held ---------------------------------------------------------------------


def test_a_failed_upgrade_loses_the_lock_held(locks: Path, stranger: Stranger) -> None:
    mine = os.open(locks / "content", os.O_RDONLY)
    fcntl.flock(mine, fcntl.LOCK_SH)
    assert stranger.take("content", shared=True)
    with pytest.raises(BlockingIOError):
        fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)

    stranger.drop("content")

    assert stranger.could_take("content"), "the kernel kept the shared lock after all"
    os.close(mine)


def test_a_held_lock_is_never_upgraded(locks_directory: int, stranger: Stranger) -> None:
    mine = take(locks_directory, "content", shared=True)
    assert stranger.take("content", shared=True)

    with pytest.raises(WrongLockOrder):
        take(locks_directory, "content")

    stranger.drop("content")
    assert not stranger.could_take("content")
    mine.release()
    assert stranger.could_take("content")


# -- lockf is lost when any descriptor of the file closes -----------------------------------------------------


def lock_with_lockf_and_close_another(test: Connection, locks: Path) -> None:
    descriptor = os.open(locks / "writer", os.O_RDWR)
    fcntl.lockf(descriptor, fcntl.LOCK_EX)
    os.close(os.open(locks / "writer", os.O_RDONLY))
    test.send("closed")
    test.recv()


def test_lockf_is_lost_when_any_descriptor_of_the_file_closes(locks: Path, neighbour: Start) -> None:
    process = neighbour(lock_with_lockf_and_close_another, locks)
    assert process.hear() == "closed"

    mine = os.open(locks / "writer", os.O_RDWR)
    fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(mine)


def test_a_lock_stays_held_when_another_descriptor_of_its_file_closes(
    locks: Path, locks_directory: int, stranger: Stranger
) -> None:
    mine = take(locks_directory, "writer")

    os.close(os.open(locks / "writer", os.O_RDONLY))
    with pytest.raises(LockBusy):
        Task(lambda: take(locks_directory, "writer")).result()

    assert not stranger.could_take("writer")
    mine.release()


# -- deleting and recreating a lock file makes two owners -----------------------------------------------------


def test_deleting_and_recreating_a_lock_file_makes_two_owners(locks: Path, stranger: Stranger) -> None:
    assert stranger.take("writer")
    (locks / "writer").unlink()
    (locks / "writer").touch()

    second = os.open(locks / "writer", os.O_RDONLY)
    fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)

    os.close(second)


@pytest.mark.parametrize("make", [False, True])
def test_taking_and_giving_back_leaves_the_lock_file_in_its_place(
    locks: Path, locks_directory: int, make: bool
) -> None:
    before = {path.name: path.stat().st_ino for path in locks.iterdir()}

    lock = FileLock(locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0, make=make)
    inode = lock.inode
    lock.release()

    assert {path.name: path.stat().st_ino for path in locks.iterdir()} == before
    assert inode == before["writer"]


def test_a_lock_file_is_made_only_on_request(locks: Path, locks_directory: int) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(locks_directory, "c1a1", Rank.CLAIM).acquire(wait_seconds=0)
    assert not (locks / "c1a1").exists()

    with hold(locks_directory, "c1a1", Rank.CLAIM, make=True):
        assert (locks / "c1a1").stat().st_mode & 0o777 == 0o600


# -- a lock file opened for writing fails on a read-only disk -------------------------------------------------


def take_without_the_right_to_write(test: Connection, locks: Path) -> None:
    directory = os.open(locks, DIRECTORY_FLAGS)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    try:
        os.close(os.open("writer", os.O_RDWR, dir_fd=directory))
    except PermissionError:
        test.send("cannot write")
    with hold(directory, "writer", Rank.WRITER):
        test.send("holds")
        test.recv()


def test_a_lock_is_taken_without_the_right_to_write(
    locks: Path, neighbour: Start, stranger: Stranger
) -> None:
    (locks / "writer").chmod(0o444)
    locks.chmod(0o555)
    process = neighbour(take_without_the_right_to_write, locks)

    assert process.hear() == "cannot write"
    assert process.hear() == "holds"

    assert not stranger.could_take("writer")
    locks.chmod(0o755)
