"""How a refusal looks outside the MCP dispatcher: one plain page for people, the error object for programs.

Absent and hidden are both ``NotFound`` and become the same page here, as does an address that does not exist.
"""

import secrets
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from core import log
from core.errors import BrainError, Forbidden, InsufficientScope, InternalError, NotFound, Unauthenticated

logger = log.get_logger(__name__)

# Below these speak programs; a page there would be taken for something it is not.
PROGRAM_PATHS = ("/mcp", "/api/", "/.well-known/", "/oauth/")
# But this one is a form for people.
CONSENT_PATH = "/oauth/authorize/"


class StaleForm(BrainError):
    """A form without the proof that it is ours: opened before signing in, long ago, or on another site."""

    code = "FORBIDDEN"
    message = (
        "This form is too old, or it was not sent from Brain. Go back, reload the page and send it again."
    )
    http_status = 403


def is_for_programs(path: str) -> bool:
    """Whether those who speak to this address are programs, which take no page for an answer."""
    return path.startswith(PROGRAM_PATHS) and path != CONSENT_PATH


def answer(request: HttpRequest, error: BrainError) -> HttpResponse:
    """The response for a refusal, in the form that suits the address."""
    if is_for_programs(request.path_info):
        response: HttpResponse = JsonResponse({"error": error.as_dict()}, status=error.http_status)
    else:
        response = render(request, "error.html", {"error": error}, status=error.http_status)
    if isinstance(error, Unauthenticated | InsufficientScope):
        response["WWW-Authenticate"] = error.challenge
    if error.retry_after_seconds is not None:
        response["Retry-After"] = str(error.retry_after_seconds)
    return response


def answer_to_bug(request: HttpRequest, bug: BaseException | None) -> HttpResponse:
    """The response for an exception nobody expected: a reference id, which the log has too, and nothing else."""
    reference = secrets.token_hex(8)
    logger.error("unexpected exception", reference=reference, exc_info=bug or True)
    return answer(request, InternalError(reference=reference))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400: a host name that is not ours, a malformed form. No page: nothing of the request is trusted."""
    return HttpResponse("Bad request.", status=HTTPStatus.BAD_REQUEST, content_type="text/plain")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 403."""
    return answer(request, Forbidden())


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 404."""
    return answer(request, NotFound())


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's answer to a form that fails the check against forged requests."""
    return answer(request, StaleForm())


def broken(request: HttpRequest) -> HttpResponse:
    """Django's 500, for what breaks outside a view."""
    return answer_to_bug(request, None)
