"""Taking away an identity's direct role on a folder."""

from dataclasses import dataclass
from typing import Any

from access import acl, audit, authorizer
from access.audit import AuditAction
from access.authorizer import Sight
from access.models import Folder, FolderGrant, Identity
from access.principals import Principal
from access.requests import UNCLAIMED, Claim
from access.warnings import AccessWarning, warnings_as_dict, warnings_of
from core.errors import InvalidArgument
from core.types import FolderRef, Role


@dataclass(frozen=True, slots=True)
class RevokeOutcome:
    """The folder's version after the call, the role taken away, and what other grants still give there."""

    acl_version: int
    removed_role: Role
    remaining_role: Role | None
    warnings: tuple[AccessWarning, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The contract's ``revoke`` as plain JSON values."""
        return {
            "acl_version": self.acl_version,
            "removed_role": self.removed_role.word,
            "remaining_role": self.remaining_role.word if self.remaining_role else None,
            **warnings_as_dict(self.warnings),
        }


def revoke_role(
    principal: Principal,
    folder: FolderRef,
    identity_id: str,
    *,
    expected_acl_version: int | None = None,
    claim: Claim = UNCLAIMED,
) -> RevokeOutcome:
    """Remove the identity's direct grant on the folder; what it inherits from above stays.

    Works for a disabled identity too. Where there is no direct grant, the refusal names the folders above that give
    the role, as far as the caller may read them.

    Raises NotFound (folder or identity), Forbidden, AccessVersionConflict, InvalidArgument, StorageUnavailable.
    """
    with audit.Attempt(principal, AuditAction.REVOKE, identity_id=identity_id, folder=folder):
        known = claim.again(RevokeOutcome)
        if known is not None:
            authorizer.sight_of(principal).require(Role.OWNER, folder)
            return known
        with acl.changing(principal, folder) as (sight, row):
            identity = Identity.objects.find(principal.organization_id, identity_id)
            acl.compare(row, expected_acl_version)
            outcome = _revoke(sight, folder, row, identity)
            claim.keep(outcome)
    return outcome


def _revoke(sight: Sight, folder: FolderRef, row: Folder, identity: Identity) -> RevokeOutcome:
    grant = acl.direct_grant(row, identity.id)
    if grant is None:
        raise _nothing_direct(sight, folder, identity)
    removed = grant.role
    warnings = warnings_of(sight, folder, identity.id, None)
    grant.delete()
    remaining = authorizer.strongest(_grants_above(folder, identity), None, folder.lineage)
    audit.record(sight.principal, AuditAction.REVOKE, subject=identity, folder=folder, before=removed.word)
    return RevokeOutcome(acl.advance(row), removed, remaining, warnings)


def _nothing_direct(sight: Sight, folder: FolderRef, identity: Identity) -> InvalidArgument:
    above = _grants_above(folder, identity)
    if not above:
        return InvalidArgument("identity_id", "This identity has no role here to take away.")
    granting = [
        ancestor.path
        for ancestor in reversed(folder.upwards)
        if ancestor.id in above and sight.can_read(ancestor)
    ]
    return InvalidArgument(
        "identity_id",
        "This role is inherited from a folder above. Revoke it there.",
        granting_folders=granting,
    )


def _grants_above(folder: FolderRef, identity: Identity) -> dict[str, Role]:
    grants = FolderGrant.objects.filter(user=identity, content_object_id__in=folder.lineage[:-1])
    return {grant.content_object_id: grant.role for grant in grants.select_related("permission")}
