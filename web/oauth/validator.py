"""The rules of OAuth that are Brain's own, where django-oauth-toolkit asks for them.

Codes are kept hashed and stay known after their use; every family of tokens is one connection, so that what ends the
one ends the other; a token without Brain's own resource is not issued.
"""

from typing import Any

from django.db.models import QuerySet
from oauth2_provider.models import AccessToken, RefreshToken
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749 import errors

from access import credentials, oauth
from access.models import AuthorizationCode, Connection
from access.principals import principal_of_session
from access.services import end_connection as ending
from access.services.allow_client import allow_client
from access.services.end_connection import end_connection
from access.services.open_connection import open_connection, renew_connection
from core.types import Capability
from web.oauth import redirects
from web.oauth.clients import shown_client


class Validator(OAuth2Validator):  # type: ignore[misc]
    """django-oauth-toolkit's answers to oauthlib, with Brain's in their places."""

    # The authorization endpoint

    def validate_redirect_uri(
        self, client_id: str, redirect_uri: str, request: Request, *_: Any, **__: Any
    ) -> bool:
        """One of the client's own, letter by letter but for the port of the loopback address."""
        is_own = super().validate_redirect_uri(client_id, redirect_uri, request)
        return is_own and redirects.problem_of(redirect_uri) is None

    def _create_authorization_code(
        self, request: Request, code: dict[str, str], expires: Any = None
    ) -> AuthorizationCode:
        if request.code_challenge_method != AuthorizationCode.CODE_CHALLENGE_S256:
            raise errors.InvalidRequestError(
                description="Use the code_challenge_method S256.", request=request
            )
        client = shown_client(request.client.name, request.redirect_uri)
        return allow_client(
            principal_of_session(request.user),
            request.client,
            code=code["code"],
            redirect_uri=request.redirect_uri,
            code_challenge=request.code_challenge,
            name=client.name,
            host=client.host,
            capability=oauth.capability_of(request.scopes),
            folders=vars(request)["folders"],
        )

    # The token endpoint, with a code

    def validate_code(
        self, client_id: str, code: str, client: Any, request: Request, *_: Any, **__: Any
    ) -> bool:
        """A code of this client that is young and unused. One that was used ends what was made of it."""
        consent = _consent(request)
        if consent is None:
            return False
        if consent.redeemed_at is not None:
            _end(Connection.objects.filter(id=consent.connection_id), ending.CODE_REUSED)
            return False
        if consent.is_expired() or not consent.user.is_active:
            return False
        _require_resource(request, may_be_left_out=False)
        request.user = consent.user
        request.scopes = consent.scope.split()
        return True

    def get_code_challenge(self, code: str, request: Request) -> str | None:
        """What the verifier must hash to."""
        consent = _consent(request)
        return consent.code_challenge if consent else None

    def get_code_challenge_method(self, code: str, request: Request) -> str | None:
        """S256."""
        consent = _consent(request)
        return consent.code_challenge_method if consent else None

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: Any, request: Request, *_: Any, **__: Any
    ) -> bool:
        """The very address of the authorization request."""
        consent = _consent(request)
        return consent is not None and consent.redirect_uri_allowed(redirect_uri)

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Request, *_: Any, **__: Any
    ) -> None:
        """Nothing is left to do: opening the connection has used the code up."""

    # The token endpoint, with a refresh token

    def validate_refresh_token(
        self, refresh_token: str, client: Any, request: Request, *_: Any, **__: Any
    ) -> bool:
        """A refresh token of this client that was not used before. One that was ends its connection."""
        # Locked first: of two that come with the same one, the second sees it used.
        known = (
            RefreshToken.objects.select_for_update()
            .filter(token_checksum=credentials.hash_of(refresh_token), application=client)
            .order_by("-id")
            .first()
        )
        if known is None:
            return False
        connection = (
            Connection.objects.select_related("identity").filter(token_family=known.token_family).first()
        )
        if connection is None or connection.revoked_at is not None or not connection.identity.is_active:
            return False
        if not super().validate_refresh_token(refresh_token, client, request):
            if known.revoked is not None:
                end_connection(connection, ending.REFRESH_TOKEN_REUSED)
            return False
        _require_resource(request, may_be_left_out=True)
        vars(request)["connection"] = connection
        return True

    def get_original_scopes(self, refresh_token: str, request: Request, *_: Any, **__: Any) -> list[str]:
        """All that the person allowed, also after a renewal that asked for less."""
        return oauth.SCOPES[Capability(vars(request)["connection"].capability)].split()

    # Both

    def _check_and_set_request_resource(self, request: Request) -> None:
        request.resource = [oauth.resource()]

    def _create_refresh_token(
        self,
        request: Request,
        refresh_token_code: str,
        access_token: AccessToken,
        previous: RefreshToken | None,
    ) -> RefreshToken:
        token = super()._create_refresh_token(request, refresh_token_code, access_token, previous)
        if previous is None:
            consent = _consent(request)
            assert consent is not None
            client = shown_client(request.client.name, consent.redirect_uri)
            open_connection(consent, token.token_family, name=client.name, host=client.host)
        else:
            renew_connection(token.token_family)
        return token

    # The revocation endpoint

    def revoke_token(self, token: str, token_type_hint: str, request: Request, *_: Any, **__: Any) -> None:
        """Either token of a pair gives the connection back. One of another client's is as unknown."""
        checksum = credentials.hash_of(token)
        families = set(
            RefreshToken.objects.filter(token_checksum=checksum, application=request.client).values_list(
                "token_family", flat=True
            )
        ) | set(
            RefreshToken.objects.filter(
                access_token__token_checksum=checksum, application=request.client
            ).values_list("token_family", flat=True)
        )
        super().revoke_token(token, token_type_hint, request)
        _end(Connection.objects.filter(token_family__in=families), ending.GIVEN_BACK)


def _consent(request: Request) -> AuthorizationCode | None:
    # Looked up once a request, and locked: of two that come with the same code, the second sees it used. In ``vars``,
    # since as an attribute a parameter of the same name, which a client could send, would be taken for it.
    kept = vars(request)
    if "consent" not in kept:
        kept["consent"] = (
            AuthorizationCode.objects.select_for_update(of=("self",))
            .select_related("user", "application")
            .filter(code=credentials.hash_of(request.code), application=request.client)
            .first()
        )
    consent: AuthorizationCode | None = kept["consent"]
    return consent


def _require_resource(request: Request, *, may_be_left_out: bool) -> None:
    asked = [value for name, value in request.decoded_body or () if name == "resource"]
    if (not asked and not may_be_left_out) or not all(map(oauth.is_our_resource, asked)):
        raise errors.CustomOAuth2Error(
            error="invalid_target", description=f"The resource is {oauth.resource()}.", request=request
        )


def _end(connections: QuerySet[Connection], because: str) -> None:
    for connection in connections.select_related("identity"):
        end_connection(connection, because)
