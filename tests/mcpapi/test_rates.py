"""How much a token may do in how short a time, on the wire and over the workers of a real server."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from access import throttle
from core import rates
from core.types import Role
from mcpapi import dispatch
from tests.mcpapi.agent import ERAS, Agent, Era, through_network
from tests.server import manage, running_brain
from tests.world import World


def create(number: int, size: int = 5) -> dict[str, Any]:
    return {
        "action": "create",
        "request_id": f"new{number}",
        "folder_path": "Eng",
        "filename": f"New{number}.md",
        "type": "note",
        "title": "New",
        "content": "x" * size,
    }


def test_a_call_too_many_is_a_result_that_says_when_to_come_back(
    world: World, ada: Agent, settings: Settings
) -> None:
    settings.CALLS_PER_MINUTE = 3
    for _ in range(3):
        assert "error" not in ada.browse(action="folders")

    reply = ada.request("tools/call", {"name": "browse_knowledgebase", "arguments": {"action": "folders"}})

    error = ada.result(reply)["error"]
    wait = error.pop("retry_after_seconds")
    assert 54 <= wait <= 66
    assert error.pop("message")
    assert error == {
        "code": "RATE_LIMITED",
        "retryable": True,
        "details": {"rate": "calls", "limit": 3, "per_seconds": 60},
    }
    assert reply.status == 200


def test_the_rate_comes_after_the_credential_and_before_all_else(
    world: World, ada: Agent, settings: Settings
) -> None:
    settings.CALLS_PER_MINUTE = 1
    ada.browse(action="folders")

    for name, arguments in (
        ("no_such_tool", {}),
        ("browse_knowledgebase", {"action": "bogus"}),
        ("update_knowledgebase", {}),
        ("read_knowledgebase", {"action": "read", "path": "Eng/none.md"}),
    ):
        assert ada.call(name, **arguments)["error"]["code"] == "RATE_LIMITED", name
    assert Agent("brn_" + "x" * 43, ada.era).request("tools/list").status == 401


def test_what_is_no_call_of_a_tool_is_refused_with_429(world: World, ada: Agent, settings: Settings) -> None:
    settings.CALLS_PER_MINUTE = 1
    ada.tools()

    reply = ada.request("tools/list")

    assert reply.status == 429
    assert int(reply.headers["retry-after"]) == reply.json["error"]["retry_after_seconds"]
    assert reply.json["error"]["code"] == "RATE_LIMITED"


def test_each_token_has_a_rate_of_its_own(world: World, ada: Agent, settings: Settings) -> None:
    settings.CALLS_PER_MINUTE = 1
    ada.browse(action="folders")

    other = Agent(world.token("ada", name="desk"), ada.era)

    assert "error" not in other.browse(action="folders")
    assert ada.browse(action="folders")["error"]["code"] == "RATE_LIMITED"


def test_after_its_bytes_a_token_reads_but_writes_no_more(
    world: World, ada: Agent, settings: Settings
) -> None:
    settings.BYTES_WRITTEN_PER_HOUR = 1_000

    assert "entry" in ada.update(**create(1, 900))
    # What is still within the limit may go past it.
    assert "entry" in ada.update(**create(2, 900))
    refused = ada.update(**create(3))

    assert refused["error"]["code"] == "RATE_LIMITED"
    assert refused["error"]["details"] == {"rate": "bytes written", "limit": 1_000, "per_seconds": 3_600}
    assert 3_000 < refused["error"]["retry_after_seconds"] <= 3_960
    assert ada.read(path="Eng/New2.md")["total_lines"] == 1
    assert ada.read(path="Eng/New3.md")["error"]["code"] == "NOT_FOUND"
    assert ada.update(action="bogus")["error"]["code"] == "RATE_LIMITED"
    other = Agent(world.token("ada", name="desk"), ada.era)
    assert "entry" in other.update(**create(3))


def test_what_counts_is_what_a_change_puts_into_the_store(
    world: World, ada: Agent, settings: Settings
) -> None:
    settings.BYTES_WRITTEN_PER_HOUR = 1_000
    entry = ada.update(**create(1, 400))["entry"]

    # Repeated, refused, tried out, unchanged and without text: none of it writes.
    assert ada.update(**create(1, 400))["entry"] == entry
    assert "error" in ada.update(**create(2) | {"folder_path": "Nowhere"})
    change = {"action": "update", "path": "Eng/New1.md", "expected_version": entry["version"]}
    assert ada.update(**change, content="y" * 400, dry_run=True)["changed"]
    assert not ada.update(**change, content="x" * 400, request_id="same")["changed"]
    entry = ada.update(**change, metadata={"title": "Other"}, request_id="title")["entry"]
    # An edit of one letter writes the whole entry.
    change["expected_version"] = entry["version"]
    edits = [{"old_text": "x" * 400, "new_text": "x" * 399 + "y"}]
    entry = ada.update(**change, edits=edits, request_id="edit")["entry"]
    change["expected_version"] = entry["version"]

    assert "entry" in ada.update(**change, content="z" * 300, request_id="over")
    assert ada.update(**create(4))["error"]["code"] == "RATE_LIMITED"


def test_a_large_body_that_is_refused_takes_no_place(world: World, ada: Agent, settings: Settings) -> None:
    settings.CALLS_PER_MINUTE = 1
    principal = world.through(str(ada.token))

    with dispatch.admitted(principal, 10) as first, dispatch.admitted(principal, 2**24) as second:
        assert first is None
        assert second is not None
        assert second.code == "RATE_LIMITED"


def test_the_shell_has_no_rate(world: World, settings: Settings) -> None:
    settings.CALLS_PER_MINUTE = 1

    for _ in range(5):
        throttle.admit(world.system)


def test_a_persons_pages_have_the_rate_of_one_connection(world: World, settings: Settings) -> None:
    world.person("ada", role=Role.READER)
    world.person("bo", role=Role.READER)
    settings.CALLS_PER_MINUTE = 2
    ada, bo = Client(), Client()
    ada.force_login(world.identity("ada"))
    bo.force_login(world.identity("bo"))

    assert [ada.get("/files/").status_code for _ in range(4)] == [200, 200, 429, 429]

    refused = ada.get("/files/")
    assert int(refused["Retry-After"]) >= 54
    assert f"Wait {refused['Retry-After']} seconds" in refused.content.decode()
    assert bo.get("/files/").status_code == 200
    # Without a session nobody is counted, and an agent's door knows no session.
    assert [Client().get("/login/").status_code for _ in range(4)] == [200] * 4
    assert ada.post("/mcp", content_type="application/json").status_code == 401


@pytest.mark.server
def test_the_workers_of_a_server_count_together(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with running_brain(data_dir, BRAIN_WORKERS="3", BRAIN_CALLS_PER_MINUTE="40") as brain:
        port = int(brain.url.rpartition(":")[2])
        eras: list[Era] = list(ERAS)
        agents = [Agent(brain.token, era, through_network(port)) for era in eras]

        # Each on a connection of its own, so that they spread over the workers.
        answers = [agents[number % 2].browse(action="folders") for number in range(60)]

        codes = [answer.get("error", {}).get("code", "ok") for answer in answers]
        other = manage(
            data_dir, "create_token", "admin", "--name", "n", "--capability", "read"
        ).stdout.strip()
        assert "error" not in Agent(other, "modern", through_network(port)).browse(action="folders")
    assert codes == ["ok"] * 40 + ["RATE_LIMITED"] * 20


def test_each_worker_gets_a_row_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from brain import gunicorn_config

    class Worker:
        row: int | None

    monkeypatch.setattr(gunicorn_config, "_rows", rates.Rows())
    first, second, third = Worker(), Worker(), Worker()
    gunicorn_config.pre_fork(None, first)
    gunicorn_config.pre_fork(None, second)
    gunicorn_config.child_exit(None, first)
    gunicorn_config.pre_fork(None, third)

    assert (first.row, second.row, third.row) == (0, 1, 0)
