"""What a caller can do, and, for Owners, who else can."""

from dataclasses import dataclass
from typing import Any

from access import acl, authorizer
from access.grant_view import GrantView
from access.models import FolderGrant
from access.principals import Principal, scopes_to_json
from core.types import Capability, FolderRef, Role


@dataclass(frozen=True, slots=True)
class AccessView:
    """What a connection can do now. ``acl_version`` and ``grants`` are None unless it has Owner on the folder.

    Without a folder ``role`` is None too: then it is about the caller alone.
    """

    principal: Principal
    role: Role | None
    capability: Capability
    folder_scopes: tuple[tuple[str, Role], ...] | None
    acl_version: int | None
    grants: tuple[GrantView, ...] | None

    def as_dict(self) -> dict[str, Any]:
        """The contract's ``inspect`` as plain JSON values, without ``folder``, which ``kb`` shows."""
        return {
            "identity": {
                "identity_id": self.principal.identity_id,
                "name": self.principal.name,
                "username": self.principal.username,
                "kind": self.principal.kind.value,
            },
            "role": self.role.word if self.role else None,
            "capability": self.capability.value,
            "folder_scopes": scopes_to_json(self.folder_scopes),
            "acl_version": self.acl_version,
            "grants": None if self.grants is None else [grant.as_dict() for grant in self.grants],
        }


def inspect_access(principal: Principal, folder: FolderRef | None = None) -> AccessView:
    """What the caller can do, on ``folder`` if given; for an Owner also who else can, by direct or inherited grant.

    Administrators, who need no grant, are not listed. Raises NotFound.
    """
    sight = authorizer.sight_of(principal)
    connection = sight.principal.connection
    role = acl_version = grants = None
    if folder is not None:
        sight.require(Role.READER, folder)
        role = sight.role_on(folder)
        if role is Role.OWNER:
            acl_version = acl.versions_of([folder.id])[folder.id]
            grants = _grants_reaching(folder, sight)
    return AccessView(
        principal=sight.principal,
        role=role,
        capability=connection.capability if connection else Capability.WRITE,
        folder_scopes=connection.folder_scopes if connection else None,
        acl_version=acl_version,
        grants=grants,
    )


def _grants_reaching(folder: FolderRef, sight: authorizer.Sight) -> tuple[GrantView, ...]:
    rows = FolderGrant.objects.filter(content_object_id__in=folder.lineage).select_related(
        "user", "permission"
    )
    granting_folders = {granting.id: granting for granting in folder.upwards}
    nearest_first = list(granting_folders)
    views = []
    for row in sorted(rows, key=lambda row: (nearest_first.index(row.content_object_id), row.user.username)):
        granting = granting_folders[row.content_object_id]
        views.append(
            GrantView(
                identity_id=row.user.id,
                name=row.user.name,
                username=row.user.username,
                kind=row.user.kind,
                role=row.role,
                folder_path=granting.path if sight.can_read(granting) else None,
                inherited=granting.id != folder.id,
            )
        )
    return tuple(views)
