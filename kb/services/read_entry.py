"""Read an entry: whole, by lines, or one section."""

from typing import Any

import msgspec
from django.conf import settings

from access import authorizer
from access.principals import Principal
from core import text
from core.errors import InvalidArgument, RangeOutOfBounds
from core.types import EntryLocator
from kb.entry import Entry, entry_summary
from kb.locate import check_entry_locator, find_entry
from kb.sections import Section, check_section, lines_of_section
from kb.store.stores import store_of


class Reading(msgspec.Struct, frozen=True):
    """What was read. ``version`` is the whole entry's, whichever part was read; an empty entry has bounds of 0."""

    entry: Entry
    content: str
    start_line: int
    end_line: int
    total_lines: int
    ends_with_newline: bool
    version: str

    def as_dict(self) -> dict[str, Any]:
        """The reading as plain JSON values; its entry has no backup state yet."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def read_entry(
    principal: Principal,
    entry: EntryLocator,
    *,
    lines: tuple[int, int] | None = None,
    section: Section | None = None,
) -> Reading:
    """Read the whole entry; or ``lines``, first and last, from 1 on, inclusive; or a ``section``.

    A last line beyond the end is cut. ``content`` holds the newline of its last line where there is one.

    Raises NotFound, InvalidArgument, LimitExceeded, RangeOutOfBounds, SectionNotFound, AmbiguousSection,
    StorageUnavailable.
    """
    check_entry_locator(entry)
    if section is not None:
        if lines is not None:
            raise InvalidArgument("section", "Give either a section or lines.")
        check_section(section)
    if lines is not None and not 1 <= lines[0] <= lines[1]:
        raise InvalidArgument("start_line", "Lines count from 1, and start_line is not above end_line.")
    with store_of(principal.organization_id).snapshot() as view:
        folder, line = find_entry(view, authorizer.content_sight_of(principal), entry)
        summary = entry_summary(folder.folder, line, settings.DATA_KEY)
        data = view.read_content(folder.folder, line)
    whole = data.decode()
    first, last, content = (min(1, summary.total_lines), summary.total_lines, whole)
    if section is not None:
        lines = lines_of_section(whole, summary.content_hash, summary.total_lines, section)
    if lines is not None:
        first, last = lines[0], min(lines[1], summary.total_lines)
        if first > summary.total_lines:
            raise RangeOutOfBounds(total_lines=summary.total_lines)
        content = text.slice_lines(whole, first, last)
    return Reading(
        entry=summary,
        content=content,
        start_line=first,
        end_line=last,
        total_lines=summary.total_lines,
        ends_with_newline=whole.endswith("\n"),
        version=summary.version,
    )
