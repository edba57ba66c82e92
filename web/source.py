"""An entry's text by numbered lines, some at a time: 10 MiB in one page would stop any browser."""

from dataclasses import dataclass

from core import text

LINES_MAX = 2_000
CHARACTERS_MAX = 256 * 1024


@dataclass(frozen=True, slots=True)
class SourcePage:
    """Lines ``first`` to ``last`` of ``total``. ``previous`` and ``following`` are first lines, 0 for none."""

    lines: list[tuple[int, str]]
    first: int
    last: int
    total: int
    previous: int
    following: int


def page_of_source(content: str, begin: str) -> SourcePage:
    """The page that begins at the line of this number; at the first line for what is no number of a line."""
    total = text.count_lines(content)
    first = int(begin) if begin.isascii() and begin.isdigit() and len(begin) < 10 else 1
    first = first if 1 <= first <= total else 1
    lines = (
        text.slice_lines(content, first, first + LINES_MAX - 1).removesuffix("\n").split("\n")
        if total
        else []
    )
    room = CHARACTERS_MAX
    taken = 0
    for line in lines:
        room -= len(line)
        if room < 0 and taken:
            break
        taken += 1
    last = first + taken - 1
    return SourcePage(
        lines=list(enumerate(lines[:taken], first)),
        first=first,
        last=last,
        total=total,
        previous=max(1, first - LINES_MAX) if first > 1 else 0,
        following=last + 1 if last < total else 0,
    )
