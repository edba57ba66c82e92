"""Changing the grants of one folder: the steps that every such change shares."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import OperationalError, transaction

from access import authorizer
from access.models import Folder, FolderGrant
from access.principals import Principal
from access.writer import writer_queue
from core.errors import AccessVersionConflict, StorageUnavailable
from core.types import FolderRef, Role


@contextmanager
def changing(principal: Principal, folder: FolderRef, expected_acl_version: int | None) -> Iterator[Folder]:
    """Hold the folder's grants for a change by an Owner: under ``writer``, in one database transaction.

    Saves and the last check of a push stand in the same order, so none that was judged before a revocation lands
    after it. The caller is judged again under the lock. ``expected_acl_version`` None is not compared (the shell).

    Raises NotFound, Forbidden, AccessVersionConflict, StorageUnavailable.
    """
    authorizer.sight_of(principal).require(Role.OWNER, folder)
    with writer_queue(principal.organization_id).hold(urgent=True), _all_or_nothing():
        authorizer.sight_of(principal).require(Role.OWNER, folder)
        row, _ = Folder.objects.select_for_update().get_or_create(
            id=folder.id, defaults={"organization_id": principal.organization_id}
        )
        if expected_acl_version is not None and expected_acl_version != row.acl_version:
            raise AccessVersionConflict(current_acl_version=row.acl_version)
        yield row


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


@contextmanager
def _all_or_nothing() -> Iterator[None]:
    try:
        with transaction.atomic():
            yield
    except OperationalError as error:
        # The disk is full or read-only, or the database stayed busy.
        raise StorageUnavailable from error
