"""A text by its lines, without taking it apart: ten MiB of short lines would be millions of objects."""

import bisect
import itertools
from collections.abc import Callable

from core import limits

# How many characters lie between two places whose line number is known.
STEP = 512


class BudgetSpent(Exception):
    """The searches of one call have looked at as many characters as they may."""


class SearchBudget:
    """How many characters the searches of one call may still look at."""

    def __init__(self, characters: int = limits.SEARCH_BUDGET_CHARACTERS) -> None:
        self.left = characters

    def spend(self, characters: int) -> None:
        """Count a search that was done. The one that oversteps still counts, the next is refused."""
        self.left -= characters

    def require(self) -> None:
        """Raises BudgetSpent where nothing is left."""
        if self.left <= 0:
            raise BudgetSpent


class Lines:
    """A text whose lines have numbers, from 1 on.

    ``text`` always ends in LF; ``is_bare`` tells that the original does not. Offsets are those of ``text``, and of
    ``original`` as far as it reaches.
    """

    def __init__(self, original: str, budget: SearchBudget) -> None:
        self.original = original
        self.is_bare = original != "" and not original.endswith("\n")
        self.text = original + "\n" if self.is_bare else original
        self._budget = budget
        starts = range(0, len(self.text), STEP)
        self._ends_before = [0, *itertools.accumulate(self.text.count("\n", at, at + STEP) for at in starts)]
        self.total = self._ends_before[-1]

    def offset_of(self, number: int) -> int:
        """Where line ``number`` begins, for 1 up to one more than there are."""
        # The line begins behind the LF that ends the one before it.
        step = bisect.bisect_left(self._ends_before, number - 1) - 1
        if step < 0:
            return 0
        at = step * STEP - 1
        for _ in range(number - 1 - self._ends_before[step]):
            at = self.text.find("\n", at + 1)
        return at + 1

    def number_at(self, offset: int) -> int:
        """The number of the line in which this offset lies."""
        step = offset // STEP
        return self._ends_before[step] + self.text.count("\n", step * STEP, offset) + 1

    def line(self, number: int) -> str:
        """Line ``number`` without its LF."""
        start = self.offset_of(number)
        return self.text[start : self.text.index("\n", start)]

    def stands_at(self, block: str, offset: int) -> bool:
        """Whether the whole lines of ``block`` stand at the beginning of a line."""
        return self.text.startswith(block, offset)

    def find_lines(self, block: str, *, most: int) -> list[int]:
        """Where the whole lines of ``block`` stand, overlapping or not; the first ``most`` offsets.

        Raises BudgetSpent before it begins.
        """
        found = [0] if self.text.startswith(block) else []
        # The LF before it makes it begin with a line.
        for at in self.find("\n" + block, most=most - len(found)):
            found.append(at + 1)
        return found

    def find(self, needle: str, *, most: int) -> list[int]:
        """Where ``needle`` stands, overlapping or not; the first ``most`` offsets.

        Raises BudgetSpent before it begins.
        """
        self._budget.require()
        found: list[int] = []
        start = 0
        while len(found) < most:
            at = self.text.find(needle, start)
            if at < 0:
                self._budget.spend(len(self.text) - start)
                break
            self._budget.spend(at + 1 - start)
            found.append(at)
            start = at + 1
        return found


def longest_that(most: int, holds: Callable[[int], bool]) -> int:
    """The greatest length up to ``most`` for which something holds that holds for every smaller one too.

    Halving: comparing slices is far quicker than comparing characters.
    """
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if holds(middle):
            least = middle
        else:
            most = middle - 1
    return least
