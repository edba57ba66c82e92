"""The agents' door of a real server: two processes, sixteen threads each, a socket."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core import limits
from tests.mcpapi.agent import ERAS, Agent, Era
from tests.mcpapi.images import image_of_disk
from tests.mcpapi.live import Live, live
from tests.mcpapi.test_bad_input import ARGUMENTS, BODIES

pytestmark = pytest.mark.server

THREADS = 16
CALLS = 25


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Ada edits Eng, Bo edits Hr."""
    with live(tmp_path_factory.mktemp("brain") / "data") as running:
        running.seed(
            [
                {"folder": "Eng/Sub"},
                {"folder": "Hr"},
                {"person": "ada", "name": "ada", "role": "editor", "on": "Eng"},
                {"person": "bo", "name": "bo", "role": "editor", "on": "Hr"},
            ]
        )
        yield running
    # Nothing of what these tests do is a bug of the server.
    assert '"level": "error"' not in running.brain.log


def in_threads(work: Any, number: int = THREADS) -> None:
    """Run ``work(0)`` … at once; what one of them raises is raised."""
    errors: list[BaseException] = []

    def run(position: int) -> None:
        try:
            work(position)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(position,)) for position in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("era", ERAS)
def test_two_callers_at_once_are_never_mistaken_for_each_other(server: Live, era: Era) -> None:
    folders = {"ada": "Eng", "bo": "Hr"}
    tokens = {name: server.token(name) for name in folders}

    def work(position: int) -> None:
        name = ("ada", "bo")[position % 2]
        agent = server.agent(tokens[name], era)
        for number in range(CALLS):
            told = agent.inspect()
            assert told["identity"]["username"] == name
            listed = agent.browse(action="folders")["folders"]
            assert [folder["path"] for folder in listed] == [folders[name]]
            made = agent.patient_update(
                action="create",
                request_id=f"{era}-{position}-{number}",
                folder_path=folders[name],
                filename=f"{era}-{position}-{number}.md",
                type="note",
                title="T",
                content=name,
            )
            assert made["entry"]["created_by"]["name"] == name

    in_threads(work)

    for name, folder in folders.items():
        agent = server.agent(tokens[name], era)
        paths, cursor = [], None
        while True:
            page = agent.browse(
                action="entries", folder_path=folder, limit=100, **({"cursor": cursor} if cursor else {})
            )
            paths += [entry["path"] for entry in page["entries"] if f"/{era}-" in entry["path"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert len(paths) == len(set(paths)) == CALLS * THREADS // 2


def test_of_many_writers_of_one_version_one_wins(server: Live) -> None:
    agent = server.agent(server.token("ada"))
    created = agent.update(
        action="create",
        request_id="contested",
        folder_path="Eng",
        filename="Contested.md",
        type="note",
        title="Contested",
        content="start\n",
    )["entry"]
    tokens = [server.token("ada"), server.new_token("ada")]

    answers: dict[int, dict[str, Any]] = {}
    for round_number in range(20):
        version = agent.read(path="Eng/Contested.md")["version"]

        def work(position: int, number: int = round_number, expected: str = version) -> None:
            answers[position] = server.agent(tokens[position], ERAS[position]).patient_update(
                action="update",
                request_id=f"round-{number}-{position}",
                path="Eng/Contested.md",
                expected_version=expected,
                content=f"{number} by {position}\n",
            )

        answers.clear()
        in_threads(work, 2)

        winners = [position for position, answer in answers.items() if "error" not in answer]
        assert len(winners) == 1
        (loser,) = set(answers) - set(winners)
        assert answers[loser]["error"]["code"] == "VERSION_CONFLICT"
        assert agent.read(path="Eng/Contested.md")["content"] == f"{round_number} by {winners[0]}\n"
    assert agent.read(path="Eng/Contested.md")["entry"]["entry_id"] == created["entry_id"]


def test_one_request_sent_many_times_at_once_makes_one_entry(server: Live) -> None:
    """D11 (mcp-logseq #58): a client that gives up waiting and asks again makes no copy."""
    token = server.token("ada")
    answers: dict[int, dict[str, Any]] = {}

    def work(position: int) -> None:
        answers[position] = server.agent(token, ERAS[position % 2]).update(
            action="create",
            request_id="once",
            folder_path="Eng",
            filename="Once.md",
            type="note",
            title="Once",
            content="once\n",
        )

    in_threads(work)

    made = [answer["entry"] for answer in answers.values() if "entry" in answer]
    refused = {answer["error"]["code"] for answer in answers.values() if "error" in answer}
    assert made
    assert all(entry == made[0] for entry in made)
    assert refused <= {"REQUEST_IN_PROGRESS", "STORAGE_UNAVAILABLE"}


def test_a_revoked_token_ends_in_the_midst_of_its_calls(server: Live) -> None:
    token = server.new_token("ada")
    revoked = threading.Event()
    after: list[int] = []

    def work(position: int) -> None:
        agent = server.agent(token, ERAS[position % 2])
        for _ in range(200):
            was_revoked = revoked.is_set()
            reply = agent.request("tools/list")
            if was_revoked:
                after.append(reply.status)
            if len(after) > 200:
                return

    def revoke() -> None:
        server.manage("revoke_token", token.removeprefix("brn_")[:8])
        revoked.set()

    revoker = threading.Thread(target=revoke)
    revoker.start()
    while not revoked.is_set():
        in_threads(work, 4)
    revoker.join()
    in_threads(work, 4)

    assert after
    assert set(after) == {401}


def test_bad_input_leaves_every_file_of_the_data_directory_as_it_was(server: Live) -> None:
    agents = [server.agent(server.token("ada"), era) for era in ERAS]
    for agent in agents:
        agent.inspect()
    agents[0].update(
        action="create",
        request_id="a",
        folder_path="Eng",
        filename="A.md",
        type="note",
        title="A",
        content="a\n",
    )
    before = image_of_disk(server.data_dir)

    for agent in agents:
        for arguments in ARGUMENTS:
            assert "error" in agent.result(agent.raw_call("update_knowledgebase", arguments))
        for body in BODIES:
            reply = agent.send(body, agent.headers("tools/call", {"name": "update_knowledgebase"}))
            assert reply.status in (200, 400)

    assert image_of_disk(server.data_dir) == before


def test_a_large_body_without_a_credential_is_answered_unread(server: Live) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest("POST", "/mcp")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(limits.MCP_BODY_MAX_BYTES))
    connection.endheaders()

    # Nothing of the body was sent, and the answer is there.
    assert connection.getresponse().status == 401
    connection.close()


def test_a_body_that_is_announced_too_large_is_answered_unread(server: Live) -> None:
    token = server.token("ada")
    for size, path, status in (
        (limits.MCP_BODY_MAX_BYTES + 1, "/mcp", 413),
        (limits.MCP_BODY_MAX_BYTES + 1, "/mcp/", 413),
        (limits.BODY_MAX_BYTES + 1, "/login/", 413),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.putrequest("POST", path)
        connection.putheader("Authorization", f"Bearer {token}")
        connection.putheader("Content-Length", str(size))
        connection.endheaders()
        response = connection.getresponse()
        assert response.status == status
        if path.startswith("/mcp"):
            assert json.loads(response.read())["error"]["code"] == -32600
        connection.close()


def test_a_chunked_body_is_refused_in_clear_words(server: Live) -> None:
    agent = server.agent(server.token("ada"))
    body = json.dumps(agent.message("tools/list", {})).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
        head = "".join(f"{key}: {value}\r\n" for key, value in agent.headers("tools/list", {}).items())
        raw.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{head}"
            f"Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode()
            + body
            + b"\r\n0\r\n\r\n"
        )
        answer = raw.recv(65_536).decode()

    assert answer.startswith("HTTP/1.1 411 ")


def test_a_body_that_breaks_off_changes_nothing_and_stops_nobody(server: Live) -> None:
    agent = server.agent(server.token("ada"))
    agent.inspect()
    before = image_of_disk(server.data_dir)
    for _ in range(THREADS):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
            head = "".join(f"{key}: {value}\r\n" for key, value in agent.headers("tools/list", {}).items())
            raw.sendall(
                f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{head}"
                'Content-Length: 1000\r\n\r\n{"jsonrpc"'.encode()
            )

    assert agent.request("tools/list").status == 200
    assert image_of_disk(server.data_dir) == before


@pytest.mark.parametrize("era", ERAS)
def test_ten_mib_escaped_go_through_a_real_server(server: Live, era: Era) -> None:
    agent = server.agent(server.token("ada"), era)
    escaped = "\\u00e9" * (limits.CONTENT_MAX_BYTES // 2)

    made = agent.result(
        agent.raw_call(
            "update_knowledgebase",
            f'{{"action":"create","request_id":"big-{era}","folder_path":"Eng","filename":"Big-{era}.md",'
            f'"type":"note","title":"Big","content":"{escaped}"}}',
        )
    )

    assert made["entry"]["size_bytes"] == limits.CONTENT_MAX_BYTES
    assert agent.read(path=f"Eng/Big-{era}.md")["content"] == "é" * (limits.CONTENT_MAX_BYTES // 2)


def test_the_log_of_a_server_holds_no_token_and_no_content(server: Live) -> None:
    secret = "a sentence that nobody else would write"
    token = server.token("ada")
    for era in ERAS:
        agent = server.agent(token, era)
        agent.update(
            action="create",
            request_id=f"log-{era}",
            folder_path="Eng",
            filename=f"Log-{era}.md",
            type="note",
            title=secret,
            content=secret,
        )
        agent.raw_call("update_knowledgebase", f'{{"action":"create","{secret}":1}}')
        agent.request("tools/call", {"name": secret, "arguments": {"action": secret}})
        agent.request("initialize", {"protocolVersion": [secret]})
        agent.request(secret)
    server.agent(token[:-1] + "x").request("tools/list")

    log = server.brain.log + server.brain.output.replace(server.brain.token, "")
    assert '"tool called"' in log
    assert secret not in log
    assert token[:-1] not in log


def test_a_client_goes_on_after_a_restart(tmp_path: Path) -> None:
    with live(tmp_path / "data") as first:
        token = first.brain.token
        before = first.agent(token, "handshake").browse(action="entries", recursive=True)
        opened = first.agent(token, "handshake").request(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        )
        assert "mcp-session-id" not in opened.headers

    with live(tmp_path / "data") as second:
        # No new handshake: the client does not know that the server was away.
        agents: list[Agent] = [second.agent(token, era) for era in ERAS]
        assert [agent.browse(action="entries", recursive=True) for agent in agents] == [before, before]
