"""Changing the grants of one folder: the steps that every such change shares."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from access import authorizer
from access.authorizer import Sight
from access.database import all_or_nothing
from access.models import Folder, FolderGrant
from access.principals import Principal
from access.writer import writer_queue
from core.errors import AccessVersionConflict
from core.types import FolderRef, Role


@contextmanager
def changing(principal: Principal, folder: FolderRef) -> Iterator[tuple[Sight, Folder]]:
    """Hold the folder's grants for a change by an Owner: under ``writer``, in one database transaction.

    Saves and the last check of a push stand in the same order, so none that was judged before a revocation lands
    after it. The caller is judged again under the lock; the sight of that moment is given with the row.

    Raises NotFound, Forbidden, StorageUnavailable.
    """
    authorizer.sight_of(principal).require(Role.OWNER, folder)
    with writer_queue(principal.organization_id).hold(urgent=True), all_or_nothing():
        sight = authorizer.sight_of(principal)
        sight.require(Role.OWNER, folder)
        row, _ = Folder.objects.select_for_update().get_or_create(
            id=folder.id, defaults={"organization_id": principal.organization_id}
        )
        yield sight, row


def compare(row: Folder, expected_acl_version: int | None) -> None:
    """Go on only with the version that the caller looked at; None is not compared (the shell).

    Raises AccessVersionConflict.
    """
    if expected_acl_version is not None and expected_acl_version != row.acl_version:
        raise AccessVersionConflict(current_acl_version=row.acl_version)


def advance(row: Folder) -> int:
    """Count one change of the folder's own grants; the new version."""
    row.acl_version += 1
    row.save(update_fields=["acl_version"])
    return row.acl_version


def versions_of(folder_ids: Iterable[str]) -> dict[str, int]:
    """The version of each folder, 0 where nothing was ever granted: one query."""
    known = dict(Folder.objects.filter(id__in=list(folder_ids)).values_list("id", "acl_version"))
    return defaultdict(int, known)


def direct_grant(row: Folder, identity_id: str) -> FolderGrant | None:
    """The identity's own grant on the folder, leaving out what it inherits."""
    return (
        FolderGrant.objects.filter(content_object=row, user_id=identity_id)
        .select_related("permission")
        .first()
    )
