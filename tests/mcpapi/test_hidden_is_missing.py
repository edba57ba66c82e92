"""What a caller may not see answers like what does not exist: same bytes, same queries, same log events."""

import io
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.types import Role
from tests.mcpapi.agent import Agent, Era, Reply
from tests.world import World

HIDDEN = "Secret/Plans/Codes.md"
MISSING = "Secret/Plans/Nothing.md"


def ask(agent: Agent, tool: str, **arguments: Any) -> Reply:
    """The whole reply, with an id of its own that does not count."""
    message = agent.message("tools/call", {"name": tool, "arguments": arguments}) | {"id": 1}
    return agent.send(json.dumps(message).encode(), agent.headers("tools/call", {"name": tool}))


@pytest.fixture
def mallory(world: World, era: Era) -> Agent:
    """Somebody with a token and no grant but one that has nothing to do with the story."""
    world.entry(HIDDEN, "the codes\n")
    world.folder("Open")
    world.person("mallory", role=Role.EDITOR, on="Open")
    agent = Agent(world.token("mallory"), era)
    agent.browse(action="folders")
    return agent


def calls(world: World) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Tool, arguments that name what is hidden, the same arguments naming what is missing."""
    entry = world.entry("Secret/Other.md", "x\n")
    folder = world.folder("Secret/Plans")
    update = {"action": "update", "request_id": "u", "expected_version": entry.version, "content": "y\n"}
    delete = {"action": "delete", "request_id": "d", "expected_version": entry.version}
    create = {
        "action": "create",
        "request_id": "c",
        "filename": "New.md",
        "type": "note",
        "title": "New",
        "content": "",
    }
    by_path: list[tuple[str, dict[str, Any]]] = [
        ("read_knowledgebase", {"action": "read"}),
        ("read_knowledgebase", {"action": "read", "start_line": 1, "end_line": 1}),
        ("read_knowledgebase", {"action": "read", "start_line": 99, "end_line": 99}),
        ("update_knowledgebase", update),
        ("update_knowledgebase", delete),
    ]
    by_folder: list[tuple[str, dict[str, Any]]] = [
        ("browse_knowledgebase", {"action": "folders"}),
        ("browse_knowledgebase", {"action": "entries", "recursive": True}),
        ("update_knowledgebase", create),
        ("update_knowledgebase", {**create, "filename": "Codes.md"}),
        ("update_knowledgebase", {"action": "create_folder", "request_id": "f", "name": "A"}),
        ("manage_knowledgebase_access", {"action": "inspect"}),
        ("manage_knowledgebase_access", {"action": "explain"}),
        ("manage_knowledgebase_access", {"action": "explain", "role": "owner"}),
        ("manage_knowledgebase_access", {"action": "explain", "identity_id": world.identity("mallory").id}),
        ("manage_knowledgebase_access", {"action": "explain", "identity_id": "idn_nobody"}),
        *(
            ("manage_knowledgebase_access", {**change, "identity_id": identity_id})
            for identity_id in (world.identity("mallory").id, "idn_nobody")
            for change in (
                {"action": "grant", "request_id": "g", "role": "reader", "expected_acl_version": 0},
                {"action": "revoke", "request_id": "g", "expected_acl_version": 9},
            )
        ),
    ]
    return [
        *((tool, {**given, "path": HIDDEN}, {**given, "path": MISSING}) for tool, given in by_path),
        *(
            (tool, {**given, "path": HIDDEN.upper()}, {**given, "path": MISSING.upper()})
            for tool, given in by_path
        ),
        *(
            (tool, {**given, "entry_id": entry.entry_id}, {**given, "entry_id": "ent_none"})
            for tool, given in by_path
        ),
        *(
            (tool, {**given, "folder_path": "Secret"}, {**given, "folder_path": "Nothing"})
            for tool, given in by_folder
        ),
        *(
            (tool, {**given, "folder_id": folder.id}, {**given, "folder_id": "fld_none"})
            for tool, given in by_folder
        ),
    ]


def shape_of(log: str) -> list[str]:
    """The log's events without what is different in each call."""
    return re.sub(r'"(request|timestamp|milliseconds)": ("[^"]*"|[\d.]+)', "", log).splitlines()


def test_hidden_answers_as_missing(world: World, mallory: Agent, written: io.StringIO) -> None:
    for tool, hidden, missing in calls(world):
        seen = []
        for arguments in (hidden, missing):
            written.seek(0)
            written.truncate()
            with CaptureQueriesContext(connection) as queries:
                reply = ask(mallory, tool, **arguments)
            statements = [re.sub(r"'[^']*'", "", query["sql"]) for query in queries.captured_queries]
            headers = {key: value for key, value in reply.headers.items() if key != "content-security-policy"}
            seen.append((reply.status, headers, reply.body, statements, shape_of(written.getvalue())))
        assert seen[0] == seen[1], (tool, hidden)
        assert json.loads(seen[0][2])["result"]["structuredContent"]["error"]["code"] == "NOT_FOUND"


def test_nothing_of_what_is_hidden_is_listed(world: World, mallory: Agent) -> None:
    bare = [
        ask(mallory, "browse_knowledgebase", action="folders", recursive=True),
        ask(mallory, "browse_knowledgebase", action="entries", recursive=True),
    ]
    for reply in bare:
        assert b"Secret" not in reply.body
        assert b"Codes" not in reply.body

    for number in range(5):
        world.entry(f"Secret/More{number}/Page.md", "text\n")

    again = [
        ask(mallory, "browse_knowledgebase", action="folders", recursive=True),
        ask(mallory, "browse_knowledgebase", action="entries", recursive=True),
    ]
    assert [reply.body for reply in again] == [reply.body for reply in bare]


def test_a_cap_hides_as_a_missing_grant_does(world: World, era: Era) -> None:
    world.entry("Pay/Checkout/A.md", "a\n")
    world.entry("Pay/Billing/B.md", "b\n")
    world.person("priya", role=Role.READER, on="Pay")
    agent = Agent(world.token("priya", scopes={"Pay/Checkout": Role.READER}), era)

    assert agent.read(path="Pay/Checkout/A.md")["content"] == "a\n"
    assert agent.read(path="Pay/Billing/B.md") == agent.read(path="Pay/Billing/none.md")
    folders = agent.browse(action="folders", recursive=True)["folders"]
    assert [(folder["path"], folder["role"]) for folder in folders] == [
        ("Pay", None),
        ("Pay/Checkout", "reader"),
    ]


def test_the_same_number_of_queries_for_every_read(world: World, ada: Agent) -> None:
    """One to know who asks, one to know what they may see; however deep, however many."""
    deep = "Eng/" + "/".join(f"L{level}" for level in range(20))
    world.entry(f"{deep}/Page.md", "text\n")
    for number in range(5):
        world.entry(f"Eng/{number}.md", "text\n")
    for folder in ("Pay", "Hr", "Ops"):
        world.folder(folder)
        world.grant("ada", Role.READER, folder)
    ada.browse(action="folders")

    for tool, arguments in (
        ("read_knowledgebase", {"action": "read", "path": f"{deep}/Page.md"}),
        ("read_knowledgebase", {"action": "read", "path": "Eng/0.md"}),
        ("browse_knowledgebase", {"action": "entries", "recursive": True}),
        ("browse_knowledgebase", {"action": "folders", "recursive": True}),
    ):
        with CaptureQueriesContext(connection) as queries:
            ask(ada, tool, **arguments)
        assert len(queries) == 2, (tool, [query["sql"] for query in queries.captured_queries])
