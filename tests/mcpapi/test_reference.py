"""The reference is held to the code: each tool, action, field, error code and limit stands in it, and is right."""

import re

import pytest

from core import errors, limits
from kb.patching.failures import Reason
from mcpapi import catalog, introduction, messages, modern
from mcpapi.operations import Action, Tool
from tests.server import ROOT

REFERENCE = ROOT / "docs" / "reference"
ACTIONS = [(tool, action) for tool in catalog.TOOLS for action in tool.actions]

# Of operations that no tool offers yet. Each moves to the page with its tool.


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    level = heading.index(" ")
    _, found, below = text.partition(f"\n{heading}\n")
    assert found, f"{heading} is missing"
    return re.split(rf"^#{{1,{level}}} ", below, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of every row of every table."""
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]


@pytest.mark.parametrize(
    ("tool", "action"), ACTIONS, ids=[f"{tool.name}.{action.name}" for tool, action in ACTIONS]
)
def test_each_action_and_its_fields_stand_in_the_reference(tool: Tool, action: Action) -> None:
    about_tool = section((REFERENCE / "mcp.md").read_text("utf-8"), f"## `{tool.name}`")
    about_action = section(about_tool, f"### `{action.name}`")

    for field in action.arguments.model_fields:
        assert field == "action" or f"`{field}`" in about_action + about_tool.partition("###")[0], field


def test_the_reference_has_no_tool_or_action_that_does_not_exist() -> None:
    text = (REFERENCE / "mcp.md").read_text("utf-8")

    tools = re.findall(r"^## `(\w+)`$", text, re.MULTILINE)
    actions = re.findall(r"^### `(\w+)`$", text, re.MULTILINE)

    assert tools == [tool.name for tool in catalog.TOOLS]
    assert actions == [action.name for _, action in ACTIONS]


def test_each_error_code_stands_in_the_reference_with_its_status() -> None:
    kinds = {kind.code: kind for kind in errors.BrainError.__subclasses__()}
    told = {
        row[0].strip("`"): row for row in rows((REFERENCE / "errors.md").read_text("utf-8")) if len(row) >= 5
    }
    del told["code"], told["---"]

    assert set(told) <= set(kinds)
    assert set(kinds) == set(told)
    for code, row in told.items():
        assert int(row[1]) == kinds[code].http_status, code
        assert (row[2] == "yes") is kinds[code].retryable, code


def test_each_limit_stands_in_the_reference_with_its_number() -> None:
    known = {
        name: value for name, value in vars(limits).items() if name.isupper() and name not in ("KIB", "MIB")
    }
    told = {row[2].strip("`"): row[1] for row in rows((REFERENCE / "limits.md").read_text("utf-8"))}
    told = {name: number for name, number in told.items() if name.isupper()}

    assert set(told) <= set(known)
    assert set(known) - set(told) == set()
    for name, number in told.items():
        assert f"{known[name]:,}" in re.findall(r"[\d,]+", number), name


def test_each_reason_of_a_patch_that_failed_stands_in_the_reference() -> None:
    text = (REFERENCE / "mcp.md").read_text("utf-8")

    for reason in Reason:
        assert f"`{reason.value}`" in text


def test_each_revision_and_protocol_code_stands_in_the_reference() -> None:
    text = (REFERENCE / "mcp.md").read_text("utf-8")

    for version in (modern.VERSION, *modern.HANDSHAKE_VERSIONS):
        assert f"`{version}`" in text
    for code in (
        messages.PARSE_ERROR,
        messages.INVALID_REQUEST,
        messages.METHOD_NOT_FOUND,
        messages.INVALID_PARAMS,
        modern.HEADER_MISMATCH,
        modern.UNSUPPORTED_VERSION,
    ):
        assert str(code) in text


def test_the_version_that_clients_are_told_is_the_projects() -> None:
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)

    assert version == introduction.VERSION
