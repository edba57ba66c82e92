"""Replacing a token by a new one, without a moment in which neither works."""

from datetime import datetime, timedelta

from django.db import transaction

from access import audit, authorizer, credentials
from access.audit import AuditAction
from access.models import Connection
from access.principals import Principal
from access.services.issue_token import IssuedToken
from access.writer import wait_for_saves
from core import clock, limits
from core.errors import InvalidArgument, LimitExceeded, NotFound


def rotate_token(
    principal: Principal, connection_id: str, *, overlap_hours: int = limits.TOKEN_OVERLAP_DEFAULT_HOURS
) -> IssuedToken:
    """A new token with the name, capability, kind and caps of this one, which ends after the overlap.

    The new one is valid for as long as the old one was meant to be, from now on. The old one never lasts longer than
    it would have; with an overlap of 0 it is revoked, and no save of it lands any more when this returns. Expired
    tokens can be rotated; revoked ones, and those that were rotated before, cannot. Caps are copied as they stand:
    each call is held to what the identity may do.

    Only the person themself in a browser, an administrator there, and the shell rotate tokens.

    Raises NotFound: for another's token as for none. Forbidden through a connection. InvalidArgument, LimitExceeded.
    """
    _check_hours(overlap_hours)
    with audit.Attempt(principal, AuditAction.ROTATE_TOKEN, token_id=connection_id):
        sight = authorizer.sight_of(principal)
        sight.require_presence()
        with transaction.atomic():
            old = Connection.objects.find(principal.organization_id, connection_id, lock=True)
            if not (sight.is_administrator or old.identity_id == principal.identity_id):
                raise NotFound
            _check_can_be_rotated(old)
            issued = _successor(principal, old)
            old.replaced_by = issued.connection
            _end(old, overlap_hours)
            audit.record(
                principal,
                AuditAction.ROTATE_TOKEN,
                subject=old.identity,
                token=old,
                before=old.shown_token,
                after=_in_words(issued.connection, old),
            )
    if old.revoked_at is not None:
        wait_for_saves(principal.organization_id)
    return issued


def _check_hours(hours: int) -> None:
    if hours < 0:
        raise InvalidArgument("overlap", "The overlap is a number of hours, from 0.")
    if hours > limits.TOKEN_OVERLAP_MAX_HOURS:
        raise LimitExceeded("overlap", limit=limits.TOKEN_OVERLAP_MAX_HOURS, unit="hours")


def _check_can_be_rotated(old: Connection) -> None:
    if old.is_oauth:
        raise InvalidArgument("token", "The tokens of an OAuth client renew themselves.")
    if old.revoked_at is not None:
        raise InvalidArgument("token", "This token is revoked. Issue a new one.")
    if old.replaced_by is not None:
        raise InvalidArgument("token", "This token has a successor already. Rotate that one.")
    if not old.identity.is_active:
        raise InvalidArgument("token", "This account is disabled. Enable it before rotating its tokens.")


def _successor(principal: Principal, old: Connection) -> IssuedToken:
    new = credentials.new_token()
    now = clock.now()
    connection = Connection(
        identity=old.identity,
        name=old.name,
        token_hash=new.token_hash,
        prefix=new.prefix,
        last_four=new.last_four,
        capability=old.capability,
        kind=old.kind,
        folder_scopes=old.folder_scopes,
        created_at=now,
        created_by=principal.username,
        expires_at=None if old.expires_at is None else now + old.lifetime,
    )
    connection.save(force_insert=True)
    return IssuedToken(connection, new.text)


def _end(old: Connection, overlap_hours: int) -> None:
    now = clock.now()
    if overlap_hours == 0:
        old.revoked_at = now
    else:
        end: datetime = now + timedelta(hours=overlap_hours)
        old.expires_at = end if old.expires_at is None else min(old.expires_at, end)
    old.save(update_fields=["replaced_by", "revoked_at", "expires_at"])


def _in_words(new: Connection, old: Connection) -> str:
    end = old.revoked_at or old.expires_at
    assert end is not None
    return f"{new.shown_token}, the old one until {clock.timestamp(end)}"
