"""The locks install the same everywhere: exact versions with hashes, and nothing of the machine that made them."""

import importlib.metadata
import json
import re

import pytest

from tests.test_house.repository import ROOT

LOCKS = ("requirements.txt", "requirements-dev.txt")
PINNED = re.compile(r"^([a-z0-9][a-z0-9-]*)==([^ ;]+)( ; .+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")
COMMENT = re.compile(r"^    #( via)?( +(-[rc] )?[a-zA-Z0-9._-]+)?$")


def pins(lock: str) -> dict[str, str]:
    matches = (PINNED.match(line) for line in (ROOT / lock).read_text("utf-8").splitlines())
    return {match[1]: match[2] for match in matches if match}


def wishes(source: str) -> dict[str, str | None]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / source).read_text("utf-8").splitlines())
    wanted = [line.partition("==") for line in lines if line and not line.startswith("-")]
    return {name.lower().replace("_", "-"): version or None for name, _, version in wanted}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_pins_hashes_and_reasons_and_nothing_else(lock: str) -> None:
    strange = [
        line
        for line in (ROOT / lock).read_text("utf-8").splitlines()
        if not (PINNED.match(line) or HASH.match(line) or COMMENT.match(line))
    ]

    assert strange == []
    assert len(pins(lock)) > 20


@pytest.mark.parametrize("lock", LOCKS)
def test_every_wish_is_locked_as_it_was_wished(lock: str) -> None:
    locked = pins(lock)

    for name, version in wishes(lock.replace(".txt", ".in")).items():
        assert name in locked
        assert version in (None, locked[name])


def test_what_runs_in_production_is_what_was_tested() -> None:
    assert pins("requirements.txt").items() <= pins("requirements-dev.txt").items()


def test_what_is_installed_here_is_what_is_locked() -> None:
    locked = pins("requirements.txt")
    installed = {name: importlib.metadata.version(name) for name in wishes("requirements.in")}

    assert installed == {name: locked[name] for name in installed}


def test_mcp_stays_below_2_because_django_mcp_server_needs_it() -> None:
    import mcp_server
    from mcp.server import FastMCP

    assert mcp_server.__name__ == "mcp_server"
    assert FastMCP.__name__ == "FastMCP"
    assert int(pins("requirements.txt")["mcp"].split(".")[0]) < 2


def test_the_lock_of_the_other_makers_clients_holds_no_address() -> None:
    lock = json.loads((ROOT / "tests/clients/package-lock.json").read_text("utf-8"))

    packages = [package for path, package in lock["packages"].items() if path]
    assert packages
    assert all("resolved" not in package for package in packages)
    assert all(package.get("integrity") for package in packages if not package.get("link"))
