"""Search the texts, titles, descriptions and filenames that the caller may read."""

import bisect
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from django.conf import settings

from access import authorizer
from access.pages import Page, Paging
from access.principals import Principal
from core import clock, limits
from core.errors import StorageUnavailable
from core.types import ROOT, FolderLocator, FolderRef
from kb.entry import Entry, entry_summary
from kb.filters import EntryFilter, entry_filter
from kb.folders import VisibleFolders, place_of_entry
from kb.headings import OutlineHeading
from kb.locate import check_folder_locator, find_visible_folder
from kb.registry import EntryLine
from kb.search.engines import engine_of
from kb.search.query import LineMatch, Match, Query
from kb.sections import ASIDE_CHARACTERS, outline_of
from kb.store.content_store import View
from kb.store.images import DamagedEntry
from kb.store.stores import store_of

# A query of another case than asked for may match nearly everywhere in the pack and nowhere in the entries; after so
# many of them the page is handed out as it is, with a cursor.
CANDIDATES_MAX = 2_000
# So long a page looks for the headings above its matches; they are remembered by content.
HEADINGS_SECONDS = 0.25
TRIES = 3


class SearchResult(msgspec.Struct, frozen=True):
    """One entry that holds the query.

    ``headings`` are those above each of ``matches``, where they were asked for: empty where there is none, or where
    finding it would take long.
    """

    entry: Entry
    matched_in: tuple[str, ...]
    matches: tuple[LineMatch, ...]
    match_count: int
    headings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The result as plain JSON values, without headings; its entry has no backup state yet."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        del plain["headings"]
        return plain


class _Row(msgspec.Struct, frozen=True):
    folder: FolderRef
    entry: EntryLine
    match: Match | None
    content: str = ""  # where headings are wanted and can be found here


def search_entries(
    principal: Principal,
    query: str,
    folder: FolderLocator = ROOT,
    *,
    type: str | None = None,
    tags: Sequence[str] = (),
    case_sensitive: bool = False,
    limit: int = limits.PAGE_DEFAULT,
    cursor: str | None = None,
    with_headings: bool = False,
) -> Page[SearchResult]:
    """The readable entries that hold the literal ``query`` (1 to 256 characters, one line), in path order.

    Texts are compared in NFC, and without case unless ``case_sensitive``. What was saved before the call is found.
    A page may be short and still have a cursor. ``with_headings`` is for pages that people read.

    Raises NotFound, InvalidArgument, LimitExceeded, StorageUnavailable.
    """
    check_folder_locator(folder)
    wanted = Query(query, case_sensitive=case_sensitive)
    narrowed = entry_filter(type=type, tags=tags)
    engine = engine_of(principal.organization_id)
    for last_try in (False,) * (TRIES - 1) + (True,):
        engine.prepare()
        try:
            with store_of(principal.organization_id).snapshot() as view:
                visible = VisibleFolders(view, authorizer.content_sight_of(principal))
                start = find_visible_folder(view, visible, folder)
                bound = ["search", query, case_sensitive, start.folder.id, type, list(tags)]
                paging = Paging(principal, bound, limit=limit, cursor=cursor)
                found = engine.candidates(view, visible, start, wanted, paging.after)
                rows = _rows(view, found, wanted, narrowed, with_headings=with_headings)
                page = paging.cut(
                    rows, place=lambda row: place_of_entry(row.folder, row.entry), shape=lambda row: row
                )
            # Outside: nobody who writes waits for headings.
            deadline = clock.monotonic() + HEADINGS_SECONDS if with_headings else 0.0
            return Page(
                items=[_result(row, row.match, deadline) for row in page.items if row.match is not None],
                next_cursor=page.next_cursor,
            )
        except StorageUnavailable:
            # The pack went away between preparing and searching.
            if last_try:
                raise
    raise StorageUnavailable


def _rows(
    view: View,
    found: Iterator[tuple[FolderRef, EntryLine]],
    query: Query,
    narrowed: EntryFilter,
    *,
    with_headings: bool,
) -> Iterator[_Row]:
    tried = 0
    for folder, entry in found:
        if not narrowed.matches(entry):
            continue
        try:
            content = view.read_content(folder, entry).decode()
        except DamagedEntry:
            continue
        match = query.match(entry, content)
        tried += 1
        if match is not None:
            is_short = with_headings and len(content) <= ASIDE_CHARACTERS
            yield _Row(folder, entry, match, content if is_short else "")
        elif tried > CANDIDATES_MAX:
            # An empty row ends the page here.
            yield from (_Row(folder, entry, None) for _ in range(limits.PAGE_MAX + 1))
            return


def _result(row: _Row, match: Match, deadline: float) -> SearchResult:
    headings = ("",) * len(match.matches)
    if row.content and match.matches and clock.monotonic() < deadline:
        outline = outline_of(row.content, row.entry.content_hash)
        headings = tuple(_heading_above(found.line, outline) for found in match.matches)
    return SearchResult(
        entry=entry_summary(row.folder, row.entry, settings.DATA_KEY),
        matched_in=match.matched_in,
        matches=match.matches,
        match_count=match.match_count,
        headings=headings,
    )


def _heading_above(line: int, outline: Sequence[OutlineHeading]) -> str:
    above = bisect.bisect_right(outline, line, key=lambda heading: heading.line)
    return outline[above - 1].text if above else ""
