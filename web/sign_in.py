"""Signing in and out. Whatever is wrong with a name or password, the page says one and the same sentence."""

import math
from http import HTTPStatus
from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from access.sign_in import address_of, name_tried, seconds_of_pause
from core import log

logger = log.get_logger(__name__)

MINUTE = 60


class SignIn(LoginView):
    """The form. ``next`` is followed only to addresses of this origin."""

    template_name = "sign_in.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """Ends the session; POST alone, so that no link can do it."""


def paused(request: HttpRequest, original: HttpResponse, credentials: dict[str, Any] | None) -> HttpResponse:
    """The form once more, and how long it listens to nobody: after too many wrong passwords for a name from here.

    The right password gets the same answer, and so does a name that nobody has.
    """
    seconds = max(1, seconds_of_pause(name_tried(request, credentials), address_of(request)))
    logger.warning("signing in is paused", address=address_of(request), seconds=seconds)
    context = {"pause_minutes": math.ceil(seconds / MINUTE), "next": request.POST.get("next", "")}
    response = render(request, "sign_in.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(seconds)
    return response
