"""How far a long piece of work has come, told to whoever waits. Only the roof knows whether that is a terminal."""

from typing import Protocol


class Progress(Protocol):
    """Hears how far the work has come."""

    def begin(self, what: str, total: int) -> None:
        """A stretch of ``total`` bytes or pieces begins, 0 where nobody knows; the one before it is over."""

    def advance(self, amount: int = 1) -> None:
        """So much more of the stretch is done."""


class Silent:
    """For work that nobody watches."""

    def begin(self, what: str, total: int) -> None:
        """Say nothing."""

    def advance(self, amount: int = 1) -> None:
        """Say nothing."""


SILENT: Progress = Silent()
