"""The connection of an OAuth client: opened when it comes for its tokens, and kept open as it renews them."""

import uuid
from datetime import datetime, timedelta

from access.models import AuthorizationCode, Connection
from core import clock, limits
from core.types import ConnectionKind


def open_connection(
    consent: AuthorizationCode, token_family: uuid.UUID, *, name: str, host: str
) -> Connection:
    """The connection that the person consented to. Call it in the transaction that makes the tokens.

    The code is used up by this; the consent itself is in the audit.
    """
    consent.redeemed_at = clock.now()
    consent.save(update_fields=["redeemed_at"])
    return Connection.objects.create(
        id=consent.connection_id,
        identity=consent.user,
        name=name,
        token_family=token_family,
        client=consent.application,
        client_host=host,
        capability=consent.capability,
        kind=ConnectionKind.EXTERNAL,
        folder_scopes=consent.folder_scopes,
        created_by=consent.user.username,
        expires_at=_idle_end(),
    )


def renew_connection(token_family: uuid.UUID) -> None:
    """Let the connection go on, since its client has come for new tokens."""
    Connection.objects.filter(token_family=token_family).update(expires_at=_idle_end())


def _idle_end() -> datetime:
    # The last moment at which the client may come again, as the library judges it too.
    return clock.now() + timedelta(seconds=limits.OAUTH_TOKEN_SECONDS, days=limits.OAUTH_IDLE_DAYS)
