"""Everybody who must not learn anything: each kind of identity and connection, with the hidden part of the tree.

Hidden are ``Secret/Plans`` with its entry and its folder ``Inner``. Whatever a caller may read lies elsewhere, beside
it or below it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.test import Client

from core.types import Capability, ConnectionKind, Role
from tests.world import PASSWORD, World

ENTRY = "Secret/Plans/Codes.md"
FOLDER = "Secret/Plans/Inner"
WORD = "xylophone"


@dataclass(frozen=True, slots=True)
class Caller:
    """One kind. ``token`` makes the connection; people also ``come`` to the pages."""

    token: Callable[[World], str]
    username: str
    comes: bool = True


def _stranger(world: World) -> str:
    world.person("stranger")
    return world.token("stranger")


def _reader_elsewhere(world: World) -> str:
    world.person("reader", role=Role.READER, on="Open")
    return world.token("reader", capability=Capability.READ)


def _capped(world: World) -> str:
    world.person("capped", role=Role.EDITOR, on="Secret")
    world.grant("capped", Role.EDITOR, "Open")
    return world.token("capped", scopes={"Open": Role.EDITOR})


def _without_content(world: World) -> str:
    world.person("empty", role=Role.OWNER, on="Secret")
    return world.token("empty", scopes={})


def _managed(world: World) -> str:
    world.service_account("workflow", role=Role.EDITOR, on="Open")
    return world.token("workflow", kind=ConnectionKind.MANAGED)


def _read_only(world: World) -> str:
    world.person("looker", role=Role.EDITOR, on="Open", is_read_only=True)
    return world.token("looker")


def _disabled(world: World) -> str:
    world.person("gone", role=Role.OWNER, on="Secret")
    token = world.token("gone")
    world.disable("gone")
    return token


def _editor_of_the_sibling(world: World) -> str:
    world.person("beside", role=Role.EDITOR, on="Secret/Beside")
    return world.token("beside")


def _owner_of_the_child(world: World) -> str:
    world.person("below", role=Role.OWNER, on="Secret/Plans/Child")
    return world.token("below")


def _owner_of_a_sibling_of_what_is_above(world: World) -> str:
    world.person("owner", role=Role.OWNER, on="Open")
    return world.token("owner")


def _administrator_held_short(world: World) -> str:
    world.person("root", is_admin=True)
    return world.token("root", scopes={"Open": Role.EDITOR})


CALLERS: dict[str, Caller] = {
    "stranger": Caller(_stranger, "stranger"),
    "reader elsewhere": Caller(_reader_elsewhere, "reader"),
    "owner elsewhere": Caller(_owner_of_a_sibling_of_what_is_above, "owner"),
    "capped": Caller(_capped, "capped", comes=False),
    "no content": Caller(_without_content, "empty", comes=False),
    "managed": Caller(_managed, "workflow", comes=False),
    "read-only": Caller(_read_only, "looker"),
    "disabled": Caller(_disabled, "gone"),
    "editor of the sibling": Caller(_editor_of_the_sibling, "beside"),
    "owner of the child": Caller(_owner_of_the_child, "below"),
    "administrator, capped": Caller(_administrator_held_short, "root", comes=False),
}


def browser_of(caller: Caller) -> Client:
    """The person at the pages; signed in, if they can be."""
    client = Client()
    client.post("/login/", {"username": caller.username, "password": PASSWORD})
    return client


def build(world: World) -> None:
    """What is there whoever calls: the visible parts, and the way to the hidden one."""
    world.entry("Open/Welcome.md", "hello\n")
    world.entry("Secret/Beside/Page.md", "beside\n")
    world.entry("Secret/Plans/Child/Page.md", "child\n")


def hide(world: World) -> None:
    """What nobody of the matrix may notice."""
    world.entry(ENTRY, f"the {WORD}\n\n# Heading\n\ntext\n", title=f"The {WORD}")
    world.entry(f"{FOLDER}/More.md", f"another {WORD}\n", title="More")
    world.service_account("insider", role=Role.EDITOR, on=FOLDER)
