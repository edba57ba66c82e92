"""Real processes for the rigs: forked children that end, are killed at a step, or wait for a word.

The test's own process opens no store while it forks, so no child inherits the thread that keeps checkpoints.
"""

import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from kb.store import steps

T = TypeVar("T")
PATIENCE_SECONDS = 120


class ChildFailed(AssertionError):
    """The child raised; the text is its traceback."""


class Killed(Exception):
    """The child was killed by a signal before it ended."""


class Child:
    """A forked child that runs ``work(connection)`` with its end of a connection."""

    def __init__(self, work: Callable[[Connection], None]) -> None:
        self.connection, theirs = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.connection.close()
            _run_and_exit(work, theirs)
        theirs.close()
        self._status: int | None = None

    def tell(self, word: Any) -> None:
        """Say something and go on."""
        self.connection.send(word)

    def hear(self) -> Any:
        """The child's next word. Raises ChildFailed, Killed."""
        assert self.connection.poll(PATIENCE_SECONDS), "the child says nothing"
        try:
            kind, value = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.wait()
            raise Killed from None
        if kind == "failed":
            raise ChildFailed(value)
        return value

    def ask(self, word: Any) -> Any:
        """Say something and wait for the answer."""
        self.tell(word)
        return self.hear()

    def wait(self) -> int:
        """Wait for the end; the number of the signal that ended it, 0 for none."""
        if self._status is None:
            _, self._status = os.waitpid(self.pid, 0)
        return os.WTERMSIG(self._status) if os.WIFSIGNALED(self._status) else 0

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone with all that it held."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        self.connection.close()


def _run_and_exit(work: Callable[[Connection], None], connection: Connection) -> None:
    # Never back into the test: neither its cleaning up nor its report is the child's.
    try:
        work(connection)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - handed over to the test
        connection.send(("failed", traceback.format_exc()))
    finally:
        os._exit(1)


def in_child(work: Callable[[], T]) -> T:
    """What ``work()`` returns in a child of its own. Raises ChildFailed, Killed."""
    child = Child(lambda connection: connection.send(("done", work())))
    try:
        result: T = child.hear()
        return result
    finally:
        child.kill()


def killed_at(step: int, work: Callable[[], object]) -> str | None:
    """Run ``work`` in a child that is killed before its ``step``-th step; what that was, None where it gets through."""

    def run(connection: Connection) -> None:
        steps.hook = KillBefore(step, connection)
        work()
        steps.hook = None
        connection.send(("done", None))

    child = Child(run)
    try:
        found: str | None = child.hear()
        if found is not None and child.wait() != signal.SIGKILL:
            raise ChildFailed(f"the child outlived {found}")
        return found
    finally:
        child.kill()


class KillBefore:
    """A hook that ends its process before the n-th step, saying which one it was."""

    def __init__(self, number: int, connection: Connection) -> None:
        self._left = number
        self._connection = connection

    def __call__(self, step: str, place: str) -> None:
        self._left -= 1
        if self._left == 0:
            self._connection.send(("done", f"{step} {place}"))
            os.kill(os.getpid(), signal.SIGKILL)
