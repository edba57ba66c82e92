"""Giving an identity a role on a folder and everything below it."""

from dataclasses import dataclass

from django.contrib.auth.models import Permission

from access import acl, audit
from access.audit import AuditAction
from access.models import FolderGrant, Identity
from access.principals import Principal
from core.errors import InvalidArgument
from core.types import FolderRef, Role


@dataclass(frozen=True, slots=True)
class GrantOutcome:
    """The folder's version after the call, and the role that the grant replaced; None where there was none."""

    acl_version: int
    previous_role: Role | None


def grant_role(
    principal: Principal,
    folder: FolderRef,
    identity_id: str,
    role: Role,
    *,
    expected_acl_version: int | None = None,
) -> GrantOutcome:
    """Make ``role`` the identity's direct role on the folder, in place of the one it had there.

    The role that it has already changes nothing and does not advance the version. A disabled identity gets no new
    role: it would come alive unseen when somebody enables the account; the roles it has are kept.

    Raises NotFound (folder or identity), Forbidden, AccessVersionConflict, InvalidArgument, StorageUnavailable.
    """
    with (
        audit.Attempt(principal, AuditAction.GRANT, identity_id=identity_id, folder=folder),
        acl.changing(principal, folder, expected_acl_version) as row,
    ):
        identity = Identity.objects.find(principal.organization_id, identity_id)
        grant = acl.direct_grant(row, identity.id)
        previous = grant.role if grant else None
        if previous is role:
            return GrantOutcome(row.acl_version, previous)
        if not identity.is_active:
            raise InvalidArgument(
                "identity_id", "This account is disabled. Enable it before granting anything."
            )
        if grant is None:
            grant = FolderGrant(user=identity, content_object=row)
        grant.permission = _permission(role)
        grant.save()
        audit.record(
            principal,
            AuditAction.GRANT,
            subject=identity,
            folder=folder,
            before=previous.word if previous else "",
            after=role.word,
        )
        return GrantOutcome(acl.advance(row), previous)


def _permission(role: Role) -> Permission:
    return Permission.objects.get_by_natural_key(role.word, "access", "folder")
