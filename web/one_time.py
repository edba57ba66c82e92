"""Showing a secret on the page after a form, once.

The form answers with a redirect, so that reloading the page does not send the form again. Between the two the secret
is kept in the session, encrypted, and the key stands in the address alone: the database does not hold it in clear, and
the address, which browsers remember, is worth nothing once the page was shown.
"""

import base64
import binascii
import json
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.http import HttpRequest

from core import clock

NONCE_BYTES = 12
KEY_BITS = 256
KEPT_SECONDS = 600
_SLOT = "shown_once"


def put_away(request: HttpRequest, what: dict[str, str]) -> str:
    """Keep this for the next page of the session; returns the key to it. One thing at a time."""
    key, nonce = AESGCM.generate_key(KEY_BITS), secrets.token_bytes(NONCE_BYTES)
    until = clock.now().timestamp() + KEPT_SECONDS
    sealed = nonce + AESGCM(key).encrypt(nonce, json.dumps({**what, "until": until}).encode(), None)
    request.session[_SLOT] = base64.b64encode(sealed).decode()
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def take(request: HttpRequest, key: str) -> dict[str, str] | None:
    """What the key is for, this one time; None where it was taken, or too long ago, or for another session."""
    kept = request.session.get(_SLOT)
    if not isinstance(kept, str):
        return None
    sealed = base64.b64decode(kept)
    try:
        opener = AESGCM(base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)))
        opened = json.loads(opener.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None))
    except (binascii.Error, InvalidTag, ValueError):
        return None
    del request.session[_SLOT]
    return opened if opened.pop("until") > clock.now().timestamp() else None
