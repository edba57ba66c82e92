"""Why somebody has the role that they have on a folder, and what a grant would make of it."""

import enum
from dataclasses import dataclass
from typing import Any

from access import authorizer
from access.authorizer import Sight
from access.identity_view import IdentityView
from access.models import Identity
from access.principals import Principal, principal_of_identity
from access.warnings import AccessWarning, warnings_as_dict, warnings_of
from core.types import FolderRef, Role


class Via(enum.StrEnum):
    """What gives a role or keeps it down."""

    GRANT = "grant"
    ADMINISTRATOR = "administrator"
    CAP = "cap"


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that the role follows from, and the folder from which on it counts."""

    via: Via
    folder_path: str
    role: Role

    def as_dict(self) -> dict[str, Any]:
        """The reason as plain JSON values."""
        return {"via": self.via.value, "folder_path": self.folder_path, "role": self.role.word}


@dataclass(frozen=True, slots=True)
class Explanation:
    """An identity's role on a folder, and the reasons from the folder upwards.

    ``inherited_from_above`` tells that reasons were left out, since the caller may not read their folders.
    ``would_be`` and ``warnings`` are about the role that was asked for, ``would_be`` None where none was.
    """

    identity: IdentityView
    role: Role | None
    because: tuple[Reason, ...]
    inherited_from_above: bool
    would_be: Role | None
    warnings: tuple[AccessWarning, ...]

    def as_dict(self) -> dict[str, Any]:
        """The contract's ``explain`` as plain JSON values."""
        return {
            "identity": self.identity.as_dict(),
            "role": self.role.word if self.role else None,
            "because": [reason.as_dict() for reason in self.because],
            "would_be": self.would_be.word if self.would_be else None,
            **({"inherited_from_above": True} if self.inherited_from_above else {}),
            **warnings_as_dict(self.warnings),
        }


def explain_access(
    principal: Principal, folder: FolderRef, identity_id: str | None = None, *, role: Role | None = None
) -> Explanation:
    """The caller's own role on the folder through this connection, or another identity's, with reasons.

    Of others an Owner of the folder alone may ask. With ``role`` it also tells what a direct grant of it would make
    of the identity's role, as far as account and caps let it, and what to think of before.

    Raises NotFound (folder or identity), Forbidden.
    """
    sight = authorizer.sight_of(principal)
    sight.require(Role.READER, folder)
    if identity_id is None or identity_id == principal.identity_id:
        identity, subject = _view_of_caller(principal), sight
    else:
        sight.require(Role.OWNER, folder)
        row = Identity.objects.find(principal.organization_id, identity_id)
        identity, subject = IdentityView.of(row), authorizer.sight_of(principal_of_identity(row))
    reasons = _reasons(subject, folder)
    shown = tuple(reason for granting, reason in reasons if granting is None or sight.can_read(granting))
    return Explanation(
        identity=identity,
        role=subject.role_on(folder),
        because=shown,
        inherited_from_above=len(shown) < len(reasons),
        would_be=None if role is None else subject.if_granted(folder, role),
        warnings=() if role is None else warnings_of(sight, folder, identity.identity_id, role),
    )


def _view_of_caller(principal: Principal) -> IdentityView:
    return IdentityView(
        principal.identity_id, principal.name, principal.username, principal.kind.value, active=True
    )


def _reasons(subject: Sight, folder: FolderRef) -> list[tuple[FolderRef | None, Reason]]:
    """The reasons with the folder that stands behind each; None for what counts everywhere, whoever asks."""
    reasons: list[tuple[FolderRef | None, Reason]] = []
    if subject.is_owner_everywhere:
        reasons.append((None, Reason(Via.ADMINISTRATOR, "", Role.OWNER)))
    for given, via in ((subject.granted, Via.GRANT), (subject.caps or {}, Via.CAP)):
        reasons += [
            (granting, Reason(via, granting.path, given[granting.id]))
            for granting in folder.upwards
            if granting.id in given
        ]
    if subject.is_read_only:
        reasons.append((None, Reason(Via.CAP, "", Role.READER)))
    return reasons
