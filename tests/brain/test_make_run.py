"""`make run` as a person or a service manager uses it: real processes, a real data directory."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import limits
from core.limits import MIB
from tests.server import PATIENCE_SECONDS, ROOT, RunningBrain, environment, manage, running_brain

pytestmark = pytest.mark.server
MAKE_RUN = ("make", "--no-print-directory", "run")


def children_of_group(group: int) -> list[int]:
    """The processes that are left in a process group."""
    listed = subprocess.run(["ps", "-eo", "pid=,pgid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, pgid in pairs if pgid == group]


def is_emptied(group: int) -> bool:
    """Whether the process group empties within a test's patience."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while children_of_group(group):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_the_first_start_tells_everything_once_and_the_second_nothing_secret(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with running_brain(data_dir, command=MAKE_RUN) as brain:
        password, token, url = brain.password, brain.token, brain.url
        commands = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True).stdout
    first, first_log = brain.output, brain.log

    assert f"Web address:  {url}/" in first
    assert (
        f'claude mcp add --transport http brain {url}/mcp --header "Authorization: Bearer {token}"' in first
    )
    for secret in (password, token):
        assert secret not in commands
        assert secret not in first_log

    with running_brain(data_dir, command=MAKE_RUN) as brain:
        pass

    assert brain.output == f"Brain is ready at {brain.url}/  (Ctrl-C stops it)\n"
    assert all(json.loads(line) for line in brain.log.splitlines() if line.startswith("{"))


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBrain]:
    """A server that the tests of this module only ask."""
    with running_brain(tmp_path_factory.mktemp("brain") / "data") as brain:
        yield brain


@pytest.mark.parametrize("sends_all", [True, False], ids=["sends it all", "sends the headers alone"])
def test_a_body_that_is_too_large_is_answered_whether_the_client_sends_it_or_waits(
    brain: RunningBrain, sends_all: bool
) -> None:
    size = limits.MCP_BODY_MAX_BYTES + 1
    connection = http.client.HTTPConnection(brain.url.removeprefix("http://"), timeout=60)
    connection.putrequest("POST", "/mcp")
    connection.putheader("Content-Length", str(size))
    connection.endheaders()
    if sends_all:
        for start in range(0, size, MIB):
            connection.send(b"x" * min(MIB, size - start))
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()

    assert response.status == 413
    assert answer["jsonrpc"] == "2.0"


def test_a_message_whose_sender_stopped_early_is_not_carried_out(brain: RunningBrain) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    with socket.create_connection(("127.0.0.1", int(brain.url.rpartition(":")[2]))) as connection:
        head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {brain.token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(message) + 1}\r\n\r\n"
        connection.sendall(head.encode() + message)
        connection.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(connection)
        response.begin()
        answer = json.loads(response.read())

    assert response.status == 400
    assert answer["error"]["code"] == -32700


def test_the_data_directory_is_private(brain: RunningBrain) -> None:
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in brain.data_dir.iterdir() if path.is_file()
    }

    assert stat.S_IMODE(brain.data_dir.stat().st_mode) == 0o700
    assert {"secret_key", "data_key", "db.sqlite3"} <= modes.keys()
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("whole_group", [False, True], ids=["signal to make", "signal to its group"])
def test_sigterm_stops_everything(tmp_path: Path, whole_group: bool) -> None:
    with running_brain(tmp_path / "data", command=MAKE_RUN) as brain:
        waiting = socket.create_connection(("127.0.0.1", int(brain.url.rpartition(":")[2])))
        status = brain.stop(whole_group=whole_group)
        waiting.close()

    assert status == -signal.SIGTERM
    assert is_emptied(brain.process.pid)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(brain.url, timeout=10)


def test_a_taken_port_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = subprocess.run(
            MAKE_RUN,
            cwd=ROOT,
            env=environment(tmp_path / "data", BRAIN_PORT=port),
            capture_output=True,
            text=True,
        )

    assert refused.returncode != 0
    assert f"Brain cannot start: port {port} on 127.0.0.1 cannot be used" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert refused.stdout == ""
    assert not (tmp_path / "data" / "db.sqlite3").exists()


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"BRAIN_BACKUP_PAT": "ghp_hunter2"}, "BRAIN_BACKUP_PAT holds a secret, but BRAIN_BACKUP_REMOTE"),
        ({"BRAIN_HOST": "no.such.host.invalid"}, "BRAIN_HOST: there is no address"),
        ({"BRAIN_HOST": ".."}, "BRAIN_HOST: there is no address"),
        ({"BRAIN_DATA_DIR": "/proc/brain"}, "Brain cannot start: BRAIN_DATA_DIR: /proc/brain cannot be used"),
    ],
)
def test_what_cannot_work_is_one_clear_sentence(
    tmp_path: Path, variables: dict[str, str], sentence: str
) -> None:
    refused = subprocess.run(
        MAKE_RUN, cwd=ROOT, env=environment(tmp_path / "data") | variables, capture_output=True, text=True
    )

    assert refused.returncode != 0
    assert sentence in refused.stderr
    assert "hunter2" not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_provision_from_the_shell_and_make_run_after_it(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    wish = ("provision", "--organization", "Acme", "--admin", "root", "--password-stdin")
    first = manage(data_dir, *wish, stdin="correct horse battery staple\n")
    again = manage(data_dir, *wish, stdin="another password altogether\n")
    other = manage(data_dir, "provision", "--organization", "Globex", "--admin", "root")

    assert (first.returncode, first.stdout) == (0, "")
    assert (again.returncode, again.stdout) == (0, "")
    assert other.returncode == 1
    assert "Acme" in other.stderr

    with running_brain(data_dir) as brain:
        pass
    assert "Password" not in brain.output


def test_provision_prints_a_generated_password_alone(tmp_path: Path) -> None:
    made = manage(tmp_path / "data", "provision", "--organization", "Acme", "--admin", "root", "--sample")

    assert made.returncode == 0
    assert len(made.stdout.splitlines()) == 1
    assert made.stdout.strip() not in made.stderr
    assert os.path.isdir(tmp_path / "data" / "orgs")


def test_a_deployment_behind_https_starts_too(tmp_path: Path) -> None:
    with running_brain(
        tmp_path / "data", BRAIN_PUBLIC_URL="https://brain.example", BRAIN_TRUST_PROXY="1"
    ) as brain:
        asked = urllib.request.Request(
            f"{brain.url}/healthz", headers={"Host": "brain.example", "X-Forwarded-Proto": "https"}
        )
        with urllib.request.urlopen(asked, timeout=10) as response:
            headers = response.headers

    assert "max-age=31536000" in headers["Strict-Transport-Security"]
    assert "brain https://brain.example/mcp --header" in brain.output
