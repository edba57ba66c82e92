"""The folder tree opened along the way to one folder: what a page beside it shows, from one state and one query."""

import msgspec

from access import authorizer
from access.pages import Page
from access.principals import Principal
from core import limits
from core.types import ROOT, FolderLocator
from kb.entry import FolderView
from kb.folders import VisibleFolders
from kb.locate import check_folder_locator, find_visible_folder
from kb.services.browse_folders import page_of_folders, shown
from kb.store.stores import store_of


class Level(msgspec.Struct, frozen=True):
    """One open folder and the first folders in it that the caller sees.

    ``beyond`` is the next folder of the way where it stands behind the first ones, so that the way never breaks.
    """

    folder: FolderView
    children: Page[FolderView]
    beyond: FolderView | None


def reveal_folder(
    principal: Principal, folder: FolderLocator = ROOT, *, limit: int = limits.PAGE_MAX
) -> list[Level]:
    """The levels from the root down to the folder itself, which may be a label, with ``limit`` folders in each.

    A level's cursor goes on in ``browse_folders``. Raises NotFound, InvalidArgument, LimitExceeded.
    """
    check_folder_locator(folder)
    with store_of(principal.organization_id).snapshot() as view:
        visible = VisibleFolders(view, authorizer.content_sight_of(principal))
        way = [
            step
            for folder_id in find_visible_folder(view, visible, folder).folder.lineage
            if (step := view.folder(folder_id)) is not None
        ]
        levels = []
        for step, following in zip(way, [*way[1:], None], strict=True):
            children = page_of_folders(principal, visible, step, recursive=False, limit=limit, cursor=None)
            is_beyond = following is not None and all(
                child.folder_id != following.folder.id for child in children.items
            )
            levels.append(
                Level(
                    folder=shown(visible, step),
                    children=children,
                    beyond=shown(visible, following) if following is not None and is_beyond else None,
                )
            )
        return levels
