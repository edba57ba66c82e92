"""What an Owner should know about a change of access that is allowed and may still be a mistake."""

import enum
from collections.abc import Iterable
from typing import Any

from access.authorizer import Sight
from access.models import FolderGrant
from core.types import FolderRef, Role


class AccessWarning(enum.StrEnum):
    """Each says what is lost with the role that is taken away."""

    LAST_OWNER = "last_owner"
    SELF_LOCKOUT = "self_lockout"

    @property
    def message(self) -> str:
        """The warning in a sentence, good before the change and after it."""
        return _MESSAGES[self]


_MESSAGES = {
    AccessWarning.LAST_OWNER: "Without this role nobody but administrators can manage access to the folder.",
    AccessWarning.SELF_LOCKOUT: "Without this role you cannot manage access to the folder yourself.",
}


def warnings_of(
    sight: Sight, folder: FolderRef, identity_id: str, role: Role | None
) -> tuple[AccessWarning, ...]:
    """The warnings for making ``role`` the identity's direct role on the folder; None takes its role away.

    Call it before the change. One query; only Owners whose account is active and not read-only count.
    """
    if role is Role.OWNER:
        return ()
    owners = set(
        FolderGrant.objects.filter(
            content_object_id__in=folder.lineage,
            permission__codename=Role.OWNER.word,
            user__is_active=True,
            user__is_read_only=False,
        ).values_list("user_id", "content_object_id")
    )
    if (identity_id, folder.id) not in owners:
        return ()
    left = {owner for owner, granting in owners if (owner, granting) != (identity_id, folder.id)}
    warnings = []
    if not left:
        warnings.append(AccessWarning.LAST_OWNER)
    is_self = identity_id == sight.principal.identity_id
    if is_self and not sight.is_owner_everywhere and identity_id not in left:
        warnings.append(AccessWarning.SELF_LOCKOUT)
    return tuple(warnings)


def warnings_as_dict(warnings: Iterable[AccessWarning]) -> dict[str, Any]:
    """The field ``warnings`` of an answer; nothing where there are none."""
    shown = [{"kind": warning.value, "message": warning.message} for warning in warnings]
    return {"warnings": shown} if shown else {}
