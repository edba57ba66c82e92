"""Principals of every kind of connection, for what is decided without a database."""

from access.principals import ConnectionFacts, Principal
from core.types import Capability, ConnectionKind, IdentityKind, Role


def caller(
    capability: Capability = Capability.WRITE,
    kind: ConnectionKind = ConnectionKind.EXTERNAL,
    folder_scopes: tuple[tuple[str, Role], ...] | None = None,
) -> Principal:
    """Somebody with such a connection."""
    facts = ConnectionFacts("con_x", "laptop", capability, kind, folder_scopes)
    return Principal("org_x", "idn_x", "ada", "Ada", IdentityKind.PERSON, facts)


WRITER = caller()
READER = caller(Capability.READ)
SCOPED = (("fld_x", Role.EDITOR),)

# The rows of the contract's table, and what lies between them.
KINDS: dict[str, Principal] = {
    "session": Principal("org_x", "idn_x", "ada", "Ada", IdentityKind.PERSON),
    "write": WRITER,
    "read": READER,
    "write, scoped": caller(folder_scopes=SCOPED),
    "write, no content": caller(folder_scopes=()),
    "read, scoped": caller(Capability.READ, folder_scopes=SCOPED),
    "managed, write": caller(kind=ConnectionKind.MANAGED),
    "managed, read": caller(Capability.READ, ConnectionKind.MANAGED),
}
