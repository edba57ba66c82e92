"""Opaque cursors: an encrypted place in a list, good only for the same query, identity and connection."""

import base64
import binascii
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from core import ids
from core.errors import InvalidArgument

NONCE_BYTES = 12
# Every cursor is padded to a multiple of this, so that its length tells little about the place it holds.
PADDING_BYTES = 64


def seal(data_key: bytes, place: str, *, bound_to: str) -> str:
    """The cursor that ``unseal`` turns back into ``place`` when it is given the same ``bound_to``."""
    plain = place.encode()
    plain = len(plain).to_bytes(4, "big") + plain
    plain += b"\0" * (-len(plain) % PADDING_BYTES)
    nonce = os.urandom(NONCE_BYTES)
    return _written(nonce + _cipher(data_key).encrypt(nonce, plain, bound_to.encode()))


def unseal(data_key: bytes, cursor: str, *, bound_to: str) -> str:
    """The place in the cursor. Raises InvalidArgument for any other query, identity or connection, and for noise."""
    try:
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        if _written(sealed) != cursor:
            raise ValueError("not the spelling that seal gives it")
        plain = _cipher(data_key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound_to.encode())
        return plain[4 : 4 + int.from_bytes(plain[:4], "big")].decode()
    except (InvalidTag, ValueError, binascii.Error) as error:
        raise InvalidArgument("cursor", "This cursor belongs to another query or connection.") from error


def _written(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _cipher(data_key: bytes) -> AESGCM:
    return AESGCM(ids.derived_key(data_key, "cursor"))
