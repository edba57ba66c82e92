"""New people and service accounts."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from access import audit, authorizer
from access.audit import AuditAction
from access.models import Identity
from access.principals import Principal
from core import names, text
from core.errors import InvalidArgument, UsernameTaken
from core.types import IdentityKind


def create_person(
    principal: Principal,
    *,
    username: str,
    password: str,
    name: str = "",
    email: str = "",
    is_admin: bool = False,
) -> Identity:
    """Somebody who signs in with a password. Without a display name the username stands for it.

    Raises Forbidden unless the caller is an administrator or the shell, InvalidArgument, LimitExceeded,
    UsernameTaken.
    """
    with audit.Attempt(principal, AuditAction.CREATE_PERSON):
        authorizer.sight_of(principal).require_administrator()
        identity = _identity(principal, IdentityKind.PERSON, username, name)
        identity.email = checked_email(email)
        identity.is_admin = is_admin
        check_password(password, identity)
        identity.set_password(password)
        return _save(principal, identity, AuditAction.CREATE_PERSON)


def create_service_account(
    principal: Principal, *, username: str, name: str = "", description: str = ""
) -> Identity:
    """Somebody who connects by token alone: no password, no session, never an administrator.

    ``description`` says what it is for.

    Raises Forbidden unless the caller is an administrator or the shell, InvalidArgument, LimitExceeded,
    UsernameTaken.
    """
    with audit.Attempt(principal, AuditAction.CREATE_SERVICE_ACCOUNT):
        authorizer.sight_of(principal).require_administrator()
        return save_service_account(principal, username=username, name=name, description=description)


def save_service_account(principal: Principal, *, username: str, name: str, description: str) -> Identity:
    """The step of making a service account, for those who have judged the caller. Raises as the service does."""
    identity = _identity(principal, IdentityKind.SERVICE_ACCOUNT, username, name)
    identity.description = text.clean_purpose(description)
    identity.set_unusable_password()
    return _save(principal, identity, AuditAction.CREATE_SERVICE_ACCOUNT)


def _identity(principal: Principal, kind: IdentityKind, username: str, name: str) -> Identity:
    return Identity(
        organization_id=principal.organization_id,
        kind=kind,
        username=names.check_username(username),
        name=text.clean_display_name(name or username),
    )


def checked_email(email: str) -> str:
    """The address, or nothing, as given. Raises InvalidArgument."""
    if email:
        try:
            validate_email(email)
            Identity._meta.get_field("email").run_validators(email)
        except ValidationError as error:
            raise InvalidArgument("email", "This is not an e-mail address.") from error
    return email


def check_password(password: str, identity: Identity) -> None:
    """Refuse a weak password, also for what it has in common with this person. Raises InvalidArgument."""
    try:
        validate_password(password, identity)
    except ValidationError as error:
        raise InvalidArgument("password", " ".join(error.messages)) from error


def _save(principal: Principal, identity: Identity, action: AuditAction) -> Identity:
    try:
        with transaction.atomic():
            identity.save(force_insert=True)
            audit.record(
                principal,
                action,
                subject=identity,
                after="administrator" if identity.is_admin else identity.description,
            )
    except IntegrityError as error:
        if Identity.objects.filter(username=identity.username).exists():
            raise UsernameTaken from error
        raise
    return identity
