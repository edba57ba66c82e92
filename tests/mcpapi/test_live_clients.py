"""Other makers' clients against a real server: they list, create, read and update without being told how."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from mcpapi import introduction
from tests.mcpapi.clients import CLIENTS, Run, inspect
from tests.mcpapi.live import Live, live
from tests.server import PATIENCE_SECONDS, ROOT

pytestmark = [pytest.mark.server, pytest.mark.clients]

# Which revision each settles on; the Inspector does not tell.
VERSIONS = {"python-1.30": "2025-11-25", "python-2.3": "2026-07-28", "typescript-1.32": "2025-11-25"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """deploy-bot edits Pay and reads Hr through a token that is narrowed to both."""
    with live(tmp_path_factory.mktemp("brain") / "data") as running:
        running.seed(
            [
                {"folder": "Pay"},
                {"folder": "Hr"},
                {"folder": "Secret"},
                {"service_account": "deploy-bot", "role": "editor", "on": "Pay"},
            ]
        )
        running.manage("grant", "deploy-bot", "Hr", "editor")
        yield running


@pytest.fixture(scope="module")
def token(server: Live) -> str:
    return server.token("deploy-bot", "--scope", "Pay=editor", "--scope", "Hr=reader")


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_a_client_does_the_main_job(server: Live, token: str, client: str) -> None:
    run: Run = CLIENTS[client]
    name = f"From {client.replace('.', '-')}.md"

    first = run(
        server.url,
        token,
        [
            ("browse_knowledgebase", {"action": "folders"}),
            (
                "update_knowledgebase",
                {
                    "action": "create",
                    "request_id": f"create-{client.replace('.', '-')}",
                    "folder_path": "Pay",
                    "filename": name,
                    "type": "note",
                    "title": "Größe 😀",
                    "content": "# One\r\n\r\nzwölf\n",
                    "tags": ["a"],
                },
            ),
            ("read_knowledgebase", {"action": "read", "path": f"Pay/{name}", "start_line": 3, "end_line": 9}),
        ],
    )
    folders, created, read = first.answers
    second = run(
        server.url,
        token,
        [
            (
                "update_knowledgebase",
                {
                    "action": "update",
                    "request_id": f"update-{client.replace('.', '-')}",
                    "entry_id": created.structured["entry"]["entry_id"],
                    "expected_version": read.structured["version"],
                    "content": "# Two\n",
                    "metadata": {"description": "Written by a client."},
                },
            ),
            ("read_knowledgebase", {"action": "read", "path": f"pay/{name.lower()}"}),
        ],
    )
    updated, again = second.answers

    assert [folder["path"] for folder in folders.structured["folders"]] == ["Hr", "Pay"]
    assert created.structured["entry"]["created_by"]["kind"] == "service_account"
    assert read.structured["content"] == "zwölf\n"
    assert (read.structured["start_line"], read.structured["end_line"]) == (3, 3)
    assert updated.structured["changed"] is True
    assert again.structured["content"] == "# Two\n"
    assert again.structured["entry"]["title"] == "Größe 😀"
    for answer in (*first.answers, *second.answers):
        assert not answer.is_error
        assert [json.loads(text) for text in answer.texts] == [answer.structured]


def test_a_client_shows_the_whole_refusal(server: Live, token: str, client: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_knowledgebase", {"action": "read", "path": "Secret/none.md"}),
        ("read_knowledgebase", {"action": "read", "path": "Pay/none.md", "bogus": 1}),
        (
            "update_knowledgebase",
            {"action": "create_folder", "request_id": "f", "folder_path": "Hr", "name": "A"},
        ),
    ]

    answers = CLIENTS[client](server.url, token, calls).answers

    codes = [answer.structured["error"]["code"] for answer in answers]
    assert codes == ["NOT_FOUND", "INVALID_ARGUMENT", "FORBIDDEN"]
    for answer in answers:
        assert answer.is_error
        assert [json.loads(text) for text in answer.texts] == [answer.structured]


def test_a_client_lists_every_tool_and_settles_on_its_revision(server: Live, token: str, client: str) -> None:
    reader = server.token("deploy-bot", capability="read")

    writers, readers = (CLIENTS[client](server.url, each, []) for each in (token, reader))

    assert [tool["name"] for tool in writers.tools] == [
        "browse_knowledgebase",
        "read_knowledgebase",
        "update_knowledgebase",
        "manage_knowledgebase_access",
    ]
    assert "update_knowledgebase" not in [tool["name"] for tool in readers.tools]
    assert all(tool["inputSchema"]["type"] == "object" for tool in writers.tools)
    assert writers.version == VERSIONS.get(client)
    assert writers.instructions == (introduction.INSTRUCTIONS if client in VERSIONS else None)


@pytest.mark.parametrize("era", ["legacy", "modern", "auto"])
def test_the_inspector_finds_no_schema_that_does_not_travel(server: Live, token: str, era: str) -> None:
    listed = inspect(era, server.url, token, "--method", "tools/list", "--strict")

    assert listed.returncode == 0, listed.stderr


def blocks(language: str) -> list[str]:
    """The blocks of code of the how-to, made for this server."""
    text = (ROOT / "docs" / "how-to" / "connect-an-agent.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_python_of_the_how_to_runs(server: Live, token: str) -> None:
    (program,) = blocks("python")

    run = subprocess.run(
        [sys.executable, "-c", program.replace("http://127.0.0.1:8000", server.brain.url)],
        env={**os.environ, "TOKEN": token},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert "'path': 'Pay'" in run.stdout, run.stderr


def test_the_curl_line_of_the_how_to_is_answered(server: Live, token: str) -> None:
    (line,) = [block for block in blocks("sh") if block.startswith("curl ")]
    words = shlex.split(line.replace("\\\n", " ").replace("$TOKEN", token))
    url, (body,) = words[2], [words[at + 1] for at, word in enumerate(words) if word == "-d"]
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")

    request = urllib.request.Request(
        url.replace("http://127.0.0.1:8000", server.brain.url), body.encode(), headers
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
        answer = json.loads(response.read())

    assert "entries" in answer["result"]["structuredContent"]


def test_the_settings_of_the_how_to_are_json(server: Live) -> None:
    for block in blocks("json"):
        assert '"http://127.0.0.1:8000/mcp"' in block
        json.loads(block)


@pytest.mark.parametrize("spelling", ["/mcp", "/mcp/"])
def test_both_spellings_of_the_address_work(server: Live, token: str, spelling: str) -> None:
    for run in CLIENTS.values():
        assert run(server.brain.url + spelling, token, []).tools
