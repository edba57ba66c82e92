"""The addresses that a client may have people sent back to, and what a person is told of one.

https anywhere; http on the person's own machine alone, where no network carries it; and the schemes of programs that
are installed there. Everything else, ``javascript:`` above all, is refused by not being one of these.
"""

import re
from urllib.parse import SplitResult, urlsplit

from core import limits

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
# RFC 8252 wants the maker's domain, turned round, as the scheme; these are older than its advice.
EDITOR_SCHEMES = frozenset({"cursor", "vscode", "vscode-insiders", "windsurf"})

_ADDRESS = re.compile(r"[A-Za-z0-9._~:/?@!$&()*+,;=%\[\]-]+", re.ASCII)
_MAKERS_SCHEME = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+", re.ASCII)


def problem_of(uri: str) -> str | None:
    """What is wrong with a client's address, in one sentence; None where nothing is."""
    if len(uri) > limits.REDIRECT_URI_MAX_CHARACTERS:
        return f"A redirect URI has at most {limits.REDIRECT_URI_MAX_CHARACTERS:,} characters."
    if not _ADDRESS.fullmatch(uri):
        return "A redirect URI is an absolute address of ASCII characters without a fragment."
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return "A redirect URI is an absolute address."
    if "@" in parts.netloc:
        return "A redirect URI holds no user name."
    if parts.scheme in ("http", "https") and not parts.hostname:
        return "A redirect URI names a host."
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        return "A redirect URI begins with https://; http:// is for the loopback address."
    if parts.scheme not in ("http", "https") and not _is_of_a_program(parts):
        return "A redirect URI begins with https://, with http:// and the loopback address, or as a program's own."
    return None


def host_of(uri: str) -> str:
    """Where the address leads, as a person can judge it: the host, or the scheme of a program."""
    parts = urlsplit(uri)
    is_web = parts.scheme in ("http", "https") and parts.hostname is not None
    return parts.hostname or "" if is_web else f"{parts.scheme}:"


def is_on_own_machine(uri: str) -> bool:
    """Whether the address leads to a program on the machine of whoever follows it."""
    parts = urlsplit(uri)
    return parts.scheme != "https" and (parts.scheme != "http" or parts.hostname in LOOPBACK_HOSTS)


def policy_source(uri: str) -> str:
    """The address as a source of a Content-Security-Policy: its origin, or its scheme where there is none."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or parts.hostname is None or ":" in parts.hostname:
        return f"{parts.scheme}:"  # a policy cannot name an IPv6 address either
    return f"{parts.scheme}://{parts.netloc}"


def _is_of_a_program(parts: SplitResult) -> bool:
    return parts.scheme in EDITOR_SCHEMES or _MAKERS_SCHEME.fullmatch(parts.scheme) is not None
