from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from brain.environment import Environment


def test_a_secret_is_gone_from_the_environment_once_the_settings_are_read() -> None:
    variables = {"BRAIN_SECRET_KEY": "s3cret", "BRAIN_PORT": "8001", "PATH": "/bin"}
    env = Environment(variables)

    assert env.secret("BRAIN_SECRET_KEY") == "s3cret"
    env.drop_secrets()

    assert variables == {"BRAIN_PORT": "8001", "PATH": "/bin"}


def test_a_secret_is_read_from_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n")
    variables = {"BRAIN_SECRET_KEY_FILE": str(tmp_path / "key")}
    env = Environment(variables)

    assert env.secret("BRAIN_SECRET_KEY") == "from a file"
    assert env.unknown() == []
    env.drop_secrets()

    assert variables == {}


def test_a_start_that_fails_over_a_secret_fails_the_same_way_again(tmp_path: Path) -> None:
    variables = {"BRAIN_SECRET_KEY_FILE": str(tmp_path / "missing")}

    for _ in range(2):
        with pytest.raises(ImproperlyConfigured, match="BRAIN_SECRET_KEY_FILE names cannot be read"):
            Environment(variables).secret("BRAIN_SECRET_KEY")


@pytest.mark.parametrize("content", ["", "  \n", "x" * 70_000])
def test_a_secret_file_without_a_secret_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "key").write_text(content)

    with pytest.raises(ImproperlyConfigured, match="empty or far too long"):
        Environment({"BRAIN_SECRET_KEY_FILE": str(tmp_path / "key")}).secret("BRAIN_SECRET_KEY")


def test_a_secret_file_that_never_ends_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="far too long"):
        Environment({"BRAIN_SECRET_KEY_FILE": "/dev/zero"}).secret("BRAIN_SECRET_KEY")


def test_a_secret_and_its_file_together_are_refused() -> None:
    env = Environment({"BRAIN_SECRET_KEY": "a", "BRAIN_SECRET_KEY_FILE": "b"})

    with pytest.raises(ImproperlyConfigured, match="not both"):
        env.secret("BRAIN_SECRET_KEY")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("BRAIN_BACKUP_PAT", "BRAIN_BACKUP_REMOTE does not say where it belongs"),
        ("BRAIN_BACKUP_PAT_FILE", "BRAIN_BACKUP_REMOTE does not say where it belongs"),
        ("BRAIN_CHAT_API_KEY", "BRAIN_CHAT_PROVIDER does not say where it belongs"),
        ("BRAIN_SECRET_TOKEN", "no setting of this name"),
    ],
)
def test_a_secret_without_its_destination_stops_the_start_without_being_shown(
    name: str, sentence: str
) -> None:
    env = Environment({name: "hunter2hunter2"})

    with pytest.raises(ImproperlyConfigured) as stopped:
        env.unknown()

    assert name in str(stopped.value)
    assert sentence in str(stopped.value)
    assert "hunter2" not in str(stopped.value)


def test_a_variable_that_no_setting_asked_for_is_named() -> None:
    env = Environment({"BRAIN_PROT": "8001", "BRAIN_PORT": "8001", "HOME": "/root"})
    env.number("BRAIN_PORT", 8000, least=1, most=65_535)

    assert env.unknown() == ["BRAIN_PROT"]


@pytest.mark.parametrize("value", ["0", "65536", "-1", "8000.0", "8e3", "٨٠٠٠", "x"])
def test_a_number_outside_its_bounds_is_refused(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="BRAIN_PORT must be a whole number from 1 to 65535"):
        Environment({"BRAIN_PORT": value}).number("BRAIN_PORT", 8000, least=1, most=65_535)


@pytest.mark.parametrize(
    ("value", "meant"), [("1", True), ("Yes", True), ("off", False), ("0", False), (" ", False)]
)
def test_a_flag_may_be_written_in_several_ways(value: str, meant: bool) -> None:
    assert Environment({"BRAIN_DEBUG": value}).flag("BRAIN_DEBUG") is meant


def test_a_flag_that_is_neither_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="BRAIN_DEBUG must be 1 or 0"):
        Environment({"BRAIN_DEBUG": "maybe"}).flag("BRAIN_DEBUG")
