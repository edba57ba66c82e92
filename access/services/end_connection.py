"""Ending the connection of an OAuth client without the person: by the client, or because a secret of it leaked."""

from dataclasses import replace

from django.db import transaction

from access import audit
from access.audit import AuditAction
from access.models import Connection
from access.principals import ConnectionFacts, principal_of_identity
from access.writer import wait_for_saves
from core import clock
from core.types import Capability, ConnectionKind

GIVEN_BACK = "the client gave it back"
CODE_REUSED = "its code was used twice"
REFRESH_TOKEN_REUSED = "a refresh token was used twice"  # noqa: S105 - tells what happened


def end_connection(connection: Connection, because: str) -> None:
    """Revoke the connection, in the name of the client itself. One that is revoked stays as it is.

    Once the surrounding transaction is through, no save of it lands any more.
    """
    with transaction.atomic():
        ended = Connection.objects.filter(id=connection.id, revoked_at=None).update(revoked_at=clock.now())
        if not ended:
            return
        client = replace(
            principal_of_identity(connection.identity),
            connection=ConnectionFacts(
                id=connection.id,
                name=connection.name,
                capability=Capability(connection.capability),
                kind=ConnectionKind(connection.kind),
                folder_scopes=None,
                is_oauth=True,
            ),
        )
        audit.record(
            client, AuditAction.REVOKE_TOKEN, subject=connection.identity, token=connection, after=because
        )
        # Not inside: whoever holds the lock may be waiting for this transaction.
        transaction.on_commit(lambda: wait_for_saves(client.organization_id))
