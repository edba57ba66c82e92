"""How the tests of the floor wait for another thread or process: until it happened, never for a time.

``PATIENCE_SECONDS`` only keeps a broken test from hanging; no test passes or fails by the clock.
"""

import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

PATIENCE_SECONDS = 120


def until(happened: Callable[[], bool], *, pause_seconds: float = 0.001) -> None:
    """Ask ``happened()`` again and again until it says yes."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(pause_seconds)


def hear(connection: Connection) -> Any:
    """The next word from another process."""
    assert connection.poll(PATIENCE_SECONDS), "the other process says nothing"
    return connection.recv()


class Task:
    """A function in a thread of its own; ``result`` waits for it and raises what it raised."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._outcome: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._function()
        except BaseException as error:  # noqa: BLE001 - handed over to the test
            self._error = error

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        """What the function returned."""
        self._thread.join(PATIENCE_SECONDS)
        assert self.is_over, "the thread does not end"
        if self._error is not None:
            raise self._error
        return self._outcome
