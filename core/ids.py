"""Ids, version tokens and keys derived from the data key. None of them holds a path, count or order."""

import hashlib
import hmac
import secrets

ENTRY = "ent"
FOLDER = "fld"
DELETION = "del"
IDENTITY = "idn"
CONNECTION = "con"
ORGANIZATION = "org"


def new_id(kind: str) -> str:
    """A random id such as ``ent_mfrggzdfmztwq2lknnwg23tpob``: 130 bits, lowercase, safe in URLs and file names."""
    return f"{kind}_{_base32(secrets.token_bytes(_BYTES))}"


def version_token(data_key: bytes, *, entry_id: str, sequence: int, content_hash: str) -> str:
    """The opaque version of an entry: a keyed hash, so that it tells neither order nor content."""
    message = f"version\0{entry_id}\0{sequence}\0{content_hash}".encode()
    return "v" + _base32(hmac.digest(data_key, message, "sha256")[:_BYTES])


def derived_key(data_key: bytes, purpose: str) -> bytes:
    """32 bytes for one purpose; keys of two purposes tell nothing about each other."""
    return hmac.digest(data_key, b"derive\0" + purpose.encode(), "sha256")


def request_key(*, organization_id: str, identity_id: str, tool: str, request_id: str) -> str:
    """The name of a request's claim and outcome: 64 hexadecimal digits."""
    return hashlib.sha256("\0".join((organization_id, identity_id, tool, request_id)).encode()).hexdigest()


def sha256_hex(data: bytes) -> str:
    """Lowercase hexadecimal SHA-256, the ``content_hash`` of the contract."""
    return hashlib.sha256(data).hexdigest()


def git_blob_id(data: bytes) -> str:
    """The id that Git gives a blob of these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _base32(data: bytes) -> str:
    # The first 130 of 136 bits, ten at a time: the library's is several times slower, and a page has fifty versions.
    number = int.from_bytes(data) >> 6
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


_BYTES = 17
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
