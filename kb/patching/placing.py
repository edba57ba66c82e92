"""Where hunks and edits belong: at the line they name, or at the one place that their text fits; nowhere else.

No fuzz and no folding of blanks, case or look-alikes. Everything is matched against the text as it was.
"""

from collections.abc import Sequence
from typing import NamedTuple

from core import limits
from kb.patching.failures import Failure, Reason
from kb.patching.hunks import Hunk
from kb.patching.lines import BudgetSpent, Lines

# One more than are told, to know that there are more.
CANDIDATES = limits.PATCH_CANDIDATES_MAX + 1


class Place(NamedTuple):
    """Offsets of the text that a hunk or an edit replaces; ``is_declared`` where the hunk's own line led there."""

    start: int
    end: int
    is_declared: bool = False


def place_hunk(hunk: Hunk, text: Lines) -> Place | Failure:
    """The place of a hunk, or why it has none."""
    try:
        found = _place(hunk, text)
    except BudgetSpent:
        found = _refused(
            hunk,
            Reason.SEARCH_BUDGET,
            "Looking for the places of so many hunks takes too long. State right line numbers, or send fewer hunks.",
        )
    return found


def place_edit(number: int, old_text: str, text: Lines) -> Place | Failure:
    """The place of the only occurrence of ``old_text``, or why there is none."""
    found: list[int] = []
    start = 0
    while len(found) < CANDIDATES and (at := text.original.find(old_text, start)) >= 0:
        found.append(at)
        start = at + 1
    if len(found) == 1:
        return Place(found[0], found[0] + len(old_text))
    if not found:
        return Failure(
            Reason.NO_MATCH, "This old_text does not stand in the entry.", unit="edit", number=number
        )
    return Failure(
        Reason.AMBIGUOUS,
        "This old_text stands in the entry more than once. Take in more of the text around it.",
        unit="edit",
        number=number,
        candidate_lines=[text.number_at(at) for at in found],
        more_candidates=len(found) == CANDIDATES,
    )


def block_of(lines: Sequence[str]) -> str:
    """Whole lines as they stand in a text."""
    return "\n".join(lines) + "\n" if lines else ""


def is_recognisable(block: str) -> bool:
    """Whether there is a letter or digit in it: blanks and rules are found everywhere."""
    return any(char.isalnum() for char in block)


def _place(hunk: Hunk, text: Lines) -> Place | Failure:
    block = block_of(hunk.old)
    if not block:
        if text.total:
            return _refused(
                hunk,
                Reason.NO_CONTEXT,
                "Nothing in this hunk says where it belongs. Keep unchanged lines around the added ones.",
            )
        return Place(0, 0)
    declared = text.offset_of(hunk.declared_line) if 1 <= hunk.declared_line <= text.total else None
    stands_there = declared is not None and text.stands_at(block, declared)
    if hunk.old_is_bare or hunk.new_is_bare:
        return _place_at_end(hunk, block, declared if stands_there else None, text)
    if declared is not None and stands_there and hunk.has_context:
        return Place(declared, declared + len(block), is_declared=True)
    found = text.find_lines(block, most=CANDIDATES)
    if not found:
        return _mismatch(hunk, text)
    lines = [text.number_at(at) for at in found]
    if len(found) > 1:
        problem = (
            "What this hunk removes stands in the entry more than once. Keep unchanged lines around it."
            if stands_there
            else "This hunk does not fit at its line and fits at several others. State the right line, or more context."
        )
        return _refused(hunk, Reason.AMBIGUOUS, problem, lines)
    if not stands_there and not is_recognisable(block):
        return _refused(
            hunk,
            Reason.NO_CONTEXT,
            "This hunk does not fit at its line, and without a letter or digit it is not looked for elsewhere.",
            lines,
        )
    return Place(found[0], found[0] + len(block))


def _place_at_end(hunk: Hunk, block: str, declared: int | None, text: Lines) -> Place | Failure:
    # The mark of a missing newline names the place: the end of the text.
    at = len(text.text) - len(block)
    stands_there = at >= 0 and text.stands_at(block, at) and (at == 0 or text.text[at - 1] == "\n")
    if not stands_there:
        if declared is None:
            return _mismatch(hunk, text)
        return _refused(
            hunk,
            Reason.CONTEXT_MISMATCH,
            "The mark of a missing newline says that the entry ends with this hunk, and it goes on.",
            nearest=hunk.declared_line,
        )
    if hunk.old_is_bare and not text.is_bare:
        return _refused(
            hunk,
            Reason.CONTEXT_MISMATCH,
            "The mark says that the entry has no newline at its end, and it has one.",
            nearest=text.number_at(at),
        )
    if at != declared and not is_recognisable(block):
        return _refused(
            hunk,
            Reason.NO_CONTEXT,
            "This hunk does not fit at its line, and without a letter or digit it is not looked for elsewhere.",
            [text.number_at(at)],
        )
    return Place(at, len(text.text))


def _mismatch(hunk: Hunk, text: Lines) -> Failure:
    problem = (
        "The entry does not read like this hunk's unchanged and removed lines."
        if text.total
        else "The entry is empty."
    )
    return _refused(hunk, Reason.CONTEXT_MISMATCH, problem)


def _refused(
    hunk: Hunk, reason: Reason, problem: str, candidates: Sequence[int] = (), *, nearest: int | None = None
) -> Failure:
    return Failure(
        reason,
        problem,
        number=hunk.number,
        diff_line=hunk.diff_line,
        declared_line=hunk.declared_line,
        nearest_line=nearest,
        candidate_lines=candidates,
        more_candidates=len(candidates) == CANDIDATES,
    )
