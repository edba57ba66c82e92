"""The flock files of an organization, their order, and the queue before the writer lock.

Facts behind the rules (tests/core/test_flock_facts.py): each acquisition opens a new descriptor, since one shared by
two threads does not exclude; lock files are opened read-only, so that they work on a read-only disk, and are
never unlinked; a held lock is never upgraded; a forked child closes what it inherited and does not unlock it.

Order, asserted at run time: claim -> publication -> writer -> alive -> gate -> content. ``checkpoint`` and
``building`` (of derived files) are taken by a thread that holds nothing.
"""

import enum
import fcntl
import heapq
import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from core import clock, limits, safe_open
from core.errors import StorageUnavailable

# A lock that is busy is tried so often before a thread takes a place in line: most are free by then.
POLL_SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002)


class Rank(enum.IntEnum):
    """The order in which one thread may take locks: each one above all that it holds."""

    BUILDING = -1
    CHECKPOINT = 0
    CLAIM = 1
    PUBLICATION = 2
    WRITER = 3
    ALIVE = 4
    GATE = 5
    CONTENT = 6


class LockBusy(Exception):
    """Somebody else holds the lock, and the time to wait for it is over."""


class WrongLockOrder(AssertionError):
    """A thread took a lock below one it holds: a bug that could deadlock."""


class _Held(threading.local):
    def __init__(self) -> None:
        self.ranks: list[Rank] = []
        self.heavy = 0


_held = _Held()
# Every lock with an open descriptor. The objects, not the numbers: a child soon opens other files under the numbers
# that it closed, and giving back a lock that it inherited must not hit one of those.
_open_locks: set["FileLock"] = set()


def _forget_inherited() -> None:
    global _heavy_places
    for lock in _open_locks:
        lock.close_inherited()
    _open_locks.clear()
    for place in _places:
        place.close_inherited()
    _places.clear()
    _held.ranks = []
    # The other threads are not here, so their places are free. This thread goes on with what it was doing.
    _heavy_places = threading.BoundedSemaphore(limits.HEAVY_WORK_MAX)
    if _held.heavy > 0:
        _heavy_places.acquire()


def _check_order(rank: Rank) -> None:
    if _held.ranks and (rank <= Rank.CHECKPOINT or _held.ranks[-1] >= rank):
        raise WrongLockOrder(f"{rank.name} after {[held.name for held in _held.ranks]}")


os.register_at_fork(after_in_child=_forget_inherited)


class FileLock:
    """One acquisition of a lock file. Not reusable, and not shared between threads."""

    def __init__(self, directory: int, name: str, rank: Rank, *, shared: bool = False) -> None:
        self._directory = directory
        self._name = name
        self._rank = rank
        self._shared = shared
        self._descriptor = -1

    def acquire(self, *, wait_seconds: float, make: bool = False) -> "FileLock":
        """Take the lock within ``wait_seconds`` (0: without waiting). ``make`` creates the file when it is missing.

        Raises LockBusy, WrongLockOrder.
        """
        _check_order(self._rank)
        descriptor = safe_open.open_file(
            self._directory, self._name, os.O_RDONLY | (os.O_CREAT if make else 0)
        )
        self._descriptor = descriptor
        _open_locks.add(self)
        try:
            _flock(descriptor, shared=self._shared, deadline=clock.monotonic() + wait_seconds)
        except BaseException:
            self._close()
            raise
        _held.ranks.append(self._rank)
        return self

    @property
    def inode(self) -> int:
        """The inode of the lock file that is held."""
        return os.fstat(self._descriptor).st_ino

    def release(self) -> None:
        """Give the lock back. In a forked child that inherited it there is nothing left to give back."""
        if self._close():
            _held.ranks.remove(self._rank)

    def keep(self) -> None:
        """Hold the lock until the process ends, outside the order: for ``alive`` alone."""
        _held.ranks.remove(self._rank)

    def drop_kept(self) -> None:
        """Give back a lock that ``keep`` took out of the order."""
        self._close()

    def close_inherited(self) -> None:
        """For the fork hook alone. Closing does not release the parent's lock; LOCK_UN here would."""
        os.close(self._descriptor)
        self._descriptor = -1

    def _close(self) -> bool:
        if self._descriptor == -1:
            return False
        # Unlocked first: a child forked by another thread at this moment then keeps nothing alive.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        _open_locks.discard(self)
        os.close(self._descriptor)
        self._descriptor = -1
        return True


@contextmanager
def hold(
    directory: int,
    name: str,
    rank: Rank,
    *,
    shared: bool = False,
    wait_seconds: float = 0,
    make: bool = False,
) -> Iterator[None]:
    """Hold a lock file for the length of a block. Raises LockBusy, WrongLockOrder."""
    lock = FileLock(directory, name, rank, shared=shared).acquire(wait_seconds=wait_seconds, make=make)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def hold_content(directory: int, *, shared: bool, wait_seconds: float) -> Iterator[None]:
    """Hold the content lock, entered through the gate so that neither readers nor the mutator starve.

    Raises LockBusy.
    """
    deadline = clock.monotonic() + wait_seconds
    gate = FileLock(directory, "gate", Rank.GATE, shared=shared).acquire(wait_seconds=wait_seconds)
    try:
        content = FileLock(directory, "content", Rank.CONTENT, shared=shared)
        content.acquire(wait_seconds=max(0.0, deadline - clock.monotonic()))
    finally:
        gate.release()
    try:
        yield
    finally:
        content.release()


@dataclass(order=True, slots=True)
class _Turn:
    """A place in a ``WriterQueue``. ``has_come`` is set when it may have become the first one."""

    rank: int
    number: int
    has_come: threading.Event = field(default_factory=threading.Event, compare=False)


class WriterQueue:
    """The way to one organization's ``writer`` lock within a process: first come first served, access changes first.

    One object for each organization and process; ``hold`` may be called from any thread.
    """

    def __init__(self, locks_directory: int) -> None:
        self._locks_directory = locks_directory
        self._turns: list[_Turn] = []
        self._numbers = itertools.count()
        self._changing = threading.Lock()

    @contextmanager
    def hold(
        self, *, urgent: bool = False, wait_seconds: float = limits.WRITER_WAIT_SECONDS
    ) -> Iterator[None]:
        """Hold ``writer``; ``urgent`` (access changes) goes before the rest of the queue.

        Raises WrongLockOrder; StorageUnavailable when the time is over or too many threads of this process wait.
        """
        # Asked before the queue: a thread that waits for itself would only hear that the time is over.
        _check_order(Rank.WRITER)
        deadline = clock.monotonic() + wait_seconds
        turn = _Turn(0 if urgent else 1, next(self._numbers))
        with self._changing:
            heapq.heappush(self._turns, turn)
            is_first = self._turns[0] is turn
        try:
            lock = self._try_writer() if is_first else None
            if lock is None:
                # Only who waits needs a place, and an access change waits without one.
                with nullcontext() if urgent else heavy_work():
                    self._wait_for_turn(turn, deadline)
                    lock = self._wait_for_writer(deadline)
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._changing:
                self._turns.remove(turn)
                heapq.heapify(self._turns)
                if self._turns:
                    self._turns[0].has_come.set()

    def _try_writer(self) -> FileLock | None:
        try:
            return FileLock(self._locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=0)
        except LockBusy:
            return None  # another process has it, or an earlier turn of this one

    def _wait_for_writer(self, deadline: float) -> FileLock:
        left = max(0.0, deadline - clock.monotonic())
        try:
            return FileLock(self._locks_directory, "writer", Rank.WRITER).acquire(wait_seconds=left)
        except LockBusy as busy:
            raise StorageUnavailable from busy

    def _wait_for_turn(self, turn: _Turn, deadline: float) -> None:
        while True:
            with self._changing:
                if self._turns[0] is turn:
                    return
                # An access change may have come before it since.
                turn.has_come.clear()
            left = deadline - clock.monotonic()
            if left <= 0 or not turn.has_come.wait(left):
                raise StorageUnavailable


_heavy_places = threading.BoundedSemaphore(limits.HEAVY_WORK_MAX)


@contextmanager
def heavy_work() -> Iterator[None]:
    """One of the few places in this process for a thread that waits for ``writer`` or carries a large body.

    A thread that has one may enter again. Raises StorageUnavailable at once when all are taken, so that the
    other threads stay free for reading.
    """
    if _held.heavy == 0 and not _heavy_places.acquire(blocking=False):
        raise StorageUnavailable
    _held.heavy += 1
    try:
        yield
    finally:
        _held.heavy -= 1
        if _held.heavy == 0:
            _heavy_places.release()


def _flock(descriptor: int, *, shared: bool, deadline: float) -> None:
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    for pause in POLL_SECONDS:
        if _is_given(descriptor, operation):
            return
        left = deadline - clock.monotonic()
        if left <= 0:
            raise LockBusy
        clock.sleep(min(pause, left))
    left = deadline - clock.monotonic()
    if _is_given(descriptor, operation) or (left > 0 and _Place(descriptor).is_served(operation, left)):
        return
    # It may have come free at the very end.
    if not _is_given(descriptor, operation):
        raise LockBusy


def _is_given(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Place:
    """A place in the kernel's line before a lock, which is served in order and knows no deadline.

    So a thread of its own waits there, on a second descriptor of the same opening. Whoever gives up closes the first
    one: when the lock is given after all, the second one is the last, and closing it gives the lock back.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self._has_come = threading.Event()
        _places.add(self)

    def is_served(self, operation: int, wait_seconds: float) -> bool:
        """Wait until the lock is given, but no longer than this; whether it was."""
        threading.Thread(target=self._wait, args=(operation,), name="waits for a lock", daemon=True).start()
        return clock.wait_for(self._has_come, wait_seconds)

    def close_inherited(self) -> None:
        """For the fork hook alone."""
        os.close(self._descriptor)

    def _wait(self, operation: int) -> None:
        try:
            fcntl.flock(self._descriptor, operation)
            self._has_come.set()
        finally:
            _places.discard(self)
            os.close(self._descriptor)


_places: set[_Place] = set()
