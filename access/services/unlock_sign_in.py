"""Letting somebody try their password again before the pause is over."""

from axes.models import AccessAttempt
from django.db import transaction

from access import audit, authorizer
from access.audit import AuditAction
from access.models import Identity
from access.principals import Principal


def unlock_sign_in(principal: Principal, username: str) -> int:
    """Forget the wrong passwords for this name, from every address; returns from how many there were any.

    Works for names that nobody has, which are paused as well.

    Raises Forbidden unless the caller is an administrator or the shell.
    """
    username = username.lower()
    identity = Identity.objects.filter(username=username, organization_id=principal.organization_id).first()
    with audit.Attempt(principal, AuditAction.UNLOCK, identity_id=identity.id if identity else ""):
        authorizer.sight_of(principal).require_administrator()
        with transaction.atomic():
            found = AccessAttempt.objects.filter(username=username)
            addresses: int = found.values("ip_address").distinct().count()
            found.delete()
            if addresses:
                audit.record(principal, AuditAction.UNLOCK, subject=identity)
    return addresses
