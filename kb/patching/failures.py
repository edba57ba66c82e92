"""What is told of a patch that does not fit: enough to repair it in one go, and never more than 8 KiB.

Excerpts come from the text that the patch was made for and from the patch itself. They are shown to the caller and
kept nowhere.
"""

import enum
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from core import limits
from core.errors import PatchFailed

# Room that the caller of this module needs for what it adds to the details.
RESERVED_BYTES = 256
CUT = "…"


class Reason(enum.StrEnum):
    """Why a hunk or an edit was refused: the words of the contract."""

    CONTEXT_MISMATCH = "context_mismatch"
    COUNT_MISMATCH = "count_mismatch"
    BAD_HUNK_HEADER = "bad_hunk_header"
    NO_CONTEXT = "no_context"
    AMBIGUOUS = "ambiguous"
    NO_MATCH = "no_match"
    OVERLAP = "overlap"
    OUT_OF_ORDER = "out_of_order"
    WRONG_TARGET = "wrong_target"
    WRONG_FORMAT = "wrong_format"
    UNSUPPORTED = "unsupported"
    TRAILING_TEXT = "trailing_text"
    SEARCH_BUDGET = "search_budget"


@dataclass(frozen=True, slots=True)
class Difference:
    """The first line in which a patch and the text differ, and where in the two lines, counted from 0.

    ``actual`` is None where the text has ended.
    """

    entry_line: int
    expected: str
    actual: str | None
    expected_at: int = 0
    actual_at: int = 0

    def as_dict(self) -> dict[str, Any]:
        """With excerpts around the place, and the code points there where the eye could be deceived."""
        shown: dict[str, Any] = {
            "entry_line": self.entry_line,
            "expected": excerpt(self.expected, self.expected_at),
            "column": self.actual_at + 1,
        }
        if self.actual is None:
            return shown
        shown["actual"] = excerpt(self.actual, self.actual_at)
        expected = self.expected[self.expected_at : self.expected_at + 1]
        actual = self.actual[self.actual_at : self.actual_at + 1]
        if _deceives(expected) or _deceives(actual):
            shown["expected_code_point"] = _code_point(expected)
            shown["actual_code_point"] = _code_point(actual)
        return shown


@dataclass(slots=True)
class Failure:
    """One hunk or edit that was refused; ``unit`` says which of the two, ``number`` counts from 1.

    Without a number the patch as a whole was refused. ``diff_line`` is a line of the diff, every other line is one
    of the text. ``window`` are lines of the text from ``window_line`` on.
    """

    reason: Reason
    problem: str
    unit: str = "hunk"
    number: int | None = None
    diff_line: int | None = None
    declared_line: int | None = None
    nearest_line: int | None = None
    difference: Difference | None = None
    window_line: int = 0
    window: Sequence[str] = ()
    candidate_lines: Sequence[int] = ()
    more_candidates: bool = False
    already_applied: bool = False
    correct_header: str | None = None

    def facts(self) -> dict[str, Any]:
        """What is told in any case: positions and words of ours, nothing of the text."""
        facts: dict[str, Any] = {
            self.unit: self.number,
            "reason": self.reason.value,
            "problem": self.problem,
            "diff_line": self.diff_line,
            "declared_line": self.declared_line,
            "nearest_line": self.nearest_line,
            "candidate_lines": list(self.candidate_lines[: limits.PATCH_CANDIDATES_MAX]) or None,
            "more_candidates": self.more_candidates or None,
            "already_applied": self.already_applied or None,
            "correct_header": self.correct_header,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}

    def window_as_dict(self) -> dict[str, Any]:
        """Lines of the text around the place, each cut."""
        return {"start_line": self.window_line, "lines": [excerpt(line, 0) for line in self.window]}


def refusal(failures: Sequence[Failure], *, total_lines: int) -> PatchFailed:
    """The refusal that tells of the first ten failures. Where room is short, windows go first, then excerpts."""
    told = failures[: limits.PATCH_FAILURES_MAX]
    facts = [failure.facts() for failure in told]
    details: dict[str, Any] = {"failures": facts, "total_lines": total_lines}
    if len(failures) > len(told):
        details["more_failures"] = len(failures) - len(told)
    room = limits.PATCH_DETAILS_MAX_BYTES - RESERVED_BYTES - len(msgspec.json.encode(details))
    for fact, failure in zip(facts, told, strict=True):
        if failure.difference is not None:
            room = _add(fact, "first_difference", failure.difference.as_dict(), room)
    for fact, failure in zip(facts, told, strict=True):
        if failure.window:
            room = _add(fact, "window", failure.window_as_dict(), room)
    return PatchFailed(**details)


def _add(fact: dict[str, Any], name: str, value: dict[str, Any], room: int) -> int:
    size = len(msgspec.json.encode({name: value}))
    if size > room:
        return room
    fact[name] = value
    return room - size


def excerpt(line: str, column: int) -> str:
    """At most 240 characters of the line, those around ``column`` (from 0), with what cannot be seen written out."""
    most = limits.PATCH_EXCERPT_MAX_CHARACTERS - 2 * len(CUT)
    first = max(0, min(column - most // 2, len(line) - most))
    shown = _visible(line[first : first + most])
    is_cut = first + most < len(line) or len(shown) > most
    return f"{CUT if first else ''}{shown[:most]}{CUT if is_cut else ''}"


def _visible(line: str) -> str:
    return "".join(_code_point_in_text(char) if _is_invisible(char) else char for char in line)


def _code_point_in_text(char: str) -> str:
    return f"<{_code_point(char)}>"


def _is_invisible(char: str) -> bool:
    return char != " " and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cn")


def _deceives(char: str) -> bool:
    # Typographic twins of ASCII, letters of other alphabets, blanks of every kind.
    return char != "" and (not char.isascii() or char.isspace())


def _code_point(char: str) -> str:
    return f"U+{ord(char):04X}" if char else "end of line"
