"""One dispatcher behind every way: the same answer, one place for refusals, and nothing told of a bug."""

import io
import json
import subprocess
import sys
import threading
from typing import Any
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from core import limits, locks
from core.types import EntryLocator, Role
from kb.services.read_entry import read_entry
from mcpapi import dispatch, envelope
from mcpapi.envelope import UnknownTool
from mcpapi.tools import read_knowledgebase
from tests.mcpapi.agent import ERAS, Agent
from tests.server import ROOT, environment
from tests.world import World

SECRET = "the launch codes"


def anonymous(answer: Any) -> Any:
    """The answer without what differs from call to call: times, ids, versions, cursors."""
    if isinstance(answer, dict):
        return {
            key: "…" if isinstance(value, str) and key in DIFFERING else anonymous(value)
            for key, value in answer.items()
        }
    return [anonymous(item) for item in answer] if isinstance(answer, list) else answer


DIFFERING = {"entry_id", "folder_id", "version", "created_at", "updated_at", "deletion_id", "next_cursor"}
DIFFERING |= {"current_version"}

# Each action as it succeeds and as it is refused. {n} makes names and request ids of one way of calling its own.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("browse_knowledgebase", {"action": "folders"}),
    ("browse_knowledgebase", {"action": "folders", "folder_path": "Eng", "recursive": True}),
    ("browse_knowledgebase", {"action": "folders", "folder_path": "Secret"}),
    ("browse_knowledgebase", {"action": "entries", "folder_path": "Eng", "limit": 1}),
    ("browse_knowledgebase", {"action": "entries", "limit": 0}),
    ("read_knowledgebase", {"action": "read", "path": "Eng/Deploy.md"}),
    ("read_knowledgebase", {"action": "read", "path": "Eng/Deploy.md", "start_line": 2, "end_line": 2}),
    ("read_knowledgebase", {"action": "read", "path": "Eng/Deploy.md", "start_line": 9, "end_line": 9}),
    ("read_knowledgebase", {"action": "read", "path": "Eng/none.md"}),
    ("read_knowledgebase", {"action": "search"}),
    ("manage_knowledgebase_access", {"action": "inspect"}),
    ("manage_knowledgebase_access", {"action": "inspect", "folder_path": "Eng"}),
    ("manage_knowledgebase_access", {"action": "inspect", "folder_path": "Secret"}),
    ("manage_knowledgebase_access", {"action": "explain", "folder_path": "Eng", "role": "owner"}),
    ("manage_knowledgebase_access", {"action": "explain", "folder_path": "Secret"}),
    ("manage_knowledgebase_access", {"action": "list", "what": "folders"}),
    (
        "manage_knowledgebase_access",
        {
            "action": "grant",
            "request_id": "g{n}",
            "folder_path": "Eng",
            "identity_id": "idn_nobody",
            "role": "reader",
            "expected_acl_version": 1,
        },
    ),
    (
        "manage_knowledgebase_access",
        {"action": "disable_service_account", "request_id": "g{n}", "identity_id": "idn_nobody"},
    ),
    (
        "update_knowledgebase",
        {"action": "create_folder", "request_id": "f{n}", "folder_path": "Eng", "name": "F{n}"},
    ),
    (
        "update_knowledgebase",
        {
            "action": "create",
            "request_id": "c{n}",
            "folder_path": "Eng/F{n}",
            "filename": "New.md",
            "type": "note",
            "title": "New",
            "content": "ä😀\n",
        },
    ),
    (
        "update_knowledgebase",
        {
            "action": "create",
            "request_id": "d{n}",
            "folder_path": "Eng/F{n}",
            "filename": "new.md",
            "type": "note",
            "title": "New",
            "content": "",
        },
    ),
    (
        "update_knowledgebase",
        {
            "action": "update",
            "request_id": "u{n}",
            "path": "Eng/F{n}/New.md",
            "expected_version": "v{n}",
            "content": "",
        },
    ),
    (
        "update_knowledgebase",
        {"action": "delete", "request_id": "u{n}", "path": "Eng/F{n}/New.md", "expected_version": "v{n}"},
    ),
]


@pytest.fixture
def token(world: World) -> str:
    """Ada's, who edits Eng and does not see Secret."""
    world.entry("Eng/Deploy.md", "one\ntwo\n")
    world.entry("Eng/Rollback.md", "")
    world.entry("Secret/Codes.md", SECRET)
    world.person("ada", role=Role.EDITOR, on="Eng")
    return world.token("ada")


def test_every_call_is_answered_alike_on_every_way(world: World, token: str) -> None:
    agents = [Agent(token, era) for era in ERAS]

    for tool, arguments in CALLS:
        answers = []
        for way in range(3):
            given = json.loads(json.dumps(arguments).replace("{n}", str(way)))
            if way < len(agents):
                answer = agents[way].call(tool, **given)
            else:
                answer = json.loads(dispatch.call_tool(world.through(token), tool, given).encoded)
            answers.append(json.loads(json.dumps(anonymous(answer)).replace(f"F{way}", "F")))
        assert answers[0] == answers[1] == answers[2], (tool, arguments)


def test_empty_and_null_values_survive_both_eras(token: str) -> None:
    for era in ERAS:
        page = Agent(token, era).browse(action="folders")
        entry = Agent(token, era).read(path="Eng/Rollback.md")

        assert page["next_cursor"] is None
        assert page["folders"][0]["role"] == "editor"
        assert (entry["content"], entry["entry"]["description"], entry["entry"]["tags"]) == ("", "", [])


def test_a_tool_that_breaks_tells_nothing_but_a_reference(world: World, ada: Agent) -> None:
    world.entry("Eng/Deploy.md", SECRET)

    with (
        patch.object(read_knowledgebase, "read_entry", side_effect=RuntimeError(f"{SECRET} {ada.token}")),
        capture_logs() as logs,
    ):
        reply = ada.request(
            "tools/call",
            {"name": "read_knowledgebase", "arguments": {"action": "read", "path": "Eng/Deploy.md"}},
        )

    error = ada.result(reply)["error"]
    assert error["code"] == "INTERNAL_ERROR"
    assert set(error["details"]) == {"reference"}
    assert SECRET.encode() not in reply.body
    assert b"RuntimeError" not in reply.body
    assert b"/" not in reply.body.replace(b"application/json", b"").replace(b"io.modelcontextprotocol/", b"")
    (event,) = [event for event in logs if event["event"] == "tool failed"]
    assert event["reference"] == error["details"]["reference"]


def test_the_log_of_a_broken_tool_has_the_place_but_no_word_of_the_message(
    world: World, ada: Agent, written: io.StringIO
) -> None:
    with patch.object(read_knowledgebase, "read_entry", side_effect=RuntimeError(f"{SECRET} {ada.token}")):
        error = ada.read(path="Eng/Deploy.md")["error"]

    log = written.getvalue()
    assert error["details"]["reference"] in log
    assert "RuntimeError" in log
    assert SECRET not in log
    assert str(ada.token) not in log


def test_a_call_is_logged_without_token_content_or_path(
    world: World, ada: Agent, written: io.StringIO
) -> None:
    ada.update(
        action="create",
        request_id="request-of-ada",
        folder_path="Eng",
        filename="Codes.md",
        type="note",
        title="Codes and more",
        content=SECRET,
    )
    ada.read(path="Eng/Codes.md")
    ada.read(path="Eng/Codes.md", bogus=SECRET)

    log = written.getvalue()
    assert log.count('"event": "tool called"') == 3
    for word in (SECRET, str(ada.token), "Codes.md", "Codes and more", "request-of-ada"):
        assert word not in log


def test_a_service_runs_on_the_thread_of_its_request(world: World, ada: Agent) -> None:
    threads = []

    def read(*args: Any, **kwargs: Any) -> Any:
        threads.append(threading.get_ident())
        return read_entry(*args, **kwargs)

    world.entry("Eng/Deploy.md", "text\n")
    with patch.object(read_knowledgebase, "read_entry", side_effect=read):
        ada.read(path="Eng/Deploy.md")

    assert threads == [threading.get_ident()]


def test_a_large_body_that_finds_no_place_is_told_to_come_back(world: World, ada: Agent) -> None:
    large = "x" * (limits.LARGE_BODY_BYTES + 1)
    arguments = {
        "action": "create",
        "request_id": "big",
        "folder_path": "Eng",
        "filename": "Big.md",
        "type": "note",
        "title": "Big",
        "content": large,
    }
    all_taken = [threading.Event() for _ in range(limits.HEAVY_WORK_MAX)]
    over = threading.Event()

    def hold(taken: threading.Event) -> None:
        with locks.heavy_work():
            taken.set()
            over.wait(60)

    holders = [threading.Thread(target=hold, args=(taken,)) for taken in all_taken]
    for holder in holders:
        holder.start()
    for taken in all_taken:
        assert taken.wait(60)
    try:
        refused = ada.update(**arguments)["error"]
        listed = ada.request("tools/list")
        small = ada.update(**{**arguments, "content": "small"})
    finally:
        over.set()
        for holder in holders:
            holder.join()

    assert (refused["code"], refused["retryable"], refused["retry_after_seconds"]) == (
        "STORAGE_UNAVAILABLE",
        True,
        3,
    )
    assert listed.status == 200
    assert small["entry"]["size_bytes"] == 5
    assert ada.update(**{**arguments, "request_id": "big2", "filename": "Big2.md"})["entry"][
        "size_bytes"
    ] == len(large)


def test_a_large_body_gives_its_place_back(world: World, ada: Agent) -> None:
    padding = " " * limits.LARGE_BODY_BYTES

    for _ in range(2 * limits.HEAVY_WORK_MAX):
        reply = ada.raw_call("browse_knowledgebase", '{"action":"folders"' + padding + "}")
        assert "folders" in ada.result(reply)


def test_a_result_is_encoded_once_and_says_what_it_is() -> None:
    result = envelope.success({"a": (1, "ä"), "b": None})

    assert result.text == '{"a":[1,"ä"],"b":null}'
    assert not result.is_error


def test_the_dispatcher_raises_nothing_but_an_unknown_tool(world: World, token: str) -> None:
    with pytest.raises(UnknownTool):
        dispatch.call_tool(world.through(token), "nothing", {})
    for arguments in ({}, {"action": None}, {"x": object}, {"action": "read", "path": "\ud800"}):
        assert dispatch.call_tool(world.through(token), "read_knowledgebase", arguments).is_error


def test_starting_up_leaves_the_log_as_it_is_configured(data_dir: Any) -> None:
    """The library sets up logging of its own where nobody did; importing it must change nothing here."""
    program = (
        "import django, logging; django.setup();"
        "import mcpapi.http;"
        "root = logging.getLogger();"
        "print(len(root.handlers), type(root.handlers[0].formatter).__module__, root.level);"
        "print([name for name in logging.root.manager.loggerDict"
        " if any(type(handler) is not logging.NullHandler for handler in logging.getLogger(name).handlers)])"
    )
    started = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment(data_dir, DJANGO_SETTINGS_MODULE="brain.settings"),
        capture_output=True,
        text=True,
    )

    assert started.stdout.splitlines() == ["1 structlog.stdlib 20", "[]"], started.stderr


def test_reading_goes_through_the_service_that_pages_use(world: World, token: str) -> None:
    reading = read_entry(world.through(token), EntryLocator(path="Eng/Deploy.md"))

    answer = Agent(token).read(path="Eng/Deploy.md")

    assert answer["content"] == reading.content
    assert answer["version"] == reading.version
    assert answer["entry"]["backup"] == {"state": "not_configured"}
