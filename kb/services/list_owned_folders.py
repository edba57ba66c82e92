"""The folders whose access the caller manages."""

from collections.abc import Iterator
from typing import Any

import msgspec

from access import acl, authorizer
from access.pages import Page, Paging
from access.principals import Principal
from core import limits, text
from core.folding import fold
from kb.entry import FolderView
from kb.folders import VisibleFolders, place_of_folder
from kb.services.browse_folders import shown
from kb.store.content_store import View
from kb.store.index import FolderRegistry
from kb.store.stores import store_of

# Before each place, so that the root's, which is empty, differs from the beginning of the list.
_MARK = "/"


class OwnedFolder(msgspec.Struct, frozen=True):
    """A folder and the version of its own grants."""

    folder: FolderView
    acl_version: int

    def as_dict(self) -> dict[str, Any]:
        """The folder as plain JSON values."""
        return {**self.folder.as_dict(), "acl_version": self.acl_version}


def list_owned_folders(
    principal: Principal,
    *,
    query: str | None = None,
    limit: int = limits.PAGE_DEFAULT,
    cursor: str | None = None,
) -> Page[OwnedFolder]:
    """The folders on which the caller is Owner, by grant or by inheritance, in path order.

    ``query`` is a literal text in the path, in any case. For Owners of at least one folder and for administrators.

    Raises Forbidden, InvalidArgument (``query``, ``limit``, ``cursor``), LimitExceeded.
    """
    wanted = "" if query is None else fold(text.check_query(query))
    with store_of(principal.organization_id).snapshot() as view:
        sight = authorizer.sight_of(principal)
        owned = VisibleFolders(view, sight.require_owner_somewhere())
        paging = Paging(principal, ["owned folders", query], limit=limit, cursor=cursor)
        visible = VisibleFolders(view, sight)
        page = paging.cut(
            (row for row in _owned(view, owned, paging.after) if wanted in fold(row.folder.path)),
            place=lambda row: _MARK + place_of_folder(row.folder),
            shape=lambda row: shown(visible, row),
        )
    versions = acl.versions_of(folder.folder_id for folder in page.items)
    return Page(
        items=[OwnedFolder(folder, versions[folder.folder_id]) for folder in page.items],
        next_cursor=page.next_cursor,
    )


def _owned(view: View, owned: VisibleFolders, after: str) -> Iterator[FolderRegistry]:
    if after == "" and owned.role_on(view.root.folder) is not None:
        yield view.root
    for folder in owned.below(view.root, after.removeprefix(_MARK)):
        # What has no role is only the way to what has one.
        if owned.role_on(folder.folder) is not None:
            yield folder
