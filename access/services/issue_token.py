"""Issuing the token of a connection."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from access import audit, authorizer, credentials
from access.audit import AuditAction
from access.models import Connection, Identity
from access.principals import Principal, principal_of_identity, scopes_to_json
from core import clock, limits, text
from core.errors import InvalidArgument, LimitExceeded
from core.types import Capability, ConnectionKind, FolderRef, Role

FolderScope = tuple[FolderRef, Role]


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """The new connection and the text of its token, which is told here and never again."""

    connection: Connection
    token: str


def issue_token(
    principal: Principal,
    identity_id: str,
    *,
    name: str,
    capability: Capability,
    kind: ConnectionKind = ConnectionKind.EXTERNAL,
    folder_scopes: Sequence[FolderScope] | None = None,
    expires_in_days: int | None = None,
) -> IssuedToken:
    """A token for the identity, narrowed by capability and, unless None, by folder caps.

    A cap is Reader or Editor and at most what the identity may do in its folder now; an empty list gives no content.
    Only the person themself in a browser, an administrator there, and the shell issue tokens.

    Raises Forbidden, NotFound (identity or folder), InvalidArgument, LimitExceeded.
    """
    text.clean_display_name(name)
    _check_days(expires_in_days)
    with audit.Attempt(principal, AuditAction.ISSUE_TOKEN, identity_id=identity_id):
        sight = authorizer.sight_of(principal)
        sight.require_presence()
        if identity_id != principal.identity_id:
            sight.require_administrator()
        identity = Identity.objects.find(principal.organization_id, identity_id)
        if not identity.is_active:
            raise InvalidArgument(
                "identity_id", "This account is disabled. Enable it before issuing a token."
            )
        if folder_scopes is not None:
            for folder, _ in folder_scopes:
                sight.require(Role.READER, folder)
            check_scopes(identity, folder_scopes)
        new = credentials.new_token()
        connection = Connection(
            identity=identity,
            name=name,
            token_hash=new.token_hash,
            prefix=new.prefix,
            last_four=new.last_four,
            capability=capability,
            kind=kind,
            folder_scopes=scopes_to_json(
                None if folder_scopes is None else tuple((folder.id, cap) for folder, cap in folder_scopes)
            ),
            created_by=principal.username,
            expires_at=None if expires_in_days is None else clock.now() + timedelta(days=expires_in_days),
        )
        with transaction.atomic():
            connection.save(force_insert=True)
            audit.record(
                principal,
                AuditAction.ISSUE_TOKEN,
                subject=identity,
                token=connection,
                after=in_words(connection, folder_scopes),
            )
    return IssuedToken(connection, new.text)


def _check_days(days: int | None) -> None:
    if days is None:
        return
    if days < 1:
        raise InvalidArgument("expires", "A token lasts at least one day.")
    if days > limits.TOKEN_DAYS_MAX:
        raise LimitExceeded("expires", limit=limits.TOKEN_DAYS_MAX, unit="days")


def check_scopes(identity: Identity, scopes: Sequence[FolderScope]) -> None:
    """Refuse caps that are no caps, and those above what the identity may do. Raises InvalidArgument, LimitExceeded."""
    if len(scopes) > limits.FOLDER_SCOPES_MAX:
        raise LimitExceeded("folder_scopes", limit=limits.FOLDER_SCOPES_MAX, unit="folders")
    if len({folder.id for folder, _ in scopes}) != len(scopes):
        raise InvalidArgument("folder_scopes", "A folder stands here twice.")
    holder = authorizer.sight_of(principal_of_identity(identity))
    for folder, cap in scopes:
        if cap is Role.OWNER:
            raise InvalidArgument("folder_scopes", "A cap is reader or editor.")
        held = holder.role_on(folder)
        if held is None or held < cap:
            has = f"is {held.word}" if held else "has no role"
            raise InvalidArgument(
                "folder_scopes",
                f"{identity.username} {has} on {folder.path or 'the root'}, so the cap cannot be {cap.word}.",
            )


def in_words(connection: Connection, scopes: Sequence[FolderScope] | None) -> str:
    """What a connection may do, as the audit tells it."""
    words = [connection.capability, connection.kind]
    if scopes is not None:
        words += [f"{folder.path or '/'}={cap.word}" for folder, cap in scopes] or ["no content"]
    if connection.expires_at is not None:
        words.append(f"until {clock.timestamp(connection.expires_at)}")
    return ", ".join(words)
