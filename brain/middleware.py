"""What happens to every request around the views: its log event, its size, and how a refusal becomes an answer."""

import secrets
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.core.signals import got_request_exception
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from structlog.contextvars import bind_contextvars, clear_contextvars

from access import throttle
from access.models import Identity
from access.principals import principal_of_identity
from brain import refusals
from core import clock, limits, log
from core.errors import BrainError, RateLimited

Handler = Callable[[HttpRequest], HttpResponse]

logger = log.get_logger(__name__)

# The addresses that take an agent's message, with 10 MiB of text in it.
MCP_PATHS = frozenset({"/mcp", "/mcp/", "/api/external/v1/mcp"})
JSON_RPC_INVALID_REQUEST = -32600

# Asked every few seconds by whoever watches the server; not worth a line each.
QUIET_ROUTES = frozenset({"healthz", "readyz"})

# Django has an answer of its own for these.
ANSWERED_BY_DJANGO = (Http404, PermissionDenied, BadRequest, SuspiciousOperation, MultiPartParserError)


class RequestEvents:
    """One log event a request: method, route, status, duration. The route, not the address: that quotes names.

    Everything logged in between carries the same ``request`` id.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        clear_contextvars()
        bind_contextvars(request=secrets.token_hex(6))
        started = clock.monotonic()
        response = self.get_response(request)
        route = request.resolver_match.route if request.resolver_match else ""
        if route not in QUIET_ROUTES:
            logger.info(
                "request",
                method=request.method,
                route=route,
                status=response.status_code,
                milliseconds=round((clock.monotonic() - started) * 1000, 1),
            )
        clear_contextvars()
        return response


class BodyLimits:
    """Refuse a body that is too large, or of unknown size, before anything reads it or asks who sent it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        declared = request.META.get("CONTENT_LENGTH") or ""
        if request.META.get("HTTP_TRANSFER_ENCODING"):
            # WSGI would hand such a body on as an empty one.
            return _refused_body(request, HTTPStatus.LENGTH_REQUIRED, "Send the body with a Content-Length.")
        if declared and not (declared.isascii() and declared.isdigit()):
            return _refused_body(request, HTTPStatus.BAD_REQUEST, "Content-Length is not a number.")
        limit = limits.MCP_BODY_MAX_BYTES if request.path_info in MCP_PATHS else limits.BODY_MAX_BYTES
        if declared and int(declared) > limit:
            return _refused_body(
                request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is larger than {limit:,} bytes."
            )
        return self.get_response(request)


class NothingIsCached:
    """Keep answers out of every cache, unless a view says otherwise: access to them can end at any moment."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class PacesOfSessions:
    """Hold the pages of one person to the pace of one connection. Programs are held to it where they are let in."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Called by Django before a view; nobody is asked for where no session can be."""
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return None
        if refusals.is_for_programs(request.path_info) or not isinstance(request.user, Identity):
            return None
        try:
            throttle.admit(principal_of_identity(request.user))
        except RateLimited as refusal:
            return refusals.answer(request, refusal)
        return None


class Refusals:
    """The one place where a ``BrainError`` of a page becomes an answer, and a bug a reference id."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Called by Django with what a view raised."""
        if isinstance(exception, BrainError):
            return refusals.answer(request, exception)
        if isinstance(exception, ANSWERED_BY_DJANGO) or settings.DEBUG:
            return None
        got_request_exception.send(sender=None, request=request)  # Django's test client raises it again
        return refusals.answer_to_bug(request, exception)


def _refused_body(request: HttpRequest, status: HTTPStatus, sentence: str) -> HttpResponse:
    if request.path_info in MCP_PATHS:
        error = {"code": JSON_RPC_INVALID_REQUEST, "message": sentence}
        return JsonResponse({"jsonrpc": "2.0", "id": None, "error": error}, status=status)
    return HttpResponse(sentence, status=status, content_type="text/plain; charset=utf-8")
