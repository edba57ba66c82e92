"""Give somebody a role on a folder, at most once for each request."""

from access.audit import AuditAction
from access.principals import Principal
from access.services.grant_role import GrantOutcome, grant_role
from core.types import FolderLocator, MutationRequest, Role
from kb.access_changes import changing_access


def grant_access(
    principal: Principal,
    request: MutationRequest | None,
    folder: FolderLocator,
    identity_id: str,
    role: Role,
    *,
    expected_acl_version: int,
) -> GrantOutcome:
    """Make ``role`` the identity's direct role on the folder, if nobody changed its grants in the meantime.

    Raises InvalidArgument, LimitExceeded, RequestInProgress, RequestIdReuse, and what ``grant_role`` raises.
    """
    with changing_access(principal, request, folder, AuditAction.GRANT, identity_id) as (found, claim):
        return grant_role(
            principal, found, identity_id, role, expected_acl_version=expected_acl_version, claim=claim
        )
