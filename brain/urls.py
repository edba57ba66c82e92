"""All addresses: the agents' door, the viewer's pages, and health."""

from django.urls import include, path

from brain import health

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("", include("mcpapi.urls")),
    path("", include("web.urls")),
]
handler400 = "brain.refusals.bad_request"
handler403 = "brain.refusals.forbidden"
handler404 = "brain.refusals.not_found"
handler500 = "brain.refusals.broken"
