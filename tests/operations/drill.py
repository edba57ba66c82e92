"""What an instance backup must bring back, told and changed by processes of their own on a real data directory.

`tell` prints everything that people and agents would notice, as JSON; `write` saves and grants until it is stopped.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from access.models import AuditEvent, FolderGrant, Identity
from access.services.create_organization import the_organization
from access.sign_in import PeopleBackend
from core.errors import BrainError
from core.types import EntryLocator, FolderLocator, Role
from kb.services.browse_entries import browse_entries
from kb.services.browse_folders import browse_folders
from kb.services.delete_entry import delete_entry
from kb.services.read_entry import read_entry
from kb.services.update_entry import update_entry
from kb.store import stores
from tests.seed import SeededWorld
from tests.server import ROOT, environment
from tests.world import PASSWORD

PEOPLE = ("root", "ada", "priya", "mallory")
COUNTED = "Counted/count.md"
START = (
    "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'brain.settings'; django.setup(); "
    "from tests.operations.drill import main; main(*sys.argv[1:])"
)


def start(data_dir: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A process of this module on a data directory."""
    return subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        cwd=ROOT,
        env=environment(data_dir),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def told(data_dir: Path, *arguments: str) -> Any:
    """What a process of this module prints, from JSON."""
    process = start(data_dir, *arguments)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(output)


def fill(world: SeededWorld) -> dict[str, str]:
    """People, grants, entries with a past, and tokens; returns the tokens' texts."""
    world.person("ada", role=Role.EDITOR, on="Engineering/Payments")
    world.person("priya", role=Role.READER, on="Engineering")
    world.person("mallory")
    world.service_account("deploy-bot", role=Role.EDITOR, on="Engineering/Payments")
    world.folder("Engineering/Empty")
    world.write("Engineering/Payments/deploy.md", "one\n", title="Deploying", by="ada", tags=("a", "b"))
    world.write("Engineering/Payments/gone.md", "gone\n")
    world.write("Engineering/secret.md", "ünïcödé\n" * 1000)
    for text in ("two\n", "three\n"):
        change(world, "Engineering/Payments/deploy.md", text)
    entry = read_entry(world.system, EntryLocator(path="Engineering/Payments/gone.md")).entry
    delete_entry(world.system, None, EntryLocator(entry_id=entry.entry_id), expected_version=entry.version)
    world.grant("priya", Role.OWNER, "Engineering")
    tokens = {
        "bot": world.token("deploy-bot", name="ci", scopes={"Engineering/Payments": Role.READER}),
        "ada": world.token("ada", name="laptop", expires_in_days=30),
        "mallory": world.token("mallory"),
    }
    world.disable("mallory")
    return tokens


def change(world: SeededWorld, path: str, text: str) -> None:
    entry = read_entry(world.system, EntryLocator(path=path)).entry
    update_entry(world.system, None, EntryLocator(path=path), expected_version=entry.version, content=text)


def tell(world: SeededWorld, tokens: dict[str, str]) -> dict[str, Any]:
    """Everything that must be the same before and after."""
    entries = [entry.as_dict() for entry in all_of(world, browse_entries)]
    return {
        "entries": entries,
        "texts": {entry["path"]: world.text_of(entry["path"]) for entry in entries},
        "folders": [folder.as_dict() for folder in all_of(world, browse_folders)],
        "grants": sorted(
            [row.user.username, row.content_object_id, row.role.word, row.content_object.acl_version]
            for row in FolderGrant.objects.select_related("user", "permission", "content_object")
        ),
        "people": sorted(Identity.objects.values_list("id", "username", "name", "is_active", "is_admin")),
        "passwords": {name: may_come_in(name) for name in PEOPLE},
        "tokens": {name: seen_through(world, token) for name, token in tokens.items()},
        "audit": list(
            AuditEvent.objects.exclude(action__endswith="_instance").values_list(
                "id", "action", "folder_path"
            )
        ),
    }


def may_come_in(username: str) -> bool:
    """Whether the person's password still lets them in."""
    return PeopleBackend().authenticate(None, username=username, password=PASSWORD) is not None


def seen_through(world: SeededWorld, token: str) -> list[str] | str:
    """The paths of the entries that the holder of this token sees, or how it is refused."""
    try:
        principal = world.through(token)
        return [
            entry.path
            for entry in browse_entries(principal, FolderLocator(), recursive=True, limit=100).items
        ]
    except BrainError as refused:
        return refused.code


def all_of(world: SeededWorld, browse: Any) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        page = browse(world.system, FolderLocator(), recursive=True, limit=100, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def write(world: SeededWorld) -> None:
    """Save a number, then change a grant on the same folder, again and again: the folder's version counts along.

    Prints each number once both are done.
    """
    world.person("counter")
    world.write(COUNTED, "0\n")
    number = 0
    while True:
        number += 1
        change(world, COUNTED, f"{number}\n")
        world.grant("counter", Role.READER if number % 2 else Role.EDITOR, "Counted")
        world.write(f"Counted/page {number}.md", f"text {number}\n" * 500)
        print(number, flush=True)  # noqa: T201


def counted(world: SeededWorld) -> dict[str, int]:
    """The number that was saved, and how often the grants of its folder were changed."""
    pages = [path for path in (entry.path for entry in all_of(world, browse_entries)) if "page" in path]
    return {
        "saved": int(world.text_of(COUNTED)),
        "granted": world.acl_version("Counted"),
        "pages": len(pages),
    }


def main(what: str, *arguments: str) -> None:
    """One of the above."""
    assert the_organization() is not None
    world = SeededWorld()
    answer: Any = None
    match what:
        case "fill":
            answer = fill(world)
        case "tell":
            answer = tell(world, json.loads(arguments[0]))
        case "write":
            write(world)
        case "counted":
            answer = counted(world)
    print(json.dumps(answer))  # noqa: T201
    stores.close_all()
