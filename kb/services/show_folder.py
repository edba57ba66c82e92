"""One folder as the caller sees it, for a page about it."""

from access import authorizer
from access.principals import Principal
from core.types import FolderLocator
from kb.entry import FolderView
from kb.folders import VisibleFolders
from kb.locate import check_folder_locator, find_visible_folder
from kb.services.browse_folders import shown
from kb.store.stores import store_of


def show_folder(principal: Principal, folder: FolderLocator) -> FolderView:
    """The folder, which may be a label; the root always. Raises NotFound, InvalidArgument, LimitExceeded."""
    check_folder_locator(folder)
    with store_of(principal.organization_id).snapshot() as view:
        visible = VisibleFolders(view, authorizer.sight_of(principal))
        return shown(visible, find_visible_folder(view, visible, folder))
