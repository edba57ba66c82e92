"""Fill a running Brain: a process of tests/live.py reads steps as JSON from standard input, in the order they come.

A step is an object whose first key says what it makes: person, service_account, folder, entry. The others are the
arguments of ``World`` by that name, and for an entry who it is written ``by``.
"""

import json
import sys
from typing import Any

from access.principals import Principal, principal_of_identity, system_principal
from access.services.create_organization import the_organization
from core.types import FolderLocator, Role
from kb.services.create_entry import create_entry
from kb.store import stores
from tests.world import World


class SeededWorld(World):
    """The organization that is there."""

    def __init__(self) -> None:
        organization = the_organization()
        assert organization is not None
        self.organization_id = organization.id
        self.system = system_principal(organization.id)

    def do(self, step: dict[str, Any]) -> None:
        """One step."""
        what = next(iter(step))
        name = step.pop(what)
        if "role" in step:
            step["role"] = Role.from_word(step["role"])
        match what:
            case "person":
                shown_as = step.pop("name", None)
                self.person(name, **step)
                if shown_as is not None:
                    identity = self.identity(name)
                    identity.name = shown_as
                    identity.save(update_fields=["name"])
            case "service_account":
                self.service_account(name, **step)
            case "folder":
                self.folder(name)
            case "entry":
                self.write(name, **step)

    def write(
        self,
        path: str,
        content: str = "",
        *,
        title: str = "",
        type: str = "note",
        by: str | None = None,
        description: str = "",
        tags: tuple[str, ...] = (),
    ) -> None:
        """An entry with all that may stand on its page."""
        folder_path, _, filename = path.rpartition("/")
        author: Principal = self.system if by is None else principal_of_identity(self.identity(by))
        create_entry(
            author,
            None,
            FolderLocator(folder_id=self.folder(folder_path).id),
            filename=filename,
            type=type,
            title=title or filename.removesuffix(".md"),
            content=content,
            description=description,
            tags=tags,
        )


def main() -> None:
    """All steps."""
    world = SeededWorld()
    for step in json.load(sys.stdin):
        world.do(step)
    stores.close_all()
