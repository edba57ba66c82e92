"""Take somebody's direct role on a folder away, at most once for each request."""

from access.audit import AuditAction
from access.principals import Principal
from access.services.revoke_role import RevokeOutcome, revoke_role
from core.types import FolderLocator, MutationRequest
from kb.access_changes import changing_access


def revoke_access(
    principal: Principal,
    request: MutationRequest | None,
    folder: FolderLocator,
    identity_id: str,
    *,
    expected_acl_version: int,
) -> RevokeOutcome:
    """Remove the identity's direct grant on the folder, if nobody changed its grants in the meantime.

    Raises InvalidArgument, LimitExceeded, RequestInProgress, RequestIdReuse, and what ``revoke_role`` raises.
    """
    with changing_access(principal, request, folder, AuditAction.REVOKE, identity_id) as (found, claim):
        return revoke_role(
            principal, found, identity_id, expected_acl_version=expected_acl_version, claim=claim
        )
