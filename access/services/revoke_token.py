"""Revoking tokens."""

from django.db import transaction
from django.db.models import Q, QuerySet

from access import audit, authorizer, credentials
from access.audit import AuditAction
from access.models import Connection
from access.principals import Principal
from access.writer import wait_for_saves
from core import clock
from core.errors import NotFound


def revoke_token(principal: Principal, connection_id: str) -> Connection:
    """End a connection at once and for good. Revoking a revoked one changes nothing.

    When this returns, no save of the connection lands any more. Only the person themself in a browser, an
    administrator there, and the shell revoke tokens.

    Raises NotFound: for another's token as for none. Forbidden through a connection.
    """
    with audit.Attempt(principal, AuditAction.REVOKE_TOKEN, token_id=connection_id):
        sight = authorizer.sight_of(principal)
        sight.require_presence()
        with transaction.atomic():
            connection = Connection.objects.find(principal.organization_id, connection_id, lock=True)
            if not (sight.is_administrator or connection.identity_id == principal.identity_id):
                raise NotFound
            if connection.revoked_at is None:
                connection.revoked_at = clock.now()
                connection.save(update_fields=["revoked_at"])
                audit.record(
                    principal, AuditAction.REVOKE_TOKEN, subject=connection.identity, token=connection
                )
    wait_for_saves(principal.organization_id)
    return connection


def find_unrevoked_tokens(principal: Principal, name_or_prefix: str) -> QuerySet[Connection]:
    """The tokens with this name, or whose text begins so; expired ones too. For administrators and the shell.

    A prefix is the eight characters that are kept, or more of the token, with or without ``brn_``.

    Raises Forbidden.
    """
    authorizer.sight_of(principal).require_administrator()
    random_part = name_or_prefix.removeprefix(credentials.TOKEN_PREFIX)
    matches = Q(name=name_or_prefix)
    if credentials.TOKEN.fullmatch(name_or_prefix):
        matches |= Q(token_hash=credentials.hash_of(name_or_prefix))
    elif len(random_part) >= credentials.SHOWN_PREFIX_CHARACTERS:
        matches |= Q(prefix=random_part[: credentials.SHOWN_PREFIX_CHARACTERS])
    return Connection.objects.filter(
        matches, revoked_at=None, identity__organization_id=principal.organization_id
    ).select_related("identity")
