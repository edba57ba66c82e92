"""All addresses: the agents' door, the viewer's pages, the administrators' desk, and health."""

from django.conf import settings
from django.urls import include, path

from brain import admin, health

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("admin/", admin.urls),
    path("", include("mcpapi.urls")),
    path("", include("web.urls")),
]
if settings.OAUTH:
    urlpatterns.append(path("", include("web.oauth.urls")))
handler400 = "brain.refusals.bad_request"
handler403 = "brain.refusals.forbidden"
handler404 = "brain.refusals.not_found"
handler500 = "brain.refusals.broken"
