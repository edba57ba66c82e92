"""Where clients come for tokens and give them back. They are public clients: what counts is the secret they show."""

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from oauth2_provider.views import RevokeTokenView, TokenView

GRANT_TYPES = ("authorization_code", "refresh_token")
_token = TokenView.as_view()
_revoke = RevokeTokenView.as_view()


@csrf_exempt
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """Tokens for a code or for a refresh token.

    One transaction, also where it refuses: a code or refresh token that is shown again ends its connection.
    """
    if request.POST.get("grant_type") not in GRANT_TYPES:
        return JsonResponse({"error": "unsupported_grant_type"}, status=400)
    with transaction.atomic():
        response: HttpResponse = _token(request)
    return response


@csrf_exempt
@require_POST
def revoke(request: HttpRequest) -> HttpResponse:
    """The end of a connection, by its client (RFC 7009). The answer is the same whether there was one or not."""
    with transaction.atomic():
        response: HttpResponse = _revoke(request)
    return response
