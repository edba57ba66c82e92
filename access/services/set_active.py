"""Disabling an account, and enabling it again."""

from django.db import transaction

from access import administrators, audit, authorizer
from access.audit import AuditAction
from access.models import Identity
from access.principals import Principal
from access.writer import wait_for_saves


def disable_identity(principal: Principal, identity_id: str) -> Identity:
    """Stop the identity at once: every session and every connection. Its grants and tokens are kept.

    Disabling a disabled account changes nothing. When this returns, no save of theirs lands any more.

    Raises Forbidden unless the caller is an administrator or the shell, NotFound, InvalidArgument for the last
    administrator, whom only the shell may disable.
    """
    identity = _set_active(principal, identity_id, AuditAction.DISABLE, is_active=False)
    wait_for_saves(principal.organization_id)
    return identity


def enable_identity(principal: Principal, identity_id: str) -> Identity:
    """Let the identity in again, with the grants, tokens and sessions that it has.

    Raises Forbidden unless the caller is an administrator or the shell, NotFound.
    """
    return _set_active(principal, identity_id, AuditAction.ENABLE, is_active=True)


def _set_active(principal: Principal, identity_id: str, action: AuditAction, *, is_active: bool) -> Identity:
    with audit.Attempt(principal, action, identity_id=identity_id):
        authorizer.sight_of(principal).require_administrator()
        with transaction.atomic():
            identity = Identity.objects.find(principal.organization_id, identity_id, lock=True)
            change_active(principal, identity, action, is_active=is_active)
    return identity


def change_active(principal: Principal, identity: Identity, action: AuditAction, *, is_active: bool) -> None:
    """One step of a transaction that has judged the caller and locked the identity. Raises InvalidArgument."""
    if identity.is_active is is_active:
        return
    if not is_active:
        administrators.refuse_to_remove_the_last(principal, identity)
    identity.is_active = is_active
    identity.save(update_fields=["is_active"])
    audit.record(principal, action, subject=identity)
