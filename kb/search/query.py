"""A query, and what of an entry it matches."""

import bisect
import unicodedata
from collections.abc import Callable, Iterator
from itertools import accumulate

import msgspec

from core import limits
from core.folding import fold, normal
from core.text import check_query
from kb.registry import EntryLine

LINE_SHOWN_CHARACTERS = 240
ELLIPSIS = "…"


class LineMatch(msgspec.Struct, frozen=True):
    """A matching line: its number from 1 on, and its text, cut around the match where it is long."""

    line: int
    text: str


class Match(msgspec.Struct, frozen=True):
    """Where a query was found in an entry. ``match_count`` counts matching lines of the content."""

    matched_in: tuple[str, ...]
    matches: tuple[LineMatch, ...]
    match_count: int


class Query:
    """A literal text of one line. ``folded`` is what the pack is scanned for."""

    def __init__(self, text: str, *, case_sensitive: bool) -> None:
        check_query(text)
        self._compare = normal if case_sensitive else fold
        self._needle = self._compare(text)
        self.folded = fold(text).encode()

    def match(self, entry: EntryLine, content: str) -> Match | None:
        """What the query matches of an entry as it stands; None where it matches nothing."""
        found_in = [
            field
            for field, text in (
                ("title", entry.title),
                ("description", entry.description),
                ("filename", entry.name),
            )
            if self._needle in self._compare(text)
        ]
        matches, count = self.lines_in(content)
        if count:
            found_in.insert(0, "content")
        if not found_in:
            return None
        return Match(matched_in=tuple(found_in), matches=matches, match_count=count)

    def lines_in(self, content: str) -> tuple[tuple[LineMatch, ...], int]:
        """The first matching lines of a text, and how many there are in all."""
        compared = self._compare(content)
        position = compared.find(self._needle)
        if position < 0:
            return (), 0
        # Only of ASCII it is sure that a place in the compared text is the same place in the text itself.
        lines = None if content.isascii() else content.split("\n")
        shown: list[LineMatch] = []
        count, number, counted_to = 0, 1, 0
        while position >= 0:
            number += compared.count("\n", counted_to, position)
            start = compared.rfind("\n", 0, position) + 1
            end = compared.find("\n", position)
            counted_to = position
            count += 1
            if len(shown) < limits.SEARCH_MATCHES_MAX:
                line_end = len(compared) if end < 0 else end
                line = content[start:line_end] if lines is None else lines[number - 1]
                shown.append(LineMatch(number, self._cut(line, position - start, line_end - start)))
            position = -1 if end < 0 else compared.find(self._needle, end)
        return tuple(shown), count

    def marked(self, text: str) -> list[tuple[str, bool]]:
        """The text in pieces, and of each whether the query stands there. Joined, they are the text.

        Meant for a line: what takes part in one letter, an accent for instance, is looked at with all before it.
        """
        clusters = list(text) if text.isascii() else list(_clusters(text, self._compare))
        compared = [self._compare(cluster) for cluster in clusters]
        whole = "".join(compared)
        starts = [0, *accumulate(map(len, compared))]
        pieces, done = [], 0
        position = whole.find(self._needle)
        while position >= 0:
            # A cluster that the query only touches is marked whole.
            end = bisect.bisect_left(starts, position + len(self._needle))
            first = max(done, bisect.bisect_right(starts, position) - 1)
            pieces += [("".join(clusters[done:first]), False), ("".join(clusters[first:end]), True)]
            done = end
            position = whole.find(self._needle, starts[end])
        return [piece for piece in [*pieces, ("".join(clusters[done:]), False)] if piece[0]]

    def _cut(self, line: str, column: int, compared_length: int) -> str:
        if len(line) <= LINE_SHOWN_CHARACTERS:
            return line
        # Folding may change lengths; then the place of the match in the line itself is about the same share of it.
        place = column if compared_length == len(line) else column * len(line) // max(1, compared_length)
        first = max(0, min(place - LINE_SHOWN_CHARACTERS // 3, len(line) - LINE_SHOWN_CHARACTERS))
        cut = line[first : first + LINE_SHOWN_CHARACTERS]
        before = ELLIPSIS if first > 0 else ""
        after = ELLIPSIS if first + LINE_SHOWN_CHARACTERS < len(line) else ""
        return before + cut + after


def _clusters(text: str, compare: Callable[[str], str]) -> Iterator[str]:
    # The shortest pieces that can be compared one by one: a letter with its accents, the parts of a syllable.
    cluster = ""
    for character in text:
        joins = bool(cluster) and not character.isascii()
        if joins and (
            unicodedata.combining(character)
            or compare(cluster + character) != compare(cluster) + compare(character)
        ):
            cluster += character
            continue
        if cluster:
            yield cluster
        cluster = character
    if cluster:
        yield cluster
