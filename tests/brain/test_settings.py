"""The settings as a process of its own reads them from its environment."""

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.server import ROOT, environment

TELL = """
import json, os, pathlib
from brain import settings
print(json.dumps({
    name: getattr(settings, name) for name in dir(settings)
    if name.isupper() and isinstance(getattr(settings, name), (str, int, bool, list, pathlib.Path))
} | {"environ": sorted(name for name in os.environ if name.startswith("BRAIN_"))}, default=str))
"""


def read_settings(data_dir: Path, **variables: str) -> dict[str, Any]:
    told = _start(data_dir, **variables)
    assert told.returncode == 0, told.stderr
    settings: dict[str, Any] = json.loads(told.stdout)
    return settings


def _start(data_dir: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", TELL],
        cwd=ROOT,
        env=environment(data_dir, **variables),
        capture_output=True,
        text=True,
    )


def test_everything_has_a_working_default(tmp_path: Path) -> None:
    settings = read_settings(tmp_path / "data")

    assert settings["PUBLIC_URL"] == "http://127.0.0.1:8000"
    assert settings["ALLOWED_HOSTS"] == ["127.0.0.1", "[::1]", "localhost"]
    assert settings["DEBUG"] is False
    assert settings["SESSION_COOKIE_SECURE"] is False
    assert settings["SECURE_HSTS_SECONDS"] == 0
    assert settings["UNKNOWN_VARIABLES"] == []


def test_the_data_directory_and_its_secrets_are_private_and_made_once(tmp_path: Path) -> None:
    data_dir = tmp_path / "deep" / "data"

    first, second = read_settings(data_dir), read_settings(data_dir)

    assert first["SECRET_KEY"] == second["SECRET_KEY"]
    assert len(first["SECRET_KEY"]) >= 50
    assert (data_dir / "secret_key").read_text() != (data_dir / "data_key").read_text()
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    for name in ("secret_key", "data_key"):
        assert stat.S_IMODE((data_dir / name).stat().st_mode) == 0o600


def test_a_given_secret_key_is_used_not_written_down_and_dropped(tmp_path: Path) -> None:
    settings = read_settings(tmp_path / "data", BRAIN_SECRET_KEY="k" * 60)

    assert settings["SECRET_KEY"] == "k" * 60
    assert not (tmp_path / "data" / "secret_key").exists()
    assert "BRAIN_SECRET_KEY" not in settings["environ"]


def test_https_makes_cookies_secure_and_browsers_stay_with_it(tmp_path: Path) -> None:
    settings = read_settings(tmp_path / "data", BRAIN_PUBLIC_URL="https://brain.example/")

    assert settings["PUBLIC_URL"] == "https://brain.example"
    assert "brain.example" in settings["ALLOWED_HOSTS"]
    assert settings["CSRF_TRUSTED_ORIGINS"] == ["https://brain.example"]
    assert settings["SESSION_COOKIE_SECURE"] is settings["CSRF_COOKIE_SECURE"] is True
    assert settings["SESSION_COOKIE_NAME"] == "__Host-brain_session"
    assert settings["SECURE_HSTS_SECONDS"] > 0


def test_a_deployment_with_https_passes_djangos_own_check(tmp_path: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "INFO"],
        cwd=ROOT,
        env=environment(tmp_path / "data", BRAIN_PUBLIC_URL="https://brain.example", BRAIN_TRUST_PROXY="1"),
        capture_output=True,
        text=True,
    )

    assert checked.returncode == 0, checked.stderr
    assert "no issues" in checked.stdout


def test_a_forwarded_protocol_is_believed_only_on_request(tmp_path: Path) -> None:
    ask = "from brain import settings; print(getattr(settings, 'SECURE_PROXY_SSL_HEADER', None))"

    said = [
        subprocess.run(
            [sys.executable, "-c", ask],
            cwd=ROOT,
            env=environment(tmp_path / "data", **variables),
            capture_output=True,
            text=True,
        ).stdout.strip()
        for variables in ({}, {"BRAIN_TRUST_PROXY": "1"})
    ]

    assert said == ["None", "('HTTP_X_FORWARDED_PROTO', 'https')"]


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:8001"), ("::", "http://[::1]:8001"), ("::1", "http://[::1]:8001")],
)
def test_an_address_that_stands_for_all_is_shown_as_one_that_works(
    tmp_path: Path, host: str, url: str
) -> None:
    settings = read_settings(tmp_path / "data", BRAIN_HOST=host, BRAIN_PORT="8001")

    assert settings["PUBLIC_URL"] == url


@pytest.mark.parametrize(
    "variables",
    [
        {"BRAIN_PUBLIC_URL": "brain.example"},
        {"BRAIN_PUBLIC_URL": "https://brain.example/wiki"},
        {"BRAIN_PUBLIC_URL": "ftp://brain.example"},
        {"BRAIN_PUBLIC_URL": "https://["},
        {"BRAIN_PUBLIC_URL": "https://brain.example:99999"},
        {"BRAIN_PUBLIC_URL": "https://ada:hunter2@brain.example"},
        {"BRAIN_PUBLIC_URL": "https://brain.example#top"},
        {"BRAIN_PORT": "9" * 5_000},
        {"BRAIN_DATA_DIR": "~nobody-of-this-name/brain"},
        {"BRAIN_DATA_DIR": "/dev/null"},
        {"BRAIN_DATA_DIR": "/dev/null/brain"},
        {"BRAIN_PORT": "http"},
        {"BRAIN_BACKUP_PAT": "ghp_hunter2"},
        {"BRAIN_CHAT_API_KEY": "sk-hunter2"},
    ],
)
def test_what_cannot_be_meant_stops_the_start_and_names_the_variable(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    stopped = _start(tmp_path / "data", **variables)

    assert stopped.returncode != 0
    assert next(iter(variables)) in stopped.stderr.splitlines()[-1]
    assert "hunter2" not in stopped.stderr


def test_the_data_directory_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to("disk")

    settings = read_settings(tmp_path / "data")

    assert settings["DATA_DIR"] == str(tmp_path / "disk")
    assert (tmp_path / "disk" / "secret_key").is_file()


def test_a_link_to_a_directory_that_is_missing_makes_that_directory(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("disk")

    assert read_settings(tmp_path / "data")["DATA_DIR"] == str(tmp_path / "disk")
    assert (tmp_path / "disk").is_dir()


def test_a_command_tells_a_wrong_setting_in_one_line(tmp_path: Path) -> None:
    stopped = subprocess.run(
        [sys.executable, "manage.py", "sweep"],
        cwd=ROOT,
        env=environment(tmp_path / "data", BRAIN_PORT="http"),
        capture_output=True,
        text=True,
    )

    assert stopped.returncode == 1
    assert stopped.stderr == "Refused: BRAIN_PORT must be a whole number from 1 to 65535, not 'http'.\n"
