"""Other processes: real ones, started anew, that do what a test tells them."""

import fcntl
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.safe_open import DIRECTORY_FLAGS
from tests.core.waiting import hear, until


class Neighbour:
    """A new process that runs ``work(connection, *arguments)``; the test talks to it over the connection."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, word: Any) -> None:
        """Say something and go on."""
        self._connection.send(word)

    def hear(self) -> Any:
        """Wait for the next word."""
        return hear(self._connection)

    def ask(self, word: Any) -> Any:
        """Say something and wait for the answer."""
        self.tell(word)
        return self.hear()

    @property
    def has_spoken(self) -> bool:
        return self._connection.poll()

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone with all that it held."""
        self._process.kill()
        # Not join: it also waits for children that the process has forked.
        until(lambda: self._process.exitcode is not None)

    def close(self) -> None:
        self.kill()
        self._connection.close()


class Stranger(Neighbour):
    """A process that knows ``flock`` and nothing of Brain: the judge of who holds a lock file."""

    def __init__(self, locks: Path) -> None:
        super().__init__(_obey, locks)

    def take(self, name: str, *, shared: bool = False) -> bool:
        """Whether the lock was free; then the stranger has it."""
        return bool(self.ask(("take", name, shared)))

    def drop(self, name: str) -> None:
        """Give it back."""
        self.ask(("drop", name, False))

    def could_take(self, name: str, *, shared: bool = False) -> bool:
        """Whether the lock is free; nobody has it afterwards."""
        if not self.take(name, shared=shared):
            return False
        self.drop(name)
        return True


def _obey(test: Any, locks: Path) -> None:
    directory = os.open(locks, DIRECTORY_FLAGS)
    held: dict[str, int] = {}
    while True:
        verb, name, shared = test.recv()
        if verb == "drop":
            os.close(held.pop(name))
            test.send(True)
            continue
        descriptor = os.open(name, os.O_RDONLY, dir_fd=directory)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            test.send(False)
        else:
            held[name] = descriptor
            test.send(True)
