"""Changing what is known of an identity, and what the platform restricts before any grant counts."""

from collections.abc import Iterable

from django.db import transaction

from access import administrators, audit, authorizer
from access.audit import AuditAction
from access.models import Identity
from access.principals import Principal
from access.services.create_identity import checked_email
from access.writer import wait_for_saves
from core import text
from core.errors import InvalidArgument


def change_identity(
    principal: Principal,
    identity_id: str,
    *,
    name: str | None = None,
    email: str | None = None,
    description: str | None = None,
    is_admin: bool | None = None,
    is_read_only: bool | None = None,
) -> Identity:
    """Make these the facts of a person or service account; None leaves one as it is.

    A read-only account is Reader at most, whatever was granted. When this returns, no save of theirs lands any more
    that the new facts forbid. Service accounts have no e-mail address and are never administrators.

    Raises Forbidden unless the caller is an administrator or the shell, NotFound, InvalidArgument (also for taking
    the last administrator's place away), LimitExceeded.
    """
    with audit.Attempt(principal, AuditAction.CHANGE_IDENTITY, identity_id=identity_id):
        authorizer.sight_of(principal).require_administrator()
        wanted: dict[str, str | bool | None] = {
            "name": None if name is None else text.clean_display_name(name),
            "email": None if email is None else checked_email(email),
            "description": None if description is None else text.clean_purpose(description),
            "is_admin": is_admin,
            "is_read_only": is_read_only,
        }
        with transaction.atomic():
            identity = Identity.objects.find(principal.organization_id, identity_id, lock=True)
            changed = {
                fact: value
                for fact, value in wanted.items()
                if value is not None and getattr(identity, fact) != value
            }
            if not identity.is_person and ("email" in changed or "is_admin" in changed):
                raise InvalidArgument(
                    "identity_id", "A service account has no e-mail address and is never an administrator."
                )
            if changed.get("is_admin") is False:
                administrators.refuse_to_remove_the_last(principal, identity)
            if changed:
                before = _in_words(identity, changed)
                for fact, value in changed.items():
                    setattr(identity, fact, value)
                identity.save(update_fields=list(changed))
                audit.record(
                    principal,
                    AuditAction.CHANGE_IDENTITY,
                    subject=identity,
                    before=before,
                    after=_in_words(identity, changed),
                )
    if "is_admin" in changed or "is_read_only" in changed:
        wait_for_saves(principal.organization_id)
    return identity


_WORDS = {
    "name": "name",
    "email": "e-mail",
    "description": "description",
    "is_admin": "administrator",
    "is_read_only": "read-only",
}


def _in_words(identity: Identity, facts: Iterable[str]) -> str:
    said = []
    for fact in facts:
        value = getattr(identity, fact)
        shown = ("yes" if value else "no") if isinstance(value, bool) else value
        said.append(f"{_WORDS[fact]}: {shown}")
    return ", ".join(said)
