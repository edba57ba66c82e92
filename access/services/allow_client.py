"""Letting an OAuth client act for a person: what the person's consent writes down."""

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from oauth2_provider.models import Application

from access import audit, authorizer, credentials, oauth
from access.audit import AuditAction
from access.authorizer import Sight
from access.models import AuthorizationCode, Connection, Identity
from access.principals import Principal, scopes_to_json
from access.services.issue_token import check_scopes, in_words
from core import clock, limits
from core.errors import Forbidden, NotFound
from core.types import Capability, ConnectionKind, FolderRef, Role


def allow_client(
    principal: Principal,
    client: Application,
    *,
    code: str,
    redirect_uri: str,
    code_challenge: str,
    name: str,
    host: str,
    capability: Capability,
    folders: Sequence[FolderRef] | None = None,
) -> AuthorizationCode:
    """Keep the person's consent until the client comes with the ``code``, of which the hash is kept.

    ``folders``, unless None, cap it: there to as much as the capability and the person's present role give, elsewhere
    to nothing. Only the person themself in a browser allows a client in. ``name`` and ``host`` are what the
    connection will be listed as.

    Raises Forbidden, InvalidArgument, LimitExceeded, NotFound (a folder they cannot read).
    """
    with audit.Attempt(principal, AuditAction.ALLOW_CLIENT, identity_id=principal.identity_id):
        sight = authorizer.sight_of(principal)
        if principal.connection is not None or principal.is_system or not sight.is_alive:
            raise Forbidden
        identity = Identity.objects.find(principal.organization_id, principal.identity_id)
        folder_scopes = None
        if folders is not None:
            folder_scopes = [(folder, _cap(sight, folder, capability)) for folder in folders]
            check_scopes(identity, folder_scopes)
        consent = AuthorizationCode(
            user=identity,
            application=client,
            code=credentials.hash_of(code),
            expires=clock.now() + timedelta(seconds=limits.OAUTH_CODE_SECONDS),
            redirect_uri=redirect_uri,
            scope=oauth.SCOPES[capability],
            code_challenge=code_challenge,
            code_challenge_method=AuthorizationCode.CODE_CHALLENGE_S256,
            resource=[oauth.resource()],
            folder_scopes=scopes_to_json(
                None if folder_scopes is None else tuple((folder.id, cap) for folder, cap in folder_scopes)
            ),
        )
        to_be = Connection(
            id=consent.connection_id,
            identity=identity,
            name=name,
            capability=capability,
            kind=ConnectionKind.EXTERNAL,
            client_host=host,
        )
        with transaction.atomic():
            consent.save(force_insert=True)
            audit.record(
                principal,
                AuditAction.ALLOW_CLIENT,
                subject=identity,
                token=to_be,
                after=f"{in_words(to_be, folder_scopes)}, {host}",
            )
    return consent


def _cap(sight: Sight, folder: FolderRef, capability: Capability) -> Role:
    held = sight.role_on(folder)
    if held is None:
        raise NotFound
    return min(held, Role.EDITOR if capability is Capability.WRITE else Role.READER)
