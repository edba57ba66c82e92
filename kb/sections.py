"""Selecting a part of an entry by its heading.

A section begins with its heading and ends before the next heading of the same or a higher rank, or with the entry.
Headings are compared exactly: no case folding, no Unicode normalisation. What is close is told, never taken.
"""

import re
import threading
import unicodedata
from collections import OrderedDict
from dataclasses import dataclass

from core import limits, text
from core.errors import AmbiguousSection, InvalidArgument, LimitExceeded, SectionNotFound
from kb.headings import OutlineHeading, outline
from kb.render_process import Busy, the_outliner

# Larger texts are looked through in a process of their own, since the parser holds the interpreter for seconds.
ASIDE_CHARACTERS = 64 * 1024
CACHED_OUTLINES_MAX = 256
CACHED_HEADINGS_MAX = 50_000
SUGGESTIONS_MAX = 5

_DECORATION = re.compile(r"^#+\s*|\s*\{\s*#[^{}]*\}\s*$|[*_`]")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading's plain text, and which of several equal ones, from 1 on."""

    heading: str
    occurrence: int | None = None


def check_section(section: Section) -> None:
    """Refuse a section that no entry could have. Raises InvalidArgument, LimitExceeded."""
    if section.heading == "":
        raise InvalidArgument("section", "A heading is not empty.")
    if len(section.heading) > limits.HEADING_MAX_CHARACTERS:
        raise LimitExceeded("section", limit=limits.HEADING_MAX_CHARACTERS, unit="characters")
    text.refuse_unprintable(section.heading, field="section")
    if section.occurrence is not None and section.occurrence < 1:
        raise InvalidArgument("section", "Occurrences count from 1.")


def lines_of_section(content: str, content_hash: str, total_lines: int, section: Section) -> tuple[int, int]:
    """First and last line of a section, from 1 on. Raises SectionNotFound, AmbiguousSection, InvalidArgument."""
    headings = outline_of(content, content_hash)
    named = [
        number
        for number, heading in enumerate(headings)
        if heading.selectable and heading.text == section.heading
    ]
    if not named or (section.occurrence or 1) > len(named):
        raise _not_found(headings, section.heading)
    if section.occurrence is None and len(named) > 1:
        occurrences = [
            {"occurrence": count, "line": headings[number].line}
            for count, number in enumerate(named[: limits.OUTLINE_MAX], 1)
        ]
        raise AmbiguousSection(occurrences=occurrences, total_occurrences=len(named))
    first = named[(section.occurrence or 1) - 1]
    own = headings[first]
    behind = next((heading for heading in headings[first + 1 :] if heading.level <= own.level), None)
    return own.line, behind.line - 1 if behind else total_lines


def outline_of(content: str, content_hash: str) -> list[OutlineHeading]:
    """The entry's top-level headings, remembered by its hash. Raises InvalidArgument for one that takes too long."""
    known = _cache.get(content_hash)
    if known is None:
        known = outline(content) if len(content) <= ASIDE_CHARACTERS else _outline_aside(content)
        _cache.keep(content_hash, known)
    return known


def _outline_aside(content: str) -> list[OutlineHeading]:
    try:
        found = the_outliner.outline(content)
    except Busy:
        found = None
    if found is None:
        raise InvalidArgument(
            "section", "Finding the headings of this entry takes too long. Read it by lines."
        )
    return found


def _not_found(headings: list[OutlineHeading], wanted: str) -> SectionNotFound:
    listed = [
        {
            "level": heading.level,
            "text": heading.text[: limits.OUTLINE_TEXT_MAX_CHARACTERS],
            "line": heading.line,
        }
        for heading in headings
        if heading.selectable
    ]
    alike = [
        heading.text for heading in headings if heading.selectable and _bare(heading.text) == _bare(wanted)
    ]
    return SectionNotFound(
        outline=listed[: limits.OUTLINE_MAX],
        total_headings=len(listed),
        did_you_mean=list(dict.fromkeys(alike))[:SUGGESTIONS_MAX],
    )


def _bare(heading: str) -> str:
    """The heading without what people leave out or add: case, accents' spelling, ``#``, markup, an anchor."""
    return " ".join(_DECORATION.sub("", unicodedata.normalize("NFC", heading)).casefold().split())


class _Outlines:
    """Outlines by content hash, the last used ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, list[OutlineHeading]] = OrderedDict()
        self._headings = 0

    def get(self, content_hash: str) -> list[OutlineHeading] | None:
        with self._lock:
            if content_hash in self._kept:
                self._kept.move_to_end(content_hash)
            return self._kept.get(content_hash)

    def keep(self, content_hash: str, found: list[OutlineHeading]) -> None:
        with self._lock:
            if content_hash in self._kept:
                return
            self._kept[content_hash] = found
            self._headings += len(found)
            while len(self._kept) > CACHED_OUTLINES_MAX or (
                self._headings > CACHED_HEADINGS_MAX and len(self._kept) > 1
            ):
                self._headings -= len(self._kept.popitem(last=False)[1])


_cache = _Outlines()
