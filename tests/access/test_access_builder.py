"""What the access chat acts as: it reaches access, and no content, whatever the person may do with content."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from access.authorizer import sight_of
from access.models import AuditEvent, Connection
from access.principals import Principal, access_builder_of
from access.services.grant_role import grant_role
from access.services.inspect_access import inspect_access
from access.services.issue_token import issue_token
from access.services.list_tokens import list_tokens
from access.services.revoke_role import revoke_role
from access.services.revoke_token import revoke_token
from access.services.rotate_token import rotate_token
from core.errors import Forbidden, NotFound, Unauthenticated, VersionConflict
from core.types import Capability, EntryLocator, FolderLocator, Role
from kb.services.browse_entries import browse_entries
from kb.services.browse_folders import browse_folders
from kb.services.create_entry import create_entry
from kb.services.create_folder import create_folder
from kb.services.delete_entry import delete_entry
from kb.services.locate_folder import locate_folder
from kb.services.read_entry import read_entry
from kb.services.reveal_folder import reveal_folder
from kb.services.search_entries import search_entries
from kb.services.update_entry import update_entry
from mcpapi import catalog, dispatch
from mcpapi.envelope import UnknownTool
from tests.world import World

Service = Callable[[Principal, str], Any]

CONTENT: dict[str, Service] = {
    "read": lambda who, path: read_entry(who, EntryLocator(path=path)),
    "search": lambda who, path: search_entries(who, "text"),
    "entries": lambda who, path: browse_entries(who, FolderLocator(folder_path=path.rpartition("/")[0])),
    "folders": lambda who, path: browse_folders(who),
    "reveal": lambda who, path: reveal_folder(who),
    "create": lambda who, path: create_entry(
        who, None, FolderLocator(folder_path="Eng"), filename="New.md", type="note", title="New", content="x"
    ),
    "create folder": lambda who, path: create_folder(who, None, FolderLocator(folder_path="Eng"), name="New"),
    "update": lambda who, path: update_entry(
        who, None, EntryLocator(path=path), expected_version="v", content="other"
    ),
    "try an update": lambda who, path: update_entry(
        who, None, EntryLocator(path=path), expected_version="v", content="other", dry_run=True
    ),
    "delete": lambda who, path: delete_entry(who, None, EntryLocator(path=path), expected_version="v"),
}


@pytest.fixture
def builder(world: World) -> Principal:
    """Of Root, who administers and owns everything."""
    world.entry("Eng/Deploy.md", "text\n")
    world.person("root", is_admin=True, role=Role.OWNER)
    world.person("ada")
    return access_builder_of(world.identity("root"))


@pytest.mark.parametrize("service", CONTENT)
@pytest.mark.parametrize("path", ["Eng/Deploy.md", "Eng/none.md"])
def test_no_service_gives_it_content_present_or_missing(
    world: World, builder: Principal, service: str, path: str
) -> None:
    with pytest.raises(Forbidden):
        CONTENT[service](builder, path)

    assert world.text_of("Eng/Deploy.md") == "text\n"
    # The person themself is not refused like that.
    with suppress(NotFound, VersionConflict):
        CONTENT[service](replace(builder, is_access_builder=False), path)


def test_it_knows_of_one_tool_and_dispatch_asks_again(world: World, builder: Principal) -> None:
    assert [tool["name"] for tool in catalog.listing(builder)] == ["manage_knowledgebase_access"]

    for name in ("browse_knowledgebase", "read_knowledgebase", "update_knowledgebase", "no_such_tool"):
        with pytest.raises(UnknownTool):
            dispatch.call_tool(builder, name, {"action": "folders"})
    answer = dispatch.call_tool(
        builder, "manage_knowledgebase_access", {"action": "inspect", "folder_path": "Eng"}
    )
    assert answer.structured["role"] == "owner"


def test_it_manages_access_as_far_as_the_person_may(world: World, builder: Principal) -> None:
    ada, engineering = world.identity("ada").id, locate_folder(builder, FolderLocator(folder_path="Eng"))

    grant_role(builder, engineering, ada, Role.EDITOR)

    seen = inspect_access(builder, engineering).grants or ()
    assert ("ada", Role.EDITOR) in {(grant.username, grant.role) for grant in seen}
    assert AuditEvent.objects.latest("id").through == "chat"
    revoke_role(builder, engineering, ada)
    adas = access_builder_of(world.identity("ada"))
    with pytest.raises(NotFound):
        grant_role(adas, engineering, ada, Role.OWNER)


def test_it_neither_sees_nor_makes_nor_ends_tokens(world: World, builder: Principal) -> None:
    connection = world.connection(world.token("root"))

    with pytest.raises(Forbidden):
        issue_token(builder, builder.identity_id, name="n", capability=Capability.READ)
    with pytest.raises(Forbidden):
        rotate_token(builder, connection.id)
    with pytest.raises(Forbidden):
        revoke_token(builder, connection.id)
    with pytest.raises(NotFound):
        list_tokens(builder, builder.identity_id)

    assert Connection.objects.get() == connection
    connection.refresh_from_db()
    assert connection.revoked_at is None


def test_it_ends_with_the_person(world: World, builder: Principal) -> None:
    world.disable("root")

    assert not sight_of(builder).is_alive
    world.service_account("deploy-bot")
    with pytest.raises(Unauthenticated):
        access_builder_of(world.identity("deploy-bot"))
