"""Which tools and actions each kind of connection sees, and that what it does not see does not exist for it."""

import json
from typing import Any

import pytest

from access.services.revoke_token import revoke_token
from core.types import Capability, ConnectionKind, Role
from mcpapi import catalog
from tests.mcpapi.agent import Agent
from tests.mcpapi.callers import KINDS
from tests.world import World

READING = {
    "browse_knowledgebase": ["folders", "entries"],
    "read_knowledgebase": ["read", "search"],
    "manage_knowledgebase_access": ["inspect"],
}
WRITING = {**READING, "update_knowledgebase": ["create", "update", "delete", "create_folder"]}
MANAGING = {
    **WRITING,
    "manage_knowledgebase_access": [
        "inspect",
        "explain",
        "list",
        "grant",
        "revoke",
        "create_service_account",
        "disable_service_account",
    ],
}


def seen(tools: list[Any]) -> dict[str, list[str]]:
    return {tool["name"]: tool["inputSchema"]["properties"]["action"]["enum"] for tool in tools}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_connection_sees_what_the_contract_says(kind: str) -> None:
    expected = READING if kind.startswith("read") or kind.endswith("read") else WRITING
    if kind in ("session", "write"):
        expected = MANAGING

    assert seen(catalog.listing(KINDS[kind])) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_that_only_reads_for_this_connection_says_so(kind: str) -> None:
    for tool in catalog.listing(KINDS[kind]):
        actions = tool["inputSchema"]["properties"]["action"]["enum"]
        only_reads = set(actions) <= set(READING.get(tool["name"], []))
        assert tool["annotations"]["readOnlyHint"] is only_reads


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_is_shown_only_where_an_action_takes_it(kind: str) -> None:
    for tool in catalog.TOOLS:
        actions = catalog.visible_actions(tool, KINDS[kind])
        fields = {name for action in actions for name in action.arguments.model_fields}
        for listed in catalog.listing(KINDS[kind]):
            if listed["name"] == tool.name:
                assert set(listed["inputSchema"]["properties"]) == fields


def test_the_order_of_the_tools_is_always_the_same() -> None:
    order = [tool.name for tool in catalog.TOOLS]

    for principal in KINDS.values():
        listed = [tool["name"] for tool in catalog.listing(principal)]
        assert listed == [name for name in order if name in listed]


@pytest.mark.parametrize(
    ("capability", "kind", "scopes", "expected"),
    [
        (Capability.WRITE, ConnectionKind.EXTERNAL, None, MANAGING),
        (Capability.WRITE, ConnectionKind.EXTERNAL, {"Eng": Role.EDITOR}, WRITING),
        (Capability.WRITE, ConnectionKind.EXTERNAL, {}, WRITING),
        (Capability.READ, ConnectionKind.EXTERNAL, None, READING),
        (Capability.READ, ConnectionKind.EXTERNAL, {"Eng": Role.READER}, READING),
        (Capability.WRITE, ConnectionKind.MANAGED, None, WRITING),
        (Capability.READ, ConnectionKind.MANAGED, None, READING),
    ],
)
def test_a_token_sees_the_same_over_the_wire(
    world: World,
    ada: Agent,
    capability: Capability,
    kind: ConnectionKind,
    scopes: dict[str, Role] | None,
    expected: dict[str, list[str]],
) -> None:
    ada.token = world.token("ada", capability=capability, kind=kind, scopes=scopes)

    assert seen(ada.tools()) == expected


def test_an_administrators_and_a_service_accounts_tokens_see_by_their_connection(
    world: World, ada: Agent
) -> None:
    world.person("root", is_admin=True)
    world.service_account("deploy-bot")

    for username in ("root", "deploy-bot"):
        ada.token = world.token(username, capability=Capability.WRITE)
        assert seen(ada.tools()) == MANAGING
        ada.token = world.token(username, capability=Capability.READ)
        assert seen(ada.tools()) == READING


def test_a_hidden_tool_is_refused_although_the_arguments_are_right(world: World, ada: Agent) -> None:
    world.entry("Eng/Deploy.md", "old\n")
    reader = Agent(world.token("ada", capability=Capability.READ), ada.era)
    version = reader.read(path="Eng/Deploy.md")["version"]
    arguments = {
        "action": "update",
        "request_id": "r",
        "path": "Eng/Deploy.md",
        "expected_version": version,
        "content": "new\n",
    }

    reply = reader.request("tools/call", {"name": "update_knowledgebase", "arguments": arguments})

    assert reply.json["error"]["code"] == -32602
    assert world.text_of("Eng/Deploy.md") == "old\n"


@pytest.mark.parametrize(
    "narrowed",
    [
        {"scopes": {"Eng": Role.EDITOR}},
        {"scopes": {}},
        {"kind": ConnectionKind.MANAGED},
        {"capability": Capability.READ},
    ],
)
def test_a_hidden_action_is_refused_like_one_that_does_not_exist(
    world: World, ada: Agent, narrowed: dict[str, Any]
) -> None:
    world.grant("ada", Role.OWNER, "Eng")
    tool = "manage_knowledgebase_access"
    whole = Agent(world.token("ada"), ada.era).call(tool, action="list", what="folders")
    assert [folder["path"] for folder in whole["folders"]] == ["Eng"]
    ada.token = world.token("ada", **narrowed)

    hidden = ada.call(tool, action="list", what="folders")

    assert hidden == ada.call(tool, action="dance", what="folders")
    assert hidden["error"]["details"]["field"] == "action"


def test_between_list_and_call_a_revoked_token_ends(world: World, ada: Agent) -> None:
    assert "update_knowledgebase" in seen(ada.tools())
    assert ada.token is not None

    revoke_token(world.system, world.connection(ada.token).id)

    reply = ada.request("tools/call", {"name": "browse_knowledgebase", "arguments": {"action": "folders"}})
    assert reply.status == 401


def test_between_list_and_call_a_revoked_grant_bites(world: World, ada: Agent) -> None:
    world.entry("Eng/Deploy.md", "text\n")
    assert ada.read(path="Eng/Deploy.md")["content"] == "text\n"

    world.revoke("ada", "Eng")

    assert ada.read(path="Eng/Deploy.md") == ada.read(path="Eng/missing.md")
    assert ada.browse(action="entries", recursive=True)["entries"] == []


def test_the_schemas_alone_carry_an_agent_from_nothing_to_an_update(world: World, ada: Agent) -> None:
    """A fresh client that knows nothing but the listing creates, reads and updates at the first try."""
    schemas = {tool["name"]: tool["inputSchema"]["properties"] for tool in ada.tools()}

    def fitting(tool: str, given: dict[str, Any]) -> dict[str, Any]:
        assert set(given) <= set(schemas[tool]), "a field that the listing does not show"
        return ada.call(tool, **given)

    created = fitting(
        "update_knowledgebase",
        {
            "action": "create",
            "request_id": "one",
            "folder_path": "Eng",
            "filename": "Runbook.md",
            "type": "note",
            "title": "Runbook",
            "content": "# Runbook\n",
        },
    )
    read = fitting("read_knowledgebase", {"action": "read", "path": created["entry"]["path"]})
    updated = fitting(
        "update_knowledgebase",
        {
            "action": "update",
            "request_id": "two",
            "entry_id": read["entry"]["entry_id"],
            "expected_version": read["version"],
            "content": "# Runbook\n\nCall Ada.\n",
            "metadata": {"tags": ["oncall"]},
            "reason": "Say whom to call.",
        },
    )

    assert updated["changed"] is True
    assert world.text_of("Eng/Runbook.md") == "# Runbook\n\nCall Ada.\n"


def test_every_field_that_is_listed_is_taken_by_the_server(ada: Agent) -> None:
    for tool in ada.tools():
        fields = tool["inputSchema"]["properties"]
        for action in fields["action"]["enum"]:
            taken = {
                name: schema
                for name, schema in fields.items()
                if name == "action"
                or action in schema["description"].partition(":")[0].replace(",", " ").split()
            }
            answer = ada.call(tool["name"], action=action, bogus=1)
            told = answer["error"]["details"]["problem"]
            assert set(told.partition("takes: ")[2].rstrip(".").split(", ")) == set(taken)


def test_a_listing_says_nothing_that_depends_on_content(world: World, ada: Agent) -> None:
    before = json.dumps(ada.tools())

    world.entry("Eng/Deploy.md", "text\n")
    world.grant("ada", Role.OWNER, "Eng")

    assert json.dumps(ada.tools()) == before
