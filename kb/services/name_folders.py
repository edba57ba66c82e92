"""The paths of folders known by id, for lists that name many of them."""

from collections.abc import Iterable

from access import authorizer
from access.principals import Principal
from kb.store.stores import store_of


def name_folders(principal: Principal, folder_ids: Iterable[str]) -> dict[str, str]:
    """Path by id, of those folders that are there and that the caller can read; the root's path is empty."""
    sight = authorizer.sight_of(principal)
    with store_of(principal.organization_id).snapshot() as view:
        found = (view.folder(folder_id) for folder_id in set(folder_ids))
        return {
            folder.folder.id: folder.folder.path
            for folder in found
            if folder is not None and sight.can_read(folder.folder)
        }
