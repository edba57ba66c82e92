"""Keeping somebody who can administer."""

from access.models import Identity
from access.principals import Principal
from core.errors import InvalidArgument


def refuse_to_remove_the_last(principal: Principal, identity: Identity) -> None:
    """Refuse what would leave the organization without an administrator who can sign in.

    Call it in the transaction of the change, before it. The shell may do it, since it can also undo it.
    Raises InvalidArgument.
    """
    if principal.is_system or not identity.is_staff:
        return
    others = Identity.objects.filter(organization_id=identity.organization_id, is_admin=True, is_active=True)
    # Locked, so that two administrators cannot take each other's place away at once.
    if others.exclude(id=identity.id).select_for_update().first() is None:
        raise InvalidArgument("identity_id", "This is the last administrator. Make another one first.")
