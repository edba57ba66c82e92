"""The connections of one identity, and what they can still do."""

import enum
from dataclasses import dataclass

from access import authorizer
from access.models import Connection, Identity
from access.principals import Principal, principal_of_identity
from core import clock
from core.errors import NotFound


class TokenState(enum.StrEnum):
    """Whether a token works. ``REPLACED``: for a while, beside its successor."""

    ACTIVE = "active"
    REPLACED = "replaced"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Somebody's tokens, the newest first, and what their holder may do, which bounds every cap."""

    identity: Identity
    connections: tuple[Connection, ...]
    holder: authorizer.Sight


def list_tokens(principal: Principal, identity_id: str) -> Tokens:
    """The tokens of the identity: of oneself in a browser, for administrators there and the shell of anybody.

    Raises NotFound: for another's tokens as for nobody's.
    """
    _require_view_of(authorizer.sight_of(principal), identity_id)
    identity = Identity.objects.find(principal.organization_id, identity_id)
    connections = identity.connections.select_related("replaced_by", "identity").order_by(
        "-created_at", "-id"
    )
    return Tokens(identity, tuple(connections), authorizer.sight_of(principal_of_identity(identity)))


def find_token(principal: Principal, connection_id: str) -> Connection:
    """One token, for whoever may list it. Raises NotFound."""
    sight = authorizer.sight_of(principal)
    connection = Connection.objects.find(principal.organization_id, connection_id)
    _require_view_of(sight, connection.identity_id)
    return connection


def state_of(connection: Connection) -> TokenState:
    """Whether the token works, leaving aside whether its holder is disabled."""
    if connection.revoked_at is not None:
        return TokenState.REVOKED
    if connection.expires_at is not None and connection.expires_at <= clock.now():
        return TokenState.EXPIRED
    return TokenState.ACTIVE if connection.replaced_by_id is None else TokenState.REPLACED


def _require_view_of(sight: authorizer.Sight, identity_id: str) -> None:
    principal = sight.principal
    is_own = identity_id == principal.identity_id
    is_present = principal.connection is None and not principal.is_access_builder and sight.is_alive
    if not is_present or not (is_own or sight.is_administrator):
        raise NotFound
