"""What went wrong in projects that do a similar job, tried here through MCP as their users would have."""

from typing import Any

import pytest

from access.services.revoke_token import revoke_token
from core import ids
from core.types import Capability, MutationRequest, Role
from kb.store.stores import store_of
from tests.mcpapi.agent import ERAS, Agent, Era
from tests.mcpapi.test_error_codes import create, held
from tests.world import World


def test_creating_a_note_that_exists_keeps_the_day_that_was_written(world: World, ada: Agent) -> None:
    """D1 (basic-memory #625)."""
    written = world.entry("Eng/Daily.md", "# Monday\n\nA whole day of notes.\n")
    listed = ada.browse(action="entries", folder_path="Eng")

    refused = ada.update(**create(filename="Daily.md", content="# Empty\n", request_id="another"))

    assert refused["error"]["code"] == "NAME_CONFLICT"
    assert world.text_of("Eng/Daily.md") == "# Monday\n\nA whole day of notes.\n"
    assert ada.browse(action="entries", folder_path="Eng") == listed
    assert ada.read(path="Eng/Daily.md")["version"] == written.version


def test_of_two_agents_who_read_the_same_version_the_second_is_told(world: World, era: Era) -> None:
    """D2 (gbrain #4503)."""
    world.entry("Pay/Deploy.md", "old\n")
    agents = []
    for name in ("ada", "deploy-bot"):
        if name == "ada":
            world.person(name, role=Role.EDITOR, on="Pay")
        else:
            world.service_account(name, role=Role.EDITOR, on="Pay")
        agents.append(Agent(world.token(name), era))
    seen_by_both = [agent.read(path="Pay/Deploy.md")["version"] for agent in agents]

    answers = [
        agent.update(
            action="update",
            request_id="change",
            path="Pay/Deploy.md",
            expected_version=version,
            content=f"from {number}\n",
        )
        for number, (agent, version) in enumerate(zip(agents, seen_by_both, strict=True))
    ]

    assert answers[0]["changed"] is True
    assert answers[1]["error"]["code"] == "VERSION_CONFLICT"
    assert answers[1]["error"]["details"]["current_version"] == answers[0]["entry"]["version"]
    assert world.text_of("Pay/Deploy.md") == "from 0\n"


def test_every_way_of_reading_gives_the_version_that_an_update_needs(world: World, ada: Agent) -> None:
    """D4 (github-mcp-server #595): no agent has to delete and recreate."""
    world.entry("Eng/Deploy.md", "one\ntwo\nthree\n")

    def versions() -> list[str]:
        listed = ada.browse(action="entries", folder_path="Eng")["entries"][0]
        whole = ada.read(path="Eng/Deploy.md")
        lines = ada.read(entry_id=whole["entry"]["entry_id"], start_line=2, end_line=2)
        return [
            listed["version"],
            whole["version"],
            whole["entry"]["version"],
            lines["version"],
            lines["entry"]["version"],
        ]

    for number in range(len(versions())):
        found = versions()
        assert len(set(found)) == 1
        updated = ada.update(
            action="update",
            request_id=f"u{number}",
            path="Eng/Deploy.md",
            expected_version=found[number],
            content=f"one\ntwo\n{number}\n",
        )
        assert updated["changed"] is True
        assert updated["entry"]["version"] != found[number]


def test_a_narrowed_token_is_told_of_nothing_beside_its_folder(world: World, era: Era) -> None:
    """D6 (gbrain #4433)."""
    for path in ("Pay/Checkout/A.md", "Pay/Billing/B.md", "Hr/Salaries.md", "Pay/Overview.md"):
        world.entry(path, "text\n")
    world.person("root", is_admin=True)
    agent = Agent(world.token("root", scopes={"Pay/Checkout": Role.EDITOR}), era)

    folders = agent.browse(action="folders", recursive=True)["folders"]
    entries = agent.browse(action="entries", recursive=True)["entries"]
    told = agent.inspect(folder_path="Pay/Checkout")

    assert [(folder["path"], folder["role"], folder["has_children"]) for folder in folders] == [
        ("Pay", None, True),
        ("Pay/Checkout", "editor", False),
    ]
    assert [entry["path"] for entry in entries] == ["Pay/Checkout/A.md"]
    assert (told["role"], told["acl_version"], told["grants"]) == ("editor", None, None)
    assert agent.inspect(folder_path="Pay") == agent.inspect(folder_path="Nothing")
    assert agent.inspect()["folder"] is None
    for word in ("Billing", "Hr", "Salaries", "Overview"):
        assert word not in str([folders, entries, told, agent.inspect()])


def test_a_reply_that_was_lost_is_asked_for_again_and_makes_no_copy(world: World, ada: Agent) -> None:
    """D11 (mcp-logseq #58)."""
    first = ada.update(**create())

    again = [ada.update(**create()) for _ in range(3)]
    other = ada.update(**create(content="another text\n"))

    assert again == [first, first, first]
    assert other["error"]["code"] == "REQUEST_ID_REUSE"
    assert [entry["path"] for entry in ada.browse(action="entries", folder_path="Eng")["entries"]] == [
        "Eng/New.md"
    ]


def test_a_request_repeated_in_the_other_era_is_the_same_request(world: World, ada: Agent) -> None:
    first = ada.update(**create())

    for era in ERAS:
        assert Agent(ada.token, era).update(**create()) == first


def test_a_token_that_may_only_read_reads_everything_it_may_and_is_told_why_it_cannot_write(
    world: World, era: Era
) -> None:
    """D13 (outline #12222): a Reader's token is no bad credential."""
    world.entry("Pay/Checkout.md", "text\n")
    world.person("ada", role=Role.EDITOR, on="Pay")
    token = world.token("ada", scopes={"Pay": Role.READER})
    agent = Agent(token, era)

    assert agent.browse(action="folders")["folders"][0]["role"] == "reader"
    assert agent.browse(action="entries", folder_path="Pay")["entries"]
    version = agent.read(path="Pay/Checkout.md")["version"]
    assert agent.inspect(folder_path="Pay")["role"] == "reader"
    writes: list[dict[str, Any]] = [
        create(folder_path="Pay"),
        {
            "action": "update",
            "request_id": "u",
            "path": "Pay/Checkout.md",
            "expected_version": version,
            "content": "",
        },
        {"action": "delete", "request_id": "d", "path": "Pay/Checkout.md", "expected_version": version},
        {"action": "create_folder", "request_id": "f", "folder_path": "Pay", "name": "A"},
    ]
    for arguments in writes:
        assert agent.update(**arguments)["error"]["code"] == "FORBIDDEN"

    revoke_token(world.system, world.connection(token).id)

    reply = agent.request(
        "tools/call",
        {"name": "read_knowledgebase", "arguments": {"action": "read", "path": "Pay/Checkout.md"}},
    )
    assert reply.status == 401
    assert b"text" not in reply.body


@pytest.mark.parametrize("capability", list(Capability))
@pytest.mark.parametrize("role", list(Role))
def test_no_tools_schema_hides_the_others(world: World, era: Era, role: Role, capability: Capability) -> None:
    """D15 (claude-code #88049): what one client cannot read in one schema must not cost all tools."""
    world.person("ada", role=role, on="Eng")
    agent = Agent(world.token("ada", capability=capability), era)

    for tool in agent.tools():
        assert tool["inputSchema"]["type"] == "object"
        assert not {"oneOf", "anyOf", "allOf", "not", "if", "$ref", "enum"} & set(tool["inputSchema"])


def test_two_calls_with_one_request_id_at_once_make_one_change(world: World, ada: Agent) -> None:
    """D11, at the same moment: the one that is late is told to come back."""
    key = ids.request_key(
        organization_id=world.organization_id,
        identity_id=world.identity("ada").id,
        tool="update_knowledgebase",
        request_id="new",
    )
    with held(lambda: store_of(world.organization_id).claim(MutationRequest(key, ""))):
        late = ada.update(**create())

    assert (late["error"]["code"], late["error"]["retryable"]) == ("REQUEST_IN_PROGRESS", True)
    assert "entry" in ada.update(**create())
