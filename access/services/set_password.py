"""A new password for a person."""

from django.db import transaction

from access import audit, authorizer
from access.audit import AuditAction
from access.models import Identity
from access.principals import Principal
from access.services.create_identity import check_password
from core.errors import InvalidArgument


def set_password(principal: Principal, identity_id: str, password: str) -> Identity:
    """Replace the person's password. Their sessions end, all but one that takes the new hash over; tokens stay.

    Raises Forbidden unless the caller is an administrator or the shell, NotFound, InvalidArgument (a weak password,
    or a service account, which has none).
    """
    with audit.Attempt(principal, AuditAction.SET_PASSWORD, identity_id=identity_id):
        authorizer.sight_of(principal).require_administrator()
        with transaction.atomic():
            identity = Identity.objects.find(principal.organization_id, identity_id, lock=True)
            if not identity.is_person:
                raise InvalidArgument("identity_id", "A service account has no password.")
            check_password(password, identity)
            identity.set_password(password)
            identity.save(update_fields=["password"])
            audit.record(principal, AuditAction.SET_PASSWORD, subject=identity)
    return identity
