"""What a person is shown of a client. All of it is the client's own word, but the address it is answered at."""

import unicodedata
from dataclasses import dataclass

from web.oauth import redirects

SHOWN_NAME_CHARACTERS = 80
NAMELESS = "A client without a name"


@dataclass(frozen=True, slots=True)
class ShownClient:
    """A client on the consent page and in the list of connections."""

    name: str
    host: str
    is_on_own_machine: bool


def shown_client(name: str, redirect_uri: str) -> ShownClient:
    """The client that calls itself so and is answered at this address."""
    return ShownClient(
        shown_name(name), redirects.host_of(redirect_uri), redirects.is_on_own_machine(redirect_uri)
    )


def shown_name(name: str) -> str:
    """A client's name as one plain line: nothing in it turns text round, hides, or makes room for more lines."""
    visible = "".join(
        " " if unicodedata.category(letter)[0] in "CZ" else letter
        for letter in name[: SHOWN_NAME_CHARACTERS * 4]
    )
    line = " ".join(visible.split())
    return (
        line[: SHOWN_NAME_CHARACTERS - 1] + "…" if len(line) > SHOWN_NAME_CHARACTERS else line
    ) or NAMELESS
