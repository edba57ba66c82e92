"""Addresses of the pages."""

from django.urls import path

from web import access, files, search, sign_in, theme

urlpatterns = [
    path("", files.home),
    path("login/", sign_in.SignIn.as_view(), name="login"),
    path("logout/", sign_in.SignOut.as_view(), name="logout"),
    path("theme/", theme.choose_theme, name="theme"),
    path("files/", files.files, name="files"),
    path("files/<path:path>", files.files, name="file"),
    path("search/", search.search, name="search"),
    path("access/", access.access, name="access_root"),
    path("access/<path:path>", access.access, name="access"),
]
