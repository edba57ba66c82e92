"""The paths of folders known by id, for lists that name many of them."""

from collections.abc import Iterable

from access.principals import Principal
from kb.services.locate_folders import locate_folders


def name_folders(principal: Principal, folder_ids: Iterable[str]) -> dict[str, str]:
    """Path by id, of those folders that are there and that the caller can read; the root's path is empty."""
    return {folder.id: folder.path for folder in locate_folders(principal, folder_ids).values()}
