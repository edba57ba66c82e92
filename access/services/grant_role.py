"""Giving an identity a role on a folder and everything below it."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Permission

from access import acl, audit, authorizer
from access.audit import AuditAction
from access.authorizer import Sight
from access.grant_view import GrantView
from access.models import Folder, FolderGrant, Identity
from access.principals import Principal
from access.requests import UNCLAIMED, Claim
from access.warnings import AccessWarning, warnings_as_dict, warnings_of
from core.errors import InvalidArgument
from core.types import FolderRef, Role


@dataclass(frozen=True, slots=True)
class GrantOutcome:
    """The folder's version after the call, the grant, and the role that it replaced; None where there was none."""

    acl_version: int
    grant: GrantView
    previous_role: Role | None
    warnings: tuple[AccessWarning, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The contract's ``grant`` as plain JSON values."""
        return {
            "acl_version": self.acl_version,
            "grant": self.grant.as_dict(),
            "previous_role": self.previous_role.word if self.previous_role else None,
            **warnings_as_dict(self.warnings),
        }


def grant_role(
    principal: Principal,
    folder: FolderRef,
    identity_id: str,
    role: Role,
    *,
    expected_acl_version: int | None = None,
    claim: Claim = UNCLAIMED,
) -> GrantOutcome:
    """Make ``role`` the identity's direct role on the folder, in place of the one it had there.

    The role that it has already changes nothing and does not advance the version. A disabled identity gets no new
    role: it would come alive unseen when somebody enables the account; the roles it has are kept.

    Raises NotFound (folder or identity), Forbidden, AccessVersionConflict, InvalidArgument, StorageUnavailable.
    """
    with audit.Attempt(principal, AuditAction.GRANT, identity_id=identity_id, folder=folder):
        known = claim.again(GrantOutcome)
        if known is not None:
            authorizer.sight_of(principal).require(Role.OWNER, folder)
            return known
        with acl.changing(principal, folder) as (sight, row):
            identity = Identity.objects.find(principal.organization_id, identity_id)
            acl.compare(row, expected_acl_version)
            outcome = _grant(sight, folder, row, identity, role)
            claim.keep(outcome)
    return outcome


def _grant(sight: Sight, folder: FolderRef, row: Folder, identity: Identity, role: Role) -> GrantOutcome:
    grant = acl.direct_grant(row, identity.id)
    previous = grant.role if grant else None
    view = GrantView(
        identity.id, identity.name, identity.username, identity.kind, role, folder.path, inherited=False
    )
    if previous is role:
        return GrantOutcome(row.acl_version, view, previous)
    if not identity.is_active:
        raise InvalidArgument("identity_id", "This account is disabled. Enable it before granting anything.")
    warnings = warnings_of(sight, folder, identity.id, role)
    if grant is None:
        grant = FolderGrant(user=identity, content_object=row)
    grant.permission = _permission(role)
    grant.save()
    audit.record(
        sight.principal,
        AuditAction.GRANT,
        subject=identity,
        folder=folder,
        before=previous.word if previous else "",
        after=role.word,
    )
    return GrantOutcome(acl.advance(row), view, previous, warnings)


def _permission(role: Role) -> Permission:
    return Permission.objects.get_by_natural_key(role.word, "access", "folder")
