"""A bar for the person who waits at a terminal; nothing where nobody watches."""

import sys
from types import TracebackType
from typing import TextIO

from core import clock

# Work that is done sooner needs no bar, and a bar needs no more than a few pictures a second.
FIRST_SECONDS = 0.5
PAUSE_SECONDS = 0.1
WIDTH = 30


class Bar:
    """A ``core.progress.Progress`` that draws on standard error, in a ``with`` block that clears it at the end."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_shown = self._stream.isatty()
        self._what, self._total, self._done = "", 0, 0
        self._next = 0.0
        self._drawn = 0

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._clear()

    def begin(self, what: str, total: int) -> None:
        """A stretch of ``total`` bytes or pieces begins; 0 where nobody knows how many."""
        self._clear()
        self._what, self._total, self._done = what, total, 0
        self._next = clock.monotonic() + FIRST_SECONDS

    def advance(self, amount: int = 1) -> None:
        """So much more is done; draw it, if it is time to."""
        self._done += amount
        if self._is_shown and clock.monotonic() >= self._next:
            self._next = clock.monotonic() + PAUSE_SECONDS
            self._draw()

    def _draw(self) -> None:
        if self._total:
            share = min(1.0, self._done / self._total)
            filled = int(share * WIDTH)
            line = f"{self._what}  [{'#' * filled}{'.' * (WIDTH - filled)}] {share:4.0%}"
        else:
            line = f"{self._what}  {self._done:,}"
        self._write("\r" + line.ljust(self._drawn))
        self._drawn = len(line)

    def _clear(self) -> None:
        if self._drawn:
            self._write("\r" + " " * self._drawn + "\r")
            self._drawn = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
