"""Search the texts, titles, descriptions and filenames that the caller may read."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from django.conf import settings

from access import authorizer
from access.principals import Principal
from core import limits
from core.errors import StorageUnavailable
from core.types import ROOT, FolderLocator, FolderRef
from kb.entry import Entry, Page, entry_summary
from kb.filters import EntryFilter, entry_filter
from kb.folders import VisibleFolders, place_of_entry
from kb.locate import check_folder_locator, find_visible_folder
from kb.pages import Paging
from kb.registry import EntryLine
from kb.search.engines import engine_of
from kb.search.query import LineMatch, Match, Query
from kb.store.content_store import DamagedEntry, View
from kb.store.stores import store_of

# A query of another case than asked for may match nearly everywhere in the pack and nowhere in the entries; after so
# many of them the page is handed out as it is, with a cursor.
CANDIDATES_MAX = 2_000
TRIES = 3


class SearchResult(msgspec.Struct, frozen=True):
    """One entry that holds the query."""

    entry: Entry
    matched_in: tuple[str, ...]
    matches: tuple[LineMatch, ...]
    match_count: int

    def as_dict(self) -> dict[str, Any]:
        """The result as plain JSON values; its entry has no backup state yet."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class _Row(msgspec.Struct, frozen=True):
    folder: FolderRef
    entry: EntryLine
    match: Match | None


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
) -> Page[SearchResult]:
    """The readable entries that hold the literal ``query`` (1 to 256 characters, one line), in path order.

    Texts are compared in NFC, and without case unless ``case_sensitive``. What was saved before the call is found.
    A page may be short and still have a cursor.

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
                visible = VisibleFolders(view, authorizer.sight_of(principal))
                start = find_visible_folder(view, visible, folder)
                bound = ["search", query, case_sensitive, start.folder.id, type, list(tags)]
                paging = Paging(principal, bound, limit=limit, cursor=cursor)
                found = engine.candidates(view, visible, start, wanted, paging.after)
                rows = _rows(view, found, wanted, narrowed)
                page = paging.cut(rows, place=lambda row: place_of_entry(row.folder, row.entry), shape=_shape)
            return Page(
                items=[result for result in page.items if result is not None], next_cursor=page.next_cursor
            )
        except StorageUnavailable:
            # The pack went away between preparing and searching.
            if last_try:
                raise
    raise StorageUnavailable


def _rows(
    view: View, found: Iterator[tuple[FolderRef, EntryLine]], query: Query, narrowed: EntryFilter
) -> Iterator[_Row]:
    tried = 0
    for folder, entry in found:
        if not narrowed.matches(entry):
            continue
        try:
            match = query.match(entry, view.read_content(folder, entry).decode())
        except DamagedEntry:
            continue
        tried += 1
        if match is not None:
            yield _Row(folder, entry, match)
        elif tried > CANDIDATES_MAX:
            # An empty row ends the page here.
            yield from (_Row(folder, entry, None) for _ in range(limits.PAGE_MAX + 1))
            return


def _shape(row: _Row) -> SearchResult | None:
    if row.match is None:
        return None
    return SearchResult(
        entry=entry_summary(row.folder, row.entry, settings.DATA_KEY),
        matched_in=row.match.matched_in,
        matches=row.match.matches,
        match_count=row.match.match_count,
    )
