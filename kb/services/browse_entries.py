"""List the entries in a folder, or at any depth below it."""

from django.conf import settings

from access import authorizer
from access.principals import Principal
from core import limits
from core.types import ROOT, FolderLocator
from kb.entry import Entry, Page, entry_summary
from kb.folders import VisibleFolders, place_of_entry
from kb.locate import check_folder_locator, find_visible_folder
from kb.pages import Paging
from kb.store.stores import store_of


def browse_entries(
    principal: Principal,
    folder: FolderLocator = ROOT,
    *,
    recursive: bool = False,
    limit: int = limits.PAGE_DEFAULT,
    cursor: str | None = None,
) -> Page[Entry]:
    """The readable entries there, in path order. On a label there are none but those below it.

    Raises NotFound, InvalidArgument (``limit``, ``cursor``, locator), LimitExceeded.
    """
    check_folder_locator(folder)
    with store_of(principal.organization_id).snapshot() as view:
        visible = VisibleFolders(view, authorizer.sight_of(principal))
        start = find_visible_folder(view, visible, folder)
        paging = Paging(principal, ["entries", start.folder.id, recursive], limit=limit, cursor=cursor)
        return paging.cut(
            visible.entries(start, paging.after, recursive=recursive),
            place=lambda row: place_of_entry(*row),
            shape=lambda row: entry_summary(*row, settings.DATA_KEY),
        )
