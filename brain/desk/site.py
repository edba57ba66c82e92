"""The site at ``/admin/``: for administrators alone, with one way in and nothing that writes by itself."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, reverse

from access.models import Identity
from access.principals import Principal, principal_of_session
from core.errors import Forbidden, NotFound

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

# Pages of Django's admin that sign in or out, or write, or answer for other models without asking a service.
LEFT_OUT = frozenset({"password_change", "password_change_done", "autocomplete", "view_on_site"})


class Desk(AdminSite):
    """Whoever is not an administrator gets the same refusal from every address below ``/admin/``."""

    site_title = "Brain"
    site_header = "Brain administration"
    index_title = "Administration"
    site_url = "/files/"
    index_template = "desk/index.html"
    enable_nav_sidebar = True

    def has_permission(self, request: HttpRequest) -> bool:
        """For active administrators in a browser session."""
        return isinstance(request.user, Identity) and request.user.is_staff

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Every page of the desk: strangers sign in first, others are refused before anything is looked up."""
        page = super().admin_view(view, cacheable)

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not self.has_permission(request):
                raise Forbidden
            return page(request, *args, **kwargs)

        return cast("View", guarded)

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """``/login/`` is the only way in. Raises Forbidden for somebody who came in and may not be here."""
        if self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        if request.user.is_authenticated:
            raise Forbidden
        return redirect_to_login(reverse("admin:index"))

    def logout(self, request: HttpRequest, extra_context: Any = None) -> NoReturn:
        """Signing out has an address of its own. Raises NotFound."""
        raise NotFound

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The lists in the order in which ``brain.admin`` names them."""
        apps = super().get_app_list(request, app_label)
        order = [model._meta.object_name for model in self._registry]
        for app in apps:
            app["models"].sort(key=lambda shown: order.index(shown["object_name"]))
        return apps

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Django's, without what is left out."""
        return [url for url in super().get_urls() if getattr(url, "name", None) not in LEFT_OUT]


desk = Desk()


def principal_at(request: HttpRequest) -> Principal:
    """The administrator at the desk, as services take them."""
    assert isinstance(request.user, Identity)
    return principal_of_session(request.user)
