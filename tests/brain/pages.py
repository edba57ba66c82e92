"""Addresses that end in every way a view can end, for the tests of what stands around the views."""

from collections.abc import Callable

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import include, path

from core.errors import NotFound, StorageUnavailable, Unauthenticated

SAID = "the plan of the merger"


def fine(request: HttpRequest) -> HttpResponse:
    return HttpResponse("fine")


def cached(request: HttpRequest) -> HttpResponse:
    return HttpResponse("x", headers={"Cache-Control": "max-age=60"})


def raises(error: Exception | type[Exception]) -> Callable[[HttpRequest], HttpResponseBase]:
    def view(request: HttpRequest) -> HttpResponseBase:
        raise error

    return view


urlpatterns = [
    path("fine", fine),
    path("mcp", fine),
    path("cached", cached),
    path("hidden", raises(NotFound)),
    path("missing", raises(Http404("no entry merger.md"))),
    path("denied", raises(PermissionDenied)),
    path("suspicious", raises(SuspiciousOperation(SAID))),
    path("busy", raises(StorageUnavailable)),
    path("bug", raises(ValueError(SAID))),
    path("api/v1/hidden", raises(NotFound)),
    path("api/v1/bug", raises(ValueError(SAID))),
    path("api/v1/who", raises(Unauthenticated)),
    path("", include("web.urls")),  # the pages around an error lead there
]
handler400 = "brain.refusals.bad_request"
handler403 = "brain.refusals.forbidden"
handler404 = "brain.refusals.not_found"
handler500 = "brain.refusals.broken"
