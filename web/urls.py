"""Addresses of the pages."""

from django.urls import include, path

from web import access, files, search, sign_in, theme, tokens

urlpatterns = [
    path("", files.home),
    path("login/", sign_in.SignIn.as_view(), name="login"),
    path("logout/", sign_in.SignOut.as_view(), name="logout"),
    path("theme/", theme.choose_theme, name="theme"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("tokens/shown/<str:key>/", tokens.shown_once, name="token-shown"),
    path("tokens/<str:connection_id>/rotate/", tokens.rotate, name="token-rotate"),
    path("tokens/<str:connection_id>/revoke/", tokens.revoke, name="token-revoke"),
    path("files/", files.files, name="files"),
    path("files/<path:path>", files.files, name="file"),
    path("search/", search.search, name="search"),
    path("access/", access.access, name="access_root"),
    path("access/<path:path>", access.access, name="access"),
    path("api/v1/", include("web.api.urls")),
]
