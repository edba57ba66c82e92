"""The addresses of an installation where OAuth is on."""

from brain import urls as everywhere
from web.oauth import urls as oauth

urlpatterns = [*everywhere.urlpatterns, *oauth.urlpatterns]
handler400 = everywhere.handler400
handler403 = everywhere.handler403
handler404 = everywhere.handler404
handler500 = everywhere.handler500
