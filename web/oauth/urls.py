"""Addresses of OAuth, which are there while BRAIN_OAUTH is on. django-oauth-toolkit finds them by its own names."""

from django.urls import include, path

from web.oauth import authorize, metadata, registration, tokens

_named = [
    path(".well-known/oauth-authorization-server", metadata.server_metadata, name="oauth-server-metadata"),
    path(".well-known/oauth-protected-resource", metadata.resource_metadata, name="oauth-resource-metadata"),
    path(".well-known/oauth-protected-resource/mcp", metadata.resource_metadata),
    path("oauth/authorize/", authorize.authorize, name="authorize"),
    path("oauth/token/", tokens.token, name="token"),
    path("oauth/revoke/", tokens.revoke, name="revoke-token"),
    path("oauth/register/", registration.register, name="dcr-register"),
]
urlpatterns = [path("", include((_named, "oauth2_provider")))]
