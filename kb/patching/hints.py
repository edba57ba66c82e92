"""What helps to repair a patch that does not fit: the nearest place, the first difference, a right header."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from core import limits
from kb.patching.failures import Difference, Failure, Reason
from kb.patching.hunks import Hunk, Unread, header_of, new_lines, old_lines
from kb.patching.lines import BudgetSpent, Lines, longest_that
from kb.patching.placing import block_of, is_recognisable

# The nearest place is elected: the longest lines vote with each place where they stand; where none stands anywhere,
# the longest parts of some that do, or else words.
VOTERS_MAX = 12
GUESSERS_MAX = 3
VOTES_EACH_MAX = 20
PART_MIN_CHARACTERS = 3
_WORD = re.compile(r"\w+")


def help_hunk(failure: Failure, hunk: Hunk | Unread, text: Lines) -> None:
    """Add to the failure of a hunk what could be found out. Nothing is found where the search budget is spent."""
    try:
        if isinstance(hunk, Unread):
            _help_unread(failure, hunk.body, text)
        elif failure.reason is Reason.CONTEXT_MISMATCH:
            _help_mismatch(failure, hunk.old, hunk.new, text)
    except BudgetSpent:
        return


def help_edit(failure: Failure, old_text: str, new_text: str, text: Lines) -> None:
    """Add to the failure of an edit that was not found what could be found out."""
    if failure.reason is not Reason.NO_MATCH or not text.total:
        return
    try:
        if _is_telling(new_text, old_text) and text.original.count(new_text) == 1:
            failure.already_applied = True
            failure.problem = "The entry does not have this old_text, and has this new_text already."
            failure.nearest_line = text.number_at(text.original.index(new_text))
            _show_window(failure, text)
            return
        pieces = old_text.split("\n")
        nearest = _nearest_line(pieces, 1, lambda index: _find_piece(pieces, index, text), text)
    except BudgetSpent:
        return
    if nearest is not None:
        failure.nearest_line = nearest
        failure.difference = _difference_of_edit(pieces, nearest, text)
        _show_window(failure, text)


def _help_unread(failure: Failure, body: list[str], text: Lines) -> None:
    if not body:
        return
    old = old_lines(body)
    start = _place_of_block(block_of(old), failure.declared_line or 0, text)
    if start is not None:
        failure.correct_header = header_of(start, body)
    elif old:
        _help_mismatch(failure, old, new_lines(body), text)


def _help_mismatch(failure: Failure, old: list[str], new: list[str], text: Lines) -> None:
    if not text.total:
        return
    declared = failure.declared_line or 1
    block = block_of(new)
    applied = _place_of_block(block, declared, text) if is_recognisable(block) else None
    if applied is not None and failure.nearest_line is None:
        failure.already_applied = True
        failure.nearest_line = applied
        if failure.reason is Reason.CONTEXT_MISMATCH:
            failure.problem = "The entry reads already as this hunk would make it."
        _show_window(failure, text)
        return
    if failure.nearest_line is None:
        failure.nearest_line = _nearest_line(
            old, declared, lambda index: text.find_lines(f"{old[index]}\n", most=VOTES_EACH_MAX), text
        ) or min(declared, text.total)
    failure.difference = _difference(old, failure.nearest_line, text)
    _show_window(failure, text)


def _place_of_block(block: str, declared: int, text: Lines) -> int | None:
    """The line where a block stands: the declared one, or the only one."""
    if not block:
        return None if text.total else 0
    if 1 <= declared <= text.total and text.stands_at(block, text.offset_of(declared)):
        return declared
    found = text.find_lines(block, most=2) if is_recognisable(block) else []
    return text.number_at(found[0]) if len(found) == 1 else None


def _is_telling(new_text: str, old_text: str) -> bool:
    """Whether finding the new text tells that the edit was made before."""
    return new_text not in old_text and is_recognisable(new_text)


def _nearest_line(
    lines: Sequence[str], declared: int, find_line: Callable[[int], list[int]], text: Lines
) -> int | None:
    """The line at which ``lines`` most likely should stand; ``find_line`` gives offsets of one of them."""
    votes: Counter[int] = Counter()
    for index in _longest(lines, VOTERS_MAX):
        if lines[index].strip():
            _vote(votes, index, find_line(index), text)
    if not votes:
        for index in _longest(lines, GUESSERS_MAX):
            _vote(votes, index, _find_part(_agreeing_part(lines[index], text), text), text)
    if not votes:
        words = sorted({(index, word) for index, line in enumerate(lines) for word in _WORD.findall(line)})
        for at in _longest([word for _, word in words], VOTERS_MAX):
            index, word = words[at]
            _vote(votes, index, _find_part(word, text), text)
    if not votes:
        return None
    elected = max(votes, key=lambda line: (votes[line], -abs(line - declared)))
    # A line that was left out splits the votes. Then the place counts where the beginning fits.
    near = [line for line in votes if abs(line - elected) <= len(lines)]
    elected = max(near, key=lambda line: (_fitting(lines, line, text), votes[line], line == elected))
    return min(max(elected, 1), text.total)


def _vote(votes: Counter[int], index: int, offsets: Sequence[int], text: Lines) -> None:
    votes.update(text.number_at(at) - index for at in offsets)


def _find_piece(pieces: Sequence[str], index: int, text: Lines) -> list[int]:
    """Offsets within the lines where a piece of an edit stands as a line, or as the end or beginning of one."""
    before = "\n" if index > 0 else ""
    behind = "\n" if index < len(pieces) - 1 else ""
    found = text.find(f"{before}{pieces[index]}{behind}", most=VOTES_EACH_MAX)
    return [at + len(before) for at in found]


def _find_part(part: str, text: Lines) -> list[int]:
    return text.find(part, most=VOTES_EACH_MAX) if len(part.strip()) >= PART_MIN_CHARACTERS else []


def _agreeing_part(line: str, text: Lines) -> str:
    """The longest beginning or ending of a line that stands anywhere."""
    head = longest_that(len(line), lambda length: bool(text.find(line[:length], most=1)))
    tail = longest_that(len(line), lambda length: bool(text.find(line[len(line) - length :], most=1)))
    return line[:head] if head >= tail else line[len(line) - tail :]


def _longest(lines: Sequence[str], most: int) -> list[int]:
    """The indexes of the longest lines."""
    return sorted(range(len(lines)), key=lambda index: -len(lines[index]))[:most]


def _fitting(lines: Sequence[str], start: int, text: Lines) -> int:
    """How many of the first lines, as far as one could know them again, stand from ``start`` on."""
    fitting = 0
    for number, line in enumerate(lines, start):
        if not 1 <= number <= text.total or text.line(number) != line:
            break
        fitting += is_recognisable(line)
    return fitting


def _difference(old: Sequence[str], start: int, text: Lines) -> Difference | None:
    for number, expected in enumerate(old, start):
        if number > text.total:
            return Difference(number, expected, None)
        actual = text.line(number)
        if actual != expected:
            same = _common_length(expected, actual)
            return Difference(number, expected, actual, same, same)
    return None


def _difference_of_edit(pieces: Sequence[str], start: int, text: Lines) -> Difference | None:
    last = len(pieces) - 1
    for index, expected in enumerate(pieces):
        number = start + index
        if number > text.total:
            return Difference(number, expected, None)
        actual = text.line(number)
        # The first piece may begin and the last one may end in the middle of a line.
        if index == 0:
            stands = expected in actual if index == last else actual.endswith(expected)
        else:
            stands = actual.startswith(expected) if index == last else actual == expected
        if not stands and index == 0:
            same = _longest_beginning_in(expected, actual)
            return Difference(number, expected, actual, same, actual.find(expected[:same]) + same)
        if not stands:
            same = _common_length(expected, actual)
            return Difference(number, expected, actual, same, same)
    return None


def _show_window(failure: Failure, text: Lines) -> None:
    around = failure.difference.entry_line if failure.difference else failure.nearest_line or 1
    most = limits.PATCH_WINDOW_MAX_LINES
    first = max(1, min(around - most // 2 + 1, text.total - most + 1))
    failure.window_line = first
    failure.window = [text.line(number) for number in range(first, min(first + most, text.total + 1))]


def _common_length(one: str, other: str) -> int:
    return longest_that(min(len(one), len(other)), lambda length: one[:length] == other[:length])


def _longest_beginning_in(piece: str, line: str) -> int:
    return longest_that(min(len(piece), len(line)), lambda length: piece[:length] in line)
