"""Who is asking: one identity, and the connection it asks through. Every service takes one first."""

import json
from dataclasses import dataclass, replace

from access.models import Identity
from core.errors import Unauthenticated
from core.types import SYSTEM_ACTOR, Actor, Capability, ConnectionKind, IdentityKind, Role


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What a connection may do at most. ``folder_scopes`` is None where no folder narrows it.

    ``is_oauth`` says that an OAuth client holds it, which can ask its person for more.
    """

    id: str
    name: str
    capability: Capability
    kind: ConnectionKind
    folder_scopes: tuple[tuple[str, Role], ...] | None
    is_oauth: bool = False


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. ``connection`` is None for a browser session and for the shell.

    It says who asks, not what they may: that is asked anew at every call (``authorizer.sight_of``).

    ``is_access_builder``: what the access chat carries out for a person, who confirmed it. It reaches the actions on
    access and no content, whatever the person may do with content elsewhere.
    """

    organization_id: str
    identity_id: str
    username: str
    name: str
    kind: IdentityKind
    connection: ConnectionFacts | None = None
    is_access_builder: bool = False

    @property
    def actor(self) -> Actor:
        """The principal as the store writes it beside a change."""
        return Actor(id=self.identity_id, name=self.name, kind=self.kind)

    @property
    def is_system(self) -> bool:
        """Whether this is the shell or an import."""
        return self.kind is IdentityKind.SYSTEM

    @property
    def cursor_binding(self) -> str:
        """What a cursor is bound to, so that it is of no use to anybody else."""
        return f"{self.identity_id} {self.connection.id if self.connection else ''}"


def system_principal(organization_id: str) -> Principal:
    """The shell and imports: Owner everywhere, asked of no database."""
    return Principal(
        organization_id=organization_id,
        identity_id=SYSTEM_ACTOR.id,
        username=SYSTEM_ACTOR.id,
        name=SYSTEM_ACTOR.name,
        kind=SYSTEM_ACTOR.kind,
    )


def principal_of_session(identity: Identity) -> Principal:
    """The person behind a browser session. Raises Unauthenticated for a service account, which has none."""
    if not identity.is_person:
        raise Unauthenticated
    return principal_of_identity(identity)


def access_builder_of(identity: Identity) -> Principal:
    """What the access chat acts as for this person. Raises Unauthenticated for a service account."""
    return replace(principal_of_session(identity), is_access_builder=True)


def principal_of_identity(identity: Identity) -> Principal:
    """The identity itself, narrowed by no connection: for judging what it may, not for acting as it."""
    return Principal(
        organization_id=identity.organization_id,
        identity_id=identity.id,
        username=identity.username,
        name=identity.name,
        kind=IdentityKind(identity.kind),
    )


def connection_facts(
    connection_id: str, name: str, capability: str, kind: str, folder_scopes: str | None
) -> ConnectionFacts:
    """A connection from its columns as a cursor gives them; the scopes are still JSON."""
    scopes = None if folder_scopes is None else json.loads(folder_scopes)
    return ConnectionFacts(
        id=connection_id,
        name=name,
        capability=Capability(capability),
        kind=ConnectionKind(kind),
        folder_scopes=None
        if scopes is None
        else tuple((scope["folder_id"], Role.from_word(scope["max_role"])) for scope in scopes),
    )


def scopes_to_json(scopes: tuple[tuple[str, Role], ...] | None) -> list[dict[str, str]] | None:
    """``Connection.folder_scopes`` as it is stored and shown."""
    if scopes is None:
        return None
    return [{"folder_id": folder_id, "max_role": role.word} for folder_id, role in scopes]
