"""How the desk writes times, states, folders and small tables."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from access.models import Connection, Identity
from brain.desk.shown import address_of_row
from core.types import Role
from kb.links import address_of_access

NOTHING = "–"


def moment(when: datetime | None) -> str:
    """A time as a person reads it, in UTC."""
    return NOTHING if when is None else f"{when:%Y-%m-%d %H:%M} UTC"


def folder(path: str | None) -> str:
    """A folder of a list; None for one that is gone."""
    return "(gone)" if path is None else path or "/ (everything)"


def access_link(path: str | None, label: str) -> SafeString:
    """A link to the page on which the folder's access is managed."""
    if path is None:
        return format_html("{}", NOTHING)
    return format_html('<a href="{}">{}</a>', address_of_access(path), label)


def row_link(row: Identity | Connection, model_name: str, label: str) -> SafeString:
    """A link to a row of another list."""
    return format_html('<a href="{}">{}</a>', address_of_row(model_name, row), label)


def list_of(identity: Identity) -> str:
    """The name of the list in which the identity stands."""
    return "person" if identity.is_person else "serviceaccount"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> SafeString:
    """A small table inside a row's page; ``empty`` is the sentence where there is nothing to show."""
    rows = list(rows)
    if not rows:
        return format_html("{}", empty)
    head = format_html_join("", '<th scope="col">{}</th>', ([text] for text in heads))
    body = format_html_join(
        "", "<tr>{}</tr>", ([format_html_join("", "<td>{}</td>", ([cell] for cell in row))] for row in rows)
    )
    return format_html('<table class="small"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>', head, body)


def role_word(role: Role) -> str:
    """A role at the beginning of a cell."""
    return role.word.capitalize()
