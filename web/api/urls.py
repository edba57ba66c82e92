"""Addresses below /api/v1/. A forgotten slash at the end changes nothing: a redirect could lose the credential."""

from django.urls import path

from web.api import endpoints

LISTS: tuple[type[endpoints.Endpoint], ...] = (
    endpoints.Folders,
    endpoints.Entries,
    endpoints.Search,
    endpoints.Backup,
    endpoints.Access,
    endpoints.Explain,
    endpoints.ListAccess,
    endpoints.Schema,
)

urlpatterns = [
    *(path(f"{endpoint.name}/", endpoint.as_view()) for endpoint in LISTS),
    *(path(endpoint.name, endpoint.as_view(schema=None)) for endpoint in LISTS),
    path("entries/<path:entry>", endpoints.OneEntry.as_view()),
    path("", endpoints.Nowhere.as_view(schema=None)),
    path("<path:rest>", endpoints.Nowhere.as_view(schema=None)),
]
