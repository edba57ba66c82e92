"""The view of ``benchmarks.bare``, and what servers call: ``wsgi`` and ``asgi``."""

import hashlib
import os

from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.bare")


@csrf_exempt
def who(request: HttpRequest) -> HttpResponse:
    """Who shows this token."""
    from access.models import Connection

    _, _, token = request.headers.get("Authorization", "").partition(" ")
    connection = (
        Connection.objects.select_related("identity")
        .filter(token_hash=hashlib.sha256(token.encode()).hexdigest(), revoked_at=None)
        .first()
    )
    if connection is None or not connection.identity.is_active:
        return JsonResponse({"detail": "Invalid token."}, status=401)
    return JsonResponse({"username": connection.identity.username})


urlpatterns = [path("who", who)]
wsgi = get_wsgi_application()
asgi = get_asgi_application()
