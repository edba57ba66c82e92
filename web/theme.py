"""Light or dark: as the system has it, or chosen and kept in a cookie, so that the first paint is right."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

COOKIE = "brain_theme"
COOKIE_SECONDS = 365 * 24 * 60 * 60
THEMES = ("light", "dark")


def theme_of(request: HttpRequest) -> str:
    """``light``, ``dark``, or nothing where the system decides."""
    chosen = request.COOKIES.get(COOKIE, "")
    return chosen if chosen in THEMES else ""


@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Keep the choice and go back. The form does not name its page, so that pages about nothing stay alike."""
    response = HttpResponseRedirect(_page_before(request))
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        response.set_cookie(
            COOKIE,
            chosen,
            max_age=COOKIE_SECONDS,
            secure=settings.IS_HTTPS,
            httponly=True,
            samesite="Lax",
        )
    else:
        response.delete_cookie(COOKIE, samesite="Lax")
    return response


def _page_before(request: HttpRequest) -> str:
    before = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(
        before, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return before if before and is_ours else settings.LOGIN_REDIRECT_URL
