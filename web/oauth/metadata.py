"""What clients find out by themselves: where to authorize, and for what (RFC 8414, RFC 9728)."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from oauth2_provider.views import OAuthProtectedResourceMetadataView, OAuthServerMetadataView

_server_metadata = OAuthServerMetadataView.as_view()
_resource_metadata = OAuthProtectedResourceMetadataView.as_view()


@require_safe
def server_metadata(request: HttpRequest) -> HttpResponse:
    """The authorization server's document."""
    response: HttpResponse = _server_metadata(request)
    return response


@require_safe
def resource_metadata(request: HttpRequest) -> HttpResponse:
    """The document of the agents' door."""
    response: HttpResponse = _resource_metadata(request)
    return response
