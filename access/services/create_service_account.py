"""A new service account, at most once for each request."""

from access import audit, authorizer
from access.audit import AuditAction
from access.database import all_or_nothing
from access.identity_view import IdentityView
from access.principals import Principal
from access.requests import claimed
from access.services.create_identity import save_service_account
from core import names, text
from core.types import MutationRequest


def create_service_account(
    principal: Principal, request: MutationRequest, *, name: str, description: str
) -> IdentityView:
    """A service account with the username ``name``, without grants and tokens. ``description`` may be empty.

    Raises InvalidArgument, LimitExceeded, RequestInProgress, RequestIdReuse, Forbidden unless the caller is an
    administrator or the shell, UsernameTaken, StorageUnavailable.
    """
    names.check_username(name, field="name")
    text.clean_purpose(description)
    with claimed(principal, request) as claim, audit.Attempt(principal, AuditAction.CREATE_SERVICE_ACCOUNT):
        authorizer.sight_of(principal).require_administrator()
        known = claim.again(IdentityView)
        if known is not None:
            return known
        with all_or_nothing():
            account = save_service_account(principal, username=name, name=name, description=description)
            outcome = IdentityView.of(account)
            claim.keep(outcome)
    return outcome
