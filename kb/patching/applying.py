"""Applying a diff or exact edits to a text: all of it where it fits, or nothing and every failure at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from whatthepatch.patch import parse_unified_diff

from core import limits
from kb.patching import failures, hints
from kb.patching.failures import Failure, Reason
from kb.patching.hunks import CONTEXT, Hunk, Unread, header_of
from kb.patching.lines import Lines, SearchBudget
from kb.patching.placing import Place, block_of, place_edit, place_hunk
from kb.patching.reader import read_diff


@dataclass(frozen=True, slots=True)
class Offset:
    """A hunk that was found away from the line it named. ``hunk`` counts from 1."""

    hunk: int
    declared_line: int
    found_line: int


@dataclass(frozen=True, slots=True)
class Patched:
    """The text afterwards, and the hunks that stood elsewhere than they said."""

    text: str
    offsets: tuple[Offset, ...] = ()


@dataclass(slots=True)
class _Placing:
    """The hunks in their order: those that have a place, and the failures of the others."""

    placed: list[tuple[Hunk, Place]] = field(default_factory=list)
    failed: list[tuple[Failure, Hunk | Unread]] = field(default_factory=list)


def apply_diff(text: str, diff: str, *, path: str) -> Patched:
    """Apply a unified diff that is meant for the entry at ``path``.

    Both texts keep the text policy, so that lines end at LF alone. Raises PatchFailed with every hunk that fails.
    """
    reading = read_diff(diff, path)
    lines = Lines(text, SearchBudget())
    placing = _place_all(reading.hunks, lines)
    told: list[Failure] = list(reading.failures)
    for failure, hunk in placing.failed:
        if len(told) < limits.PATCH_FAILURES_MAX:
            hints.help_hunk(failure, hunk, lines)
        told.append(failure)
    if told:
        told.sort(key=lambda failure: failure.diff_line or 0)
        raise failures.refusal(told, total_lines=lines.total)
    offsets = [
        Offset(hunk.number, hunk.declared_line, found)
        for hunk, place in placing.placed
        if not place.is_declared
        and hunk.old
        and (found := lines.number_at(place.start)) != hunk.declared_line
    ]
    return Patched(_spliced(placing.placed, lines), tuple(offsets))


def apply_edits(text: str, edits: Sequence[tuple[str, str]]) -> Patched:
    """Replace each old text, which must stand in ``text`` exactly once, by its new one. All are literal.

    No old text is empty. Raises PatchFailed with every edit that fails.
    """
    lines = Lines(text, SearchBudget())
    places: list[tuple[Place, int]] = []
    told: list[Failure] = []
    for number, (old_text, new_text) in enumerate(edits, 1):
        found = place_edit(number, old_text, lines)
        if isinstance(found, Place):
            places.append((found, number))
            continue
        if len(told) < limits.PATCH_FAILURES_MAX:
            hints.help_edit(found, old_text, new_text, lines)
        told.append(found)
    places.sort(key=lambda placed: placed[0].start)
    told += _overlaps_of_edits(places, lines)
    if told:
        told.sort(key=lambda failure: failure.number or 0)
        raise failures.refusal(told, total_lines=lines.total)
    pieces: list[str] = []
    done = 0
    for place, number in places:
        pieces += [text[done : place.start], edits[number - 1][1]]
        done = place.end
    return Patched("".join([*pieces, text[done:]]))


def _place_all(hunks: Sequence[Hunk | Unread], text: Lines) -> _Placing:
    placing = _Placing()
    for hunk in hunks:
        if isinstance(hunk, Unread):
            placing.failed.append((hunk.failure, hunk))
            continue
        found = place_hunk(hunk, text)
        if isinstance(found, Place) and placing.placed:
            before, last = placing.placed[-1]
            if found.start < last.end or found.start == last.start:
                found = _refused_by_order(hunk, found, before, last, text)
        if isinstance(found, Place):
            placing.placed.append((hunk, found))
        else:
            placing.failed.append((found, hunk))
    return placing


def _refused_by_order(hunk: Hunk, place: Place, before: Hunk, last: Place, text: Lines) -> Failure:
    if place.end <= last.start and place.start < last.start:
        reason = Reason.OUT_OF_ORDER
        problem = (
            f"This hunk belongs before hunk {before.number}. Hunks stand in the order of the entry's lines."
        )
    else:
        reason = Reason.OVERLAP
        problem = f"This hunk has lines in common with hunk {before.number}. Make one hunk of both."
    return Failure(
        reason,
        problem,
        number=hunk.number,
        diff_line=hunk.diff_line,
        declared_line=hunk.declared_line,
        nearest_line=text.number_at(place.start),
    )


def _overlaps_of_edits(places: Sequence[tuple[Place, int]], text: Lines) -> list[Failure]:
    overlapping: list[Failure] = []
    reach, reaching = 0, 0
    for place, number in places:
        if place.start < reach:
            overlapping.append(
                Failure(
                    Reason.OVERLAP,
                    f"This edit has text in common with edit {min(number, reaching)}. Make one edit of both.",
                    unit="edit",
                    number=max(number, reaching),
                    nearest_line=text.number_at(place.start),
                )
            )
        if place.end > reach:
            reach, reaching = place.end, number
    return overlapping


def _spliced(placed: Sequence[tuple[Hunk, Place]], text: Lines) -> str:
    pieces: list[str] = []
    done = 0
    for hunk, place in placed:
        first, last = hunk.core
        # The unchanged lines around stand in the text as in the hunk: the text's own are kept.
        start = place.start + _length(hunk.body[:first])
        end = place.end - _length(hunk.body[last:])
        pieces += [text.text[done:start], _replacement(hunk.body[first:last], text.text[start:end])]
        done = end
    pieces.append(text.text[done:])
    whole = "".join(pieces)
    return whole[:-1] if whole and _ends_bare(placed, text) else whole


def _length(context: Sequence[str]) -> int:
    # The prefix of each line is as long as its LF.
    return sum(map(len, context))


def _replacement(body: list[str], replaced: str) -> str:
    changes = parse_unified_diff([header_of(1, body), *body])
    # What that function makes of the hunk has to be the hunk, and the text there what the hunk says.
    assert len(changes) == len(body)
    assert block_of([change.line for change in changes if change.old is not None]) == replaced
    return block_of([change.line for change in changes if change.new is not None])


def _ends_bare(placed: Sequence[tuple[Hunk, Place]], text: Lines) -> bool:
    """Whether the result has no newline at its end."""
    hunk, place = placed[-1]
    if place.end < len(text.text):
        return text.is_bare
    if hunk.new_is_bare:
        return True
    # Without a mark a last line that stays keeps its state, and a new last line gets a newline.
    return text.is_bare and hunk.body[-1][0] == CONTEXT
