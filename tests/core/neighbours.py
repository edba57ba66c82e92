"""Other processes: real ones, started anew, that do what a test tells them."""

import fcntl
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

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

    def __init__(self) -> None:
        super().__init__(_obey)

    def come_to(self, locks: Path) -> None:
        """Let go of everything, and judge the lock files in this folder from now on."""
        self.ask(("come to", str(locks), False))

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


def _obey(test: Connection) -> None:
    folder = ""
    held: dict[str, int] = {}
    while True:
        verb, name, shared = test.recv()
        if verb == "come to":
            folder = name
            while held:
                os.close(held.popitem()[1])
            test.send(True)
            continue
        if verb == "drop":
            os.close(held.pop(name))
            test.send(True)
            continue
        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            test.send(False)
        else:
            held[name] = descriptor
            test.send(True)
