"""What the reader makes of a diff: hunks whose lines are counted, and hunks that it could not take."""

from dataclasses import dataclass
from typing import NamedTuple

from kb.patching.failures import Failure

CONTEXT, REMOVED, ADDED, MARKER = " ", "-", "+", "\\"


class Hunk(NamedTuple):
    """A hunk whose body has as many lines as its header counts.

    ``body`` holds its lines, each with its prefix. ``declared_line`` is where its old side says to begin.
    ``old_is_bare`` and ``new_is_bare``: this side ends with the text's last line, which has no newline.
    """

    number: int
    diff_line: int
    declared_line: int
    body: list[str]
    old_is_bare: bool = False
    new_is_bare: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that must stand in the text: context and removed ones."""
        return old_lines(self.body)

    @property
    def new(self) -> list[str]:
        """The lines that stand there afterwards: context and added ones."""
        return new_lines(self.body)

    @property
    def has_context(self) -> bool:
        """Whether anything in the hunk stays as it is."""
        return self.body[0][0] == CONTEXT or any(line[0] == CONTEXT for line in self.body)

    @property
    def core(self) -> tuple[int, int]:
        """The bounds of the body without the unchanged lines at its beginning and its end."""
        first, last = 0, len(self.body)
        while first < last and self.body[first][0] == CONTEXT:
            first += 1
        while first < last and self.body[last - 1][0] == CONTEXT:
            last -= 1
        return first, last


@dataclass(frozen=True, slots=True)
class Unread:
    """A hunk that is refused before anybody looks for its place.

    ``body`` holds the lines that look like its own, so that a right header can be proposed; it may be empty.
    """

    failure: Failure
    body: list[str]


def old_lines(body: list[str]) -> list[str]:
    """The context and removed lines of a body, without their prefix."""
    return [line[1:] for line in body if line[0] != ADDED]


def new_lines(body: list[str]) -> list[str]:
    """The context and added lines of a body, without their prefix."""
    return [line[1:] for line in body if line[0] != REMOVED]


def header_of(start: int, body: list[str]) -> str:
    """The right header of a hunk whose old side begins at line ``start``."""
    added = removed = 0
    for line in body:
        if line[0] == ADDED:
            added += 1
        elif line[0] == REMOVED:
            removed += 1
    # In an empty text the old side begins nowhere, and the new one at the first line.
    return f"@@ -{start},{len(body) - added} +{max(start, 1)},{len(body) - removed} @@"
