"""Dynamic client registration (RFC 7591): open to all, for public clients alone, and only so many an hour.

A registration is a name and some addresses, and gives nothing by itself. It can be read, changed and taken back by
nobody (RFC 7592 is left out): one that nobody uses is forgotten.
"""

import json
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from access import oauth, throttle
from access.services.register_client import register_client
from access.sign_in import address_of
from core import limits
from web.oauth import redirects
from web.oauth.clients import shown_name

GRANT_TYPES = ["authorization_code", "refresh_token"]


class _Refused(Exception):
    """What is wrong with a registration, with RFC 7591's word for it."""

    def __init__(self, error: str, sentence: str) -> None:
        self.error = error
        self.sentence = sentence
        super().__init__(error)


@csrf_exempt
@require_POST
def register(request: HttpRequest) -> HttpResponse:
    """Register a client. Raises RateLimited."""
    throttle.admit_registration(address_of(request) or "")
    try:
        asked = _metadata(request)
        name, uris = _name(asked), _redirect_uris(asked)
        _check_kind(asked)
    except _Refused as refused:
        return JsonResponse(
            {"error": refused.error, "error_description": refused.sentence}, status=HTTPStatus.BAD_REQUEST
        )
    client = register_client(name=name, redirect_uris=uris)
    return JsonResponse(
        {
            "client_id": client.client_id,
            "client_id_issued_at": int(client.created.timestamp()),
            "client_name": name,
            "redirect_uris": uris,
            "grant_types": GRANT_TYPES,
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": " ".join(oauth.ALL_SCOPES),
        },
        status=HTTPStatus.CREATED,
    )


def _metadata(request: HttpRequest) -> dict[str, Any]:
    if len(request.body) > limits.REGISTRATION_MAX_BYTES:
        raise _Refused(
            "invalid_client_metadata", f"A registration has at most {limits.REGISTRATION_MAX_BYTES:,} bytes."
        )
    try:
        asked = json.loads(request.body)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        raise _Refused("invalid_client_metadata", "A registration is a JSON object.")
    return asked


def _name(asked: dict[str, Any]) -> str:
    name = asked.get("client_name", "")
    if not isinstance(name, str):
        raise _Refused("invalid_client_metadata", "client_name is text.")
    return shown_name(name)


def _redirect_uris(asked: dict[str, Any]) -> list[str]:
    uris = asked.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= limits.REDIRECT_URIS_MAX:
        raise _Refused(
            "invalid_redirect_uri", f"redirect_uris is a list of 1 to {limits.REDIRECT_URIS_MAX} addresses."
        )
    for uri in uris:
        if not isinstance(uri, str):
            raise _Refused("invalid_redirect_uri", "A redirect URI is text.")
        if problem := redirects.problem_of(uri):
            raise _Refused("invalid_redirect_uri", problem)
    return uris


def _check_kind(asked: dict[str, Any]) -> None:
    # What is asked beyond this is answered with what is given instead, as RFC 7591 has it: the client learns that it
    # has no secret, and goes on.
    for field, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
        wanted = asked.get(field, [needed])
        if not isinstance(wanted, list) or needed not in wanted:
            raise _Refused("invalid_client_metadata", f"{field} is a list with {needed} in it.")
