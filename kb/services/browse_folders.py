"""List the folders in a folder, or at any depth below it."""

from access import authorizer
from access.pages import Page, Paging
from access.principals import Principal
from core import limits
from core.types import ROOT, FolderLocator
from kb.entry import FolderView, folder_view
from kb.folders import VisibleFolders, place_of_folder
from kb.locate import check_folder_locator, find_visible_folder
from kb.store.index import FolderRegistry
from kb.store.stores import store_of


def browse_folders(
    principal: Principal,
    folder: FolderLocator = ROOT,
    *,
    recursive: bool = False,
    limit: int = limits.PAGE_DEFAULT,
    cursor: str | None = None,
) -> Page[FolderView]:
    """The folders that the caller sees there, in path order; labels have no role.

    Raises NotFound, InvalidArgument (``limit``, ``cursor``, locator), LimitExceeded.
    """
    check_folder_locator(folder)
    with store_of(principal.organization_id).snapshot() as view:
        visible = VisibleFolders(view, authorizer.content_sight_of(principal))
        start = find_visible_folder(view, visible, folder)
        return page_of_folders(principal, visible, start, recursive=recursive, limit=limit, cursor=cursor)


def page_of_folders(
    principal: Principal,
    visible: VisibleFolders,
    start: FolderRegistry,
    *,
    recursive: bool,
    limit: int,
    cursor: str | None,
) -> Page[FolderView]:
    """One page of the folders below ``start``. Raises InvalidArgument (``limit``, ``cursor``)."""
    paging = Paging(principal, ["folders", start.folder.id, recursive], limit=limit, cursor=cursor)
    walk = visible.below if recursive else visible.children
    return paging.cut(
        walk(start, paging.after),
        place=lambda row: place_of_folder(row.folder),
        shape=lambda row: shown(visible, row),
    )


def shown(visible: VisibleFolders, folder: FolderRegistry) -> FolderView:
    """One folder as the caller sees it."""
    return folder_view(
        folder.folder, visible.role_on(folder.folder), has_children=visible.has_children(folder)
    )
