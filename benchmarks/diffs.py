"""Applying a diff to 10 MB, beside whatthepatch alone, which checks little; benchmarks.patching counts who is right."""

from collections.abc import Callable, Sequence
from functools import partial

import whatthepatch

from benchmarks.rows import Row, compared
from benchmarks.timing import in_turn
from kb.patching.applying import apply_diff

LINES = 154_000
LINE = "Line {} of an entry as long as people write them, more or less so."
MANY, FEW = 7_700, 3
ROUNDS = 9


def large_diffs() -> list[Row]:
    """Many hunks and few ones, spread over the text, each with three lines of context as programs write them.

    The least of all rounds: one takes so long that other processes get into every one of them.
    """
    lines = [LINE.format(number) for number in range(LINES)]
    text = "\n".join(lines) + "\n"
    rows = []
    for count, goal in ((MANY, "<= 0.2"), (FEW, "<= 1")):
        diff = diff_of(lines, count)
        ours, theirs = in_turn(partial(_brain, text, diff), partial(_whatthepatch, text, diff), times=ROUNDS)
        assert _brain(text, diff) == _whatthepatch(text, diff)
        name = f"{count:,} hunks into {len(text) / 1e6:.0f} MB beside whatthepatch"
        rows.append(compared(name, ours, theirs, min, goal))
    return rows


def diff_of(lines: Sequence[str], count: int) -> str:
    """A diff of so many hunks, each of which replaces one line by two."""
    apart = len(lines) // count
    pieces = ["--- a.md\n+++ a.md\n"]
    for number in range(count):
        at = number * apart + 5
        before, after = lines[at - 3 : at], lines[at + 1 : at + 4]
        pieces.append(f"@@ -{at - 2},7 +{at - 2 + number},8 @@\n")
        body = [*(f" {line}" for line in before), f"-{lines[at]}", f"+New {number}", "+And more"]
        pieces.append("\n".join([*body, *(f" {line}" for line in after)]) + "\n")
    return "".join(pieces)


def _brain(text: str, diff: str) -> str:
    return apply_diff(text, diff, path="a.md").text


def _whatthepatch(text: str, diff: str) -> str:
    (parsed,) = whatthepatch.parse_patch(diff)
    return "\n".join(whatthepatch.apply_diff(parsed, text.removesuffix("\n").split("\n"))) + "\n"


BENCHMARKS: Sequence[Callable[[], list[Row]]] = (large_diffs,)
