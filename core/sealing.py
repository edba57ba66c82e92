"""Keeping a few bytes secret with a passphrase that a person remembers.

    magic (8) | salt (16) | nonce (12) | AES-256-GCM of the bytes, with all before as associated data

The key is scrypt's of the passphrase: about half a second and 128 MiB for each guess.
"""

import os
import unicodedata

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAGIC = b"BRSEAL1\n"
SALT_BYTES = 16
NONCE_BYTES = 12
KEY_BYTES = 32
SCRYPT_COST = 2**17
PASSPHRASE_MIN_CHARACTERS = 12


class CannotUnseal(Exception):
    """Another passphrase, or the bytes are damaged: the two cannot be told apart."""


def seal(data: bytes, passphrase: str) -> bytes:
    """The bytes, readable only with the passphrase."""
    head = MAGIC + os.urandom(SALT_BYTES) + os.urandom(NONCE_BYTES)
    return head + _cipher(passphrase, head).encrypt(head[-NONCE_BYTES:], data, head)


def unseal(sealed: bytes, passphrase: str) -> bytes:
    """What ``seal`` was given. Raises CannotUnseal."""
    head = sealed[: len(MAGIC) + SALT_BYTES + NONCE_BYTES]
    if not head.startswith(MAGIC):
        raise CannotUnseal
    try:
        return _cipher(passphrase, head).decrypt(head[-NONCE_BYTES:], sealed[len(head) :], head)
    except (InvalidTag, ValueError) as error:
        raise CannotUnseal from error


def _cipher(passphrase: str, head: bytes) -> AESGCM:
    salt = head[len(MAGIC) : len(MAGIC) + SALT_BYTES]
    # One spelling of letters with marks: keyboards differ.
    text = unicodedata.normalize("NFC", passphrase).encode()
    return AESGCM(Scrypt(salt=salt, length=KEY_BYTES, n=SCRYPT_COST, r=8, p=1).derive(text))
