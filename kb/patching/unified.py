"""Writing the unified diff of two texts, with work that is bounded by their size.

The diff is exact, and short where texts differ in a few places; where they differ nearly everywhere it replaces more
than it would have to. ``apply_diff`` accepts what is written here.
"""

import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kb.patching.lines import longest_that

CONTEXT_LINES = 3
# Between what is equal at the beginning and at the end, more lines than that are not compared.
COMPARED_LINES_MAX = 250_000
# Gaps that small are compared line by line, until that many comparisons were made; others are replaced whole.
GAP_CELLS_MAX = 40_000
ALL_CELLS_MAX = 2_000_000
BARE = "\n\\ No newline at end of file\n"

# Lines a to b of the old text became lines c to d of the new one; from 0, without the last.
Change = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class UnifiedDiff:
    """A unified diff, empty for equal texts. ``is_whole`` is False where hunks are missing: too long, too much work."""

    text: str
    is_whole: bool


def unified_diff(old: str, new: str, *, filename: str, max_bytes: int) -> UnifiedDiff:
    """The diff that makes ``new`` of ``old``, in at most ``max_bytes`` of UTF-8: the first hunks that have room."""
    if old == new:
        return UnifiedDiff("", is_whole=True)
    start, old_end, new_end = _span(old, new)
    if max(old.count("\n", start, old_end), new.count("\n", start, new_end)) > COMPARED_LINES_MAX:
        return UnifiedDiff("", is_whole=False)
    one, other = _lines(old[start:old_end]), _lines(new[start:new_end])
    base = old.count("\n", 0, start)
    pieces = [f"--- a/{filename}\n+++ b/{filename}\n"]
    room = max_bytes - len(pieces[0].encode())
    for group in _grouped(_changes(one, other)):
        hunk = _hunk(one, other, group, base)
        room -= len(hunk.encode())
        if room < 0:
            return UnifiedDiff("".join(pieces) if len(pieces) > 1 else "", is_whole=False)
        pieces.append(hunk)
    return UnifiedDiff("".join(pieces), is_whole=True)


def _span(old: str, new: str) -> tuple[int, int, int]:
    """Where the two begin to differ, and the ends of what differs in each; in whole lines, with context around."""
    shorter = min(len(old), len(new))
    head = longest_that(shorter, lambda length: old[:length] == new[:length])
    tail = longest_that(shorter - head, lambda length: old[len(old) - length :] == new[len(new) - length :])
    start = old.rfind("\n", 0, head) + 1
    for _ in range(CONTEXT_LINES):
        start = old.rfind("\n", 0, max(start - 1, 0)) + 1
    end = len(old) - tail
    for _ in range(CONTEXT_LINES + 1):
        end = old.find("\n", end) + 1 or len(old)
    return start, end, len(new) - (len(old) - end)


def _lines(text: str) -> list[str]:
    """The lines with their LF, so that a last line without one differs from the same line with it."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _changes(one: list[str], other: list[str]) -> Iterator[Change]:
    a = c = 0
    for i, j, length in _Matcher(one, other).blocks():
        if a < i or c < j:
            yield a, i, c, j
        a, c = i + length, j + length
    if a < len(one) or c < len(other):
        yield a, len(one), c, len(other)


def _grouped(changes: Iterator[Change]) -> Iterator[list[Change]]:
    group: list[Change] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(one: list[str], other: list[str], group: list[Change], base: int) -> str:
    first = max(0, group[0][0] - CONTEXT_LINES)
    last = min(len(one), group[-1][1] + CONTEXT_LINES)
    body: list[str] = []
    at = first
    for a, b, c, d in group:
        body += [f" {line}" for line in one[at:a]]
        body += [f"-{line}" for line in one[a:b]]
        body += [f"+{line}" for line in other[c:d]]
        at = b
    body += [f" {line}" for line in one[at:last]]
    start = group[0][2] - (group[0][0] - first)
    length = group[-1][3] + (last - group[-1][1]) - start
    header = f"@@ -{_range(base + first, last - first)} +{_range(base + start, length)} @@\n"
    return header + "".join([line if line.endswith("\n") else line + BARE for line in body])


def _range(first: int, length: int) -> str:
    # A side without lines is said to follow the line before it.
    return f"{first + 1 if length else first},{length}"


class _Matcher:
    """Finds lines that both texts have, in one order: by lines that stand once on each side, then gap by gap."""

    def __init__(self, one: list[str], other: list[str]) -> None:
        self._one = one
        self._other = other
        self._cells = ALL_CELLS_MAX
        self._blocks: list[tuple[int, int, int]] = []

    def blocks(self) -> list[tuple[int, int, int]]:
        """(line of the old text, line of the new one, how many from there on), ascending, without overlap."""
        # A list instead of recursion: gaps nest as deep as texts are long.
        gaps = [(0, len(self._one), 0, len(self._other))]
        while gaps:
            gaps += self._match(gaps.pop())
        return sorted(self._blocks)

    def _match(self, gap: Change) -> list[Change]:
        """Keep the equal lines at both ends of a gap and look inside; returns the gaps that are left."""
        one, other = self._one, self._other
        a, b, c, d = gap
        head = 0
        while a + head < b and c + head < d and one[a + head] == other[c + head]:
            head += 1
        self._keep(a, c, head)
        a, c = a + head, c + head
        tail = 0
        while a < b - tail and c < d - tail and one[b - tail - 1] == other[d - tail - 1]:
            tail += 1
        b, d = b - tail, d - tail
        self._keep(b, d, tail)
        if a == b or c == d:
            return []
        anchors = self._anchors(a, b, c, d)
        if not anchors:
            self._compare(a, b, c, d)
            return []
        gaps: list[Change] = []
        for i, j in anchors:
            self._keep(i, j, 1)
            gaps.append((a, i, c, j))
            a, c = i + 1, j + 1
        return [*gaps, (a, b, c, d)]

    def _keep(self, i: int, j: int, length: int) -> None:
        if length:
            self._blocks.append((i, j, length))

    def _anchors(self, a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
        """Lines that stand once on each side: the longest run of them that is in order on both."""
        counts = Counter(self._one[a:b])
        others = Counter(self._other[c:d])
        places = {
            line: index for index, line in enumerate(self._other[c:d], c) if others[line] == counts[line] == 1
        }
        pairs = [(index, places[line]) for index, line in enumerate(self._one[a:b], a) if line in places]
        return _longest_ascending(pairs)

    def _compare(self, a: int, b: int, c: int, d: int) -> None:
        """The longest common subsequence of a small gap, line by line."""
        height, width = b - a, d - c
        if height * width > min(GAP_CELLS_MAX, self._cells):
            return
        self._cells -= height * width
        one, other = self._one[a:b], self._other[c:d]
        # lengths[i][j]: how many lines one[i:] and other[j:] have in common.
        lengths = [[0] * (width + 1) for _ in range(height + 1)]
        for i in reversed(range(height)):
            row, below = lengths[i], lengths[i + 1]
            for j in reversed(range(width)):
                row[j] = below[j + 1] + 1 if one[i] == other[j] else max(row[j + 1], below[j])
        i = j = 0
        while i < height and j < width:
            if one[i] == other[j]:
                self._keep(a + i, c + j, 1)
                i, j = i + 1, j + 1
            elif lengths[i + 1][j] >= lengths[i][j + 1]:
                i += 1
            else:
                j += 1


def _longest_ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs, ascending in both: the first numbers ascend already."""
    ends: list[int] = []
    last_of: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect.bisect_left(ends, place)
        before.append(last_of[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last_of.append(index)
        else:
            ends[length] = place
            last_of[length] = index
    chosen: list[tuple[int, int]] = []
    index = last_of[-1] if last_of else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]
