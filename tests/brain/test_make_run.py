"""`make run` as a person or a service manager uses it: real processes, a real data directory."""

import json
import os
import signal
import socket
import stat
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.server import ROOT, environment, manage, running_brain

pytestmark = pytest.mark.server
MAKE_RUN = ("make", "--no-print-directory", "run")


def children_of_group(group: int) -> list[int]:
    """The processes that are left in a process group."""
    listed = subprocess.run(["ps", "-eo", "pid=,pgid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, pgid in pairs if pgid == group]


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


def test_the_data_directory_is_private(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with running_brain(data_dir):
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in data_dir.iterdir() if path.is_file()
        }
        own = stat.S_IMODE(data_dir.stat().st_mode)

    assert own == 0o700
    assert {"secret_key", "data_key", "db.sqlite3"} <= modes.keys()
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("whole_group", [False, True], ids=["signal to make", "signal to its group"])
def test_sigterm_stops_everything(tmp_path: Path, whole_group: bool) -> None:
    with running_brain(tmp_path / "data", command=MAKE_RUN) as brain:
        waiting = socket.create_connection(("127.0.0.1", int(brain.url.rpartition(":")[2])))
        status = brain.stop(whole_group=whole_group)
        waiting.close()

    assert status == -signal.SIGTERM
    assert children_of_group(brain.process.pid) == []
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
        ({"BRAIN_DATA_DIR": "/proc/brain"}, "Brain cannot start: "),
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
