"""An organization that holds a tree of Markdown, in a data directory of its own, made as an operator makes it.

Good in a process whose settings name that directory: ``benchmarks.on_tree`` runs there.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec
from django.conf import settings

from access.principals import Principal, principal_of_identity
from brain import first_start
from core import ids
from core.types import SYSTEM_ACTOR, Role
from kb.content import prepare_content
from kb.registry import FolderLine
from kb.services.import_markdown import import_markdown
from kb.store.layout import Layout
from kb.store.stores import store_of
from tests.seed import SeededWorld
from tests.store.changes import new_line
from tests.world import PASSWORD

ADMIN = "root"


class Tree:
    """The tree and the people who look at it."""

    def __init__(self, source: Path | None) -> None:
        """Import ``source``, if any, into this process's data directory, which is empty. Raises AssertionError."""
        first_start.provision(organization=None, admin=ADMIN, password=PASSWORD)
        self.world = SeededWorld()
        self.entries = self.text_bytes = 0
        if source is not None:
            report = import_markdown(self.world.system, source, "", rename=True)
            assert not report.refused, report.refused[:5]
            self.entries, self.text_bytes = len(report.imported), report.size_bytes
        self.root = principal_of_identity(self.world.identity(ADMIN))

    @property
    def layout(self) -> Layout:
        """Where the organization's files are."""
        return store_of(self.world.organization_id).layout

    @property
    def content(self) -> Path:
        """The Markdown itself."""
        return self.top / "content"

    @property
    def top(self) -> Path:
        """The organization's directory."""
        return Path(settings.DATA_DIR) / "orgs" / self.world.organization_id

    @cached_property
    def files(self) -> Sequence[Path]:
        """Every entry's file as the tree was imported, in path order."""
        return sorted(self.content.rglob("*.md"))

    @cached_property
    def folders(self) -> Sequence[str]:
        """The paths of all folders that hold entries."""
        return sorted({str(file.parent.relative_to(self.content)) for file in self.files} - {"."})

    def reader_of(self, username: str, folders: Sequence[str]) -> Principal:
        """Somebody new who reads these folders and nothing else."""
        principal = self.world.person(username)
        for folder in folders:
            self.world.grant(username, Role.READER, folder)
        return principal

    def fill(
        self,
        top: str,
        folders: Sequence[tuple[str, int]],
        *,
        types: Sequence[str] = ("note",),
        tags: Sequence[str] = (),
    ) -> None:
        """A new folder with these folders in it and so many little entries in each; "" is the folder itself.

        Types and tags take turns.
        """
        parent = self.world.folder(top)
        number = 0
        with store_of(self.world.organization_id).transaction() as transaction:
            for name, count in folders:
                folder = parent
                if name:
                    line = FolderLine(
                        lsn=transaction.lsn_of_change,
                        id=ids.new_id(ids.FOLDER),
                        name=name,
                        created_at=transaction.time,
                        created_by=SYSTEM_ACTOR,
                    )
                    folder = transaction.add_folder(parent, line)
                for _ in range(count):
                    content = prepare_content(f"# Entry {number}\n")
                    entry = msgspec.structs.replace(
                        new_line(transaction, f"e{number}.md", content),
                        type=types[number % len(types)],
                        tags=tuple(tags[number // len(types) % len(tags)] for _ in tags[:1]),
                    )
                    transaction.save_entry(folder, entry, content.data)
                    number += 1
            transaction.commit("import", SYSTEM_ACTOR, [])
