"""List the entries in a folder, or at any depth below it."""

from collections.abc import Sequence

from django.conf import settings

from access import authorizer
from access.pages import Page, Paging
from access.principals import Principal
from core import limits
from core.types import ROOT, FolderLocator
from kb.entry import Entry, entry_summary
from kb.filters import entry_filter
from kb.folders import VisibleFolders, place_of_entry
from kb.locate import check_folder_locator, find_visible_folder
from kb.store.stores import store_of


def browse_entries(
    principal: Principal,
    folder: FolderLocator = ROOT,
    *,
    recursive: bool = False,
    type: str | None = None,
    tags: Sequence[str] = (),
    name_contains: str | None = None,
    limit: int = limits.PAGE_DEFAULT,
    cursor: str | None = None,
) -> Page[Entry]:
    """The readable entries there, in path order. On a label there are none but those below it.

    ``type``, every one of ``tags``, and ``name_contains`` (in filename or title, without case) narrow the list.

    Raises NotFound, InvalidArgument (``limit``, ``cursor``, locator), LimitExceeded.
    """
    check_folder_locator(folder)
    narrowed = entry_filter(type=type, tags=tags, name_contains=name_contains)
    with store_of(principal.organization_id).snapshot() as view:
        visible = VisibleFolders(view, authorizer.content_sight_of(principal))
        start = find_visible_folder(view, visible, folder)
        bound = ["entries", start.folder.id, recursive, type, list(tags), name_contains]
        paging = Paging(principal, bound, limit=limit, cursor=cursor)
        rows = visible.entries(start, paging.after, recursive=recursive)
        return paging.cut(
            (row for row in rows if narrowed.matches(row[1])),
            place=lambda row: place_of_entry(*row),
            shape=lambda row: entry_summary(*row, settings.DATA_KEY),
        )
