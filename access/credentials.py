"""Tokens: making them, and finding out who shows one.

A token is ``brn_`` and 43 characters of 256 random bits. It is shown once and kept only as its SHA-256, which is
enough for something that nobody can guess.
"""

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db import connection as database
from django.db.models import Q

from access import oauth
from access.models import Connection
from access.principals import ConnectionFacts, Principal, connection_facts
from core import clock, ids, log
from core.errors import Unauthenticated
from core.types import Capability, IdentityKind

logger = log.get_logger(__name__)

TOKEN_PREFIX = "brn_"  # noqa: S105 - what every token begins with
TOKEN_RANDOM_BYTES = 32
TOKEN = re.compile(rf"{TOKEN_PREFIX}[A-Za-z0-9_-]{{43}}", re.ASCII)
SHOWN_PREFIX_CHARACTERS = 8
SHOWN_END_CHARACTERS = 4
PASSWORD_RANDOM_BYTES = 15
# Coarse, so that a busy token does not write at every call.
LAST_USED_EVERY = timedelta(hours=1)

_HOLDER = """
SELECT connection.id, connection.name, connection.capability, connection.kind, connection.folder_scopes,
       (connection.last_used_at IS NULL OR connection.last_used_at <= %s),
       identity.id, identity.organization_id, identity.username, identity.name, identity.kind
FROM access_connection connection
JOIN access_identity identity ON identity.id = connection.identity_id
WHERE connection.token_hash = %s AND connection.revoked_at IS NULL
  AND (connection.expires_at IS NULL OR connection.expires_at > %s) AND identity.is_active
"""

# The same for an access token: it belongs to a pair, the pair to a family, and each connection has its own family.
_OAUTH_HOLDER = """
SELECT connection.id, connection.name, connection.capability, connection.kind, connection.folder_scopes,
       (connection.last_used_at IS NULL OR connection.last_used_at <= %s),
       identity.id, identity.organization_id, identity.username, identity.name, identity.kind,
       token.scope, token.resource
FROM oauth2_provider_accesstoken token
JOIN oauth2_provider_refreshtoken pair ON pair.access_token_id = token.id AND pair.revoked IS NULL
JOIN access_connection connection ON connection.token_family = pair.token_family
JOIN access_identity identity ON identity.id = connection.identity_id AND identity.id = token.user_id
WHERE token.token_checksum = %s AND token.expires > %s AND connection.revoked_at IS NULL
  AND (connection.expires_at IS NULL OR connection.expires_at > %s) AND identity.is_active
"""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made: its text, for showing once, and what is kept of it."""

    text: str
    token_hash: str
    prefix: str
    last_four: str


def new_token() -> NewToken:
    """A token that nobody has seen."""
    random_part = secrets.token_urlsafe(TOKEN_RANDOM_BYTES)
    text = TOKEN_PREFIX + random_part
    return NewToken(
        text,
        hash_of(text),
        prefix=random_part[:SHOWN_PREFIX_CHARACTERS],
        last_four=random_part[-SHOWN_END_CHARACTERS:],
    )


def new_password() -> str:
    """A password of 120 random bits, for showing once."""
    return secrets.token_urlsafe(PASSWORD_RANDOM_BYTES)


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return ids.sha256_hex(token.encode())


def authenticate_header(authorization: str) -> Principal:
    """Who sends this ``Authorization`` header: the holder of a token, or of an OAuth access token while OAuth is on.

    Raises Unauthenticated with the challenge to answer with. What is wrong with a token is not told: malformed,
    unknown, expired, revoked, meant for another resource and of a disabled identity are all alike.
    """
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise oauth.unauthenticated()
    try:
        if token.startswith(TOKEN_PREFIX):
            return authenticate_token(token)
        return authenticate_oauth_token(token)
    except Unauthenticated:
        raise oauth.unauthenticated(error="invalid_token") from None


def authenticate_token(token: str) -> Principal:
    """Who shows this token, in one query; at most once an hour the use is noted as well.

    Raises Unauthenticated: malformed, unknown, revoked and expired tokens and those of a disabled identity all fail
    alike, and from this call on.
    """
    if not TOKEN.fullmatch(token):
        raise Unauthenticated
    now = clock.now()
    adapt = database.ops.adapt_datetimefield_value
    with database.cursor() as cursor:
        cursor.execute(_HOLDER, [adapt(now - LAST_USED_EVERY), hash_of(token), adapt(now)])
        row = cursor.fetchone()
    if row is None:
        raise Unauthenticated
    return _holder(row, connection_facts(*row[:5]), now)


def authenticate_oauth_token(token: str) -> Principal:
    """Who shows this OAuth access token, in one query; as ``authenticate_token`` otherwise.

    A token may carry less than its connection: a client that refreshed with fewer scopes reads only. One without a
    resource, which others would take for good everywhere, is good nowhere.

    Raises Unauthenticated, for every token while OAuth is off.
    """
    if not settings.OAUTH or not token.isascii():
        raise Unauthenticated
    now = clock.now()
    adapt = database.ops.adapt_datetimefield_value
    with database.cursor() as cursor:
        cursor.execute(_OAUTH_HOLDER, [adapt(now - LAST_USED_EVERY), hash_of(token), adapt(now), adapt(now)])
        row = cursor.fetchone()
    if row is None:
        raise Unauthenticated
    scope, resources = row[11], json.loads(row[12])
    if not resources or not all(map(oauth.is_our_resource, resources)):
        raise Unauthenticated
    connection = replace(connection_facts(*row[:5]), is_oauth=True)
    if oauth.capability_of(scope.split()) is Capability.READ:
        connection = replace(connection, capability=Capability.READ)
    return _holder(row, connection, now)


def _holder(row: Sequence[Any], connection: ConnectionFacts, now: datetime) -> Principal:
    is_use_due, identity_id, organization_id, username, name, kind = row[5:11]
    if is_use_due:
        _note_use(connection.id, now)
    return Principal(
        organization_id=organization_id,
        identity_id=identity_id,
        username=username,
        name=name,
        kind=IdentityKind(kind),
        connection=connection,
    )


def _note_use(connection_id: str, now: datetime) -> None:
    # Never worth waiting for, let alone failing for: on a busy or read-only database the next call tries again.
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_EVERY)
    due = Connection.objects.filter(is_due, id=connection_id).select_for_update(skip_locked=True)
    try:
        with _without_waiting(), transaction.atomic():
            Connection.objects.filter(id__in=due.values("id")).update(last_used_at=now)
    except DatabaseError as error:
        logger.info("the use of a token was not noted", connection=connection_id, exc_info=error)


@contextmanager
def _without_waiting() -> Iterator[None]:
    # SQLite waits for its one writer, by default for 20 s. Elsewhere a locked row is skipped.
    if database.vendor != "sqlite":
        yield
        return
    with database.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        patience = cursor.fetchone()[0]
        cursor.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        with database.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {int(patience)}")
