"""The folder behind a locator, for callers that go on to judge or change its access."""

from access import authorizer
from access.principals import Principal
from core.types import FolderLocator, FolderRef
from kb.locate import check_folder_locator, find_folder
from kb.store.stores import store_of


def locate_folder(principal: Principal, folder: FolderLocator) -> FolderRef:
    """The folder with its lineage, if the caller can read it. Raises NotFound, InvalidArgument, LimitExceeded."""
    check_folder_locator(folder)
    with store_of(principal.organization_id).snapshot() as view:
        return find_folder(view, authorizer.sight_of(principal), folder).folder
