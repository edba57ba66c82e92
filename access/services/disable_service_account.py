"""Stopping a service account, at most once for each request."""

from access import audit, authorizer
from access.audit import AuditAction
from access.database import all_or_nothing
from access.identity_view import IdentityView
from access.models import Identity
from access.principals import Principal
from access.requests import Claim, claimed
from access.services.set_active import change_active
from access.writer import wait_for_saves
from core.errors import InvalidArgument
from core.types import MutationRequest


def disable_service_account(principal: Principal, request: MutationRequest, identity_id: str) -> IdentityView:
    """Stop the account's tokens at once. Its grants are kept; disabling a disabled account changes nothing.

    When this returns, no save of the account lands any more.

    Raises RequestInProgress, RequestIdReuse, Forbidden unless the caller is an administrator or the shell, NotFound,
    InvalidArgument for a person, StorageUnavailable.
    """
    with claimed(principal, request) as claim:
        with audit.Attempt(principal, AuditAction.DISABLE, identity_id=identity_id):
            authorizer.sight_of(principal).require_administrator()
            outcome = claim.again(IdentityView) or _disable(principal, claim, identity_id)
        wait_for_saves(principal.organization_id)
    return outcome


def _disable(principal: Principal, claim: Claim, identity_id: str) -> IdentityView:
    with all_or_nothing():
        account = Identity.objects.find(principal.organization_id, identity_id, lock=True)
        if account.is_person:
            raise InvalidArgument(
                "identity_id", "This is a person. Service accounts alone are disabled here."
            )
        change_active(principal, account, AuditAction.DISABLE, is_active=False)
        outcome = IdentityView.of(account)
        claim.keep(outcome)
    return outcome
