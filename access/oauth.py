"""What OAuth means here: the scopes, the one protected resource, and what a refused call is told.

The protocol itself is spoken in ``web.oauth``. While ``BRAIN_OAUTH`` is off, nothing here shows.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.conf import settings

from core.errors import InsufficientScope, Unauthenticated
from core.types import Capability

READ_SCOPE = "knowledgebase:read"
WRITE_SCOPE = "knowledgebase:write"
ALL_SCOPES = (READ_SCOPE, WRITE_SCOPE)
SCOPES = {
    Capability.READ: READ_SCOPE,
    Capability.WRITE: " ".join(ALL_SCOPES),
}
RESOURCE_PATH = "/mcp"
RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource"
_PORTS = {"http": 80, "https": 443}


def issuer() -> str:
    """The name of this authorization server (RFC 8414): the public address."""
    issuer: str = settings.PUBLIC_URL
    return issuer


def resource() -> str:
    """The name of the one resource that tokens are for (RFC 8707): the agents' door under the public address."""
    return issuer() + RESOURCE_PATH


def is_our_resource(asked: str) -> bool:
    """Whether a client means this Brain: the address of the agents' door, in any spelling of it."""
    return _place(asked) is not None and _place(asked) == _place(resource())


def capability_of(scopes: Iterable[str]) -> Capability:
    """What a set of scopes comes to; writing includes reading."""
    return Capability.WRITE if WRITE_SCOPE in scopes else Capability.READ


def unauthenticated(*, error: str = "") -> Unauthenticated:
    """The refusal of a call, with the challenge that leads a client to the metadata where OAuth is on.

    ``error`` is RFC 6750's word for what is wrong with the token; without a token there is none.
    """
    return Unauthenticated(_challenge(error, Capability.WRITE) if settings.OAUTH else "Bearer")


def insufficient_scope() -> InsufficientScope:
    """The refusal of a call that needs writing, for a client that was allowed to read."""
    return InsufficientScope(_challenge("insufficient_scope", Capability.WRITE))


def _challenge(error: str, wanted: Capability) -> str:
    fields = {"error": error} if error else {}
    fields |= {
        "scope": SCOPES[wanted],
        "resource_metadata": f"{issuer()}{RESOURCE_METADATA_PATH}{RESOURCE_PATH}",
    }
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields.items())


def _place(url: str) -> tuple[str, str, int, str] | None:
    # Scheme, host, port and path; None for what has more, or is no such address.
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
    except (KeyError, ValueError):
        return None
    if not parts.hostname or "@" in parts.netloc or "?" in url or "#" in url:
        return None
    return parts.scheme, parts.hostname, port, parts.path.removesuffix("/")
