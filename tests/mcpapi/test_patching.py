"""Changing parts of an entry through MCP: what goes over the wire, and how an agent recovers in one call."""

import json
from typing import Any

import pytest

from core import limits
from core.types import Role
from kb.patching.applying import apply_diff
from tests.mcpapi.agent import Agent, Era
from tests.world import World

pytestmark = pytest.mark.django_db

DEPLOY = "Eng/Deploy.md"
TEXT = "# Deploy\n\n## Build\n\nRun the build.\n\n## Ship\n\nShip it to the customers.\n"
FIT = "@@ -7,3 +7,4 @@\n ## Ship\n \n-Ship it to the customers.\n+Ship it.\n+Check health.\n"
CHANGED = TEXT.replace("Ship it to the customers.", "Ship it.\nCheck health.")


def update(agent: Agent, version: str, **arguments: Any) -> dict[str, Any]:
    given = {"action": "update", "request_id": "r1", "path": DEPLOY, "expected_version": version}
    return agent.update(**{**given, **arguments})


def failures_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    error = answer["error"]
    assert (error["code"], error["retryable"]) == ("PATCH_FAILED", False)
    assert "retry_after_seconds" not in error
    assert len(json.dumps(error["details"], ensure_ascii=False).encode()) <= limits.PATCH_DETAILS_MAX_BYTES
    failures: list[dict[str, Any]] = error["details"]["failures"]
    return failures


@pytest.mark.parametrize(
    "change",
    [
        {"diff": FIT},
        {"diff": f"--- a/Deploy.md\n+++ b/Deploy.md\n{FIT}"},
        {"edits": [{"old_text": "Ship it to the customers.", "new_text": "Ship it.\nCheck health."}]},
    ],
)
def test_a_part_of_a_text_is_changed(world: World, ada: Agent, change: dict[str, Any]) -> None:
    entry = world.entry(DEPLOY, TEXT)

    answer = update(ada, entry.version, **change)

    assert world.text_of(DEPLOY) == CHANGED
    assert answer.keys() == {"entry", "changed", "previous_content_hash"}
    assert answer["previous_content_hash"] == entry.content_hash
    assert answer["entry"]["version"] == ada.read(path=DEPLOY)["version"]
    assert update(ada, entry.version, **change) == answer


def test_a_hunk_that_was_found_elsewhere_is_told(world: World, ada: Agent) -> None:
    entry = world.entry(DEPLOY, TEXT)

    answer = update(ada, entry.version, diff=FIT.replace("-7,3", "-2,3"))

    assert answer["offsets"] == [{"hunk": 1, "declared_line": 2, "found_line": 7}]
    assert update(ada, entry.version, diff=FIT.replace("-7,3", "-2,3")) == answer


def test_the_loser_of_two_writers_needs_one_more_call(world: World, ada: Agent, era: Era) -> None:
    """D2 (gbrain #4503), with its end: nobody has to read the page again."""
    world.entry(DEPLOY, TEXT)
    world.service_account("deploy-bot", role=Role.EDITOR, on="Eng")
    bot = Agent(world.token("deploy-bot"), era)
    seen = ada.read(path=DEPLOY)

    update(bot, seen["version"], edits=[{"old_text": "Run the build.", "new_text": "Run the whole build."}])
    refused = update(ada, seen["version"], diff=FIT)

    assert refused["error"]["code"] == "VERSION_CONFLICT"
    details = refused["error"]["details"]
    assert apply_diff(seen["content"], details["diff_since"], path=DEPLOY).text == world.text_of(DEPLOY)
    # Her own lines are not among those that changed.
    again = update(ada, details["current_version"], diff=FIT)
    assert again["changed"] is True
    assert world.text_of(DEPLOY) == CHANGED.replace("Run the build.", "Run the whole build.")


def test_a_heading_that_is_not_there_gets_nothing_written_below_it(world: World, ada: Agent) -> None:
    """D7 (obsidian-mcp-tools #71): success with a second heading at the end."""
    entry = world.entry(DEPLOY, TEXT)

    for change in (
        {"diff": "@@ -7,1 +7,3 @@\n ## Deploying\n+\n+New.\n"},
        {"diff": "@@ -7,1 +7,3 @@\n # Ship\n+\n+New.\n"},
        {"edits": [{"old_text": "### Ship\n", "new_text": "### Ship\nNew.\n"}]},
    ):
        (failure,) = failures_of(update(ada, entry.version, **change))
        assert failure["reason"] in ("context_mismatch", "no_match")

    assert world.text_of(DEPLOY) == TEXT
    assert ada.read(path=DEPLOY)["version"] == entry.version


def test_three_lines_of_a_page_of_9_mib_cost_three_lines(world: World, ada: Agent) -> None:
    """D8 (atlassian-mcp-server #210): neither request nor reply grows with the page."""
    sizes = []
    for lines in (100, 190_000):
        content = "".join(
            f"Line {number} of a page that is long enough to be one\n" for number in range(lines)
        )
        entry = world.entry(f"Eng/Page{lines}.md", content)
        arguments = {
            "action": "update",
            "request_id": f"r{lines}",
            "path": entry.path,
            "expected_version": entry.version,
            "diff": (
                "@@ -51,3 +51,3 @@\n Line 50 of a page that is long enough to be one\n"
                "-Line 51 of a page that is long enough to be one\n+changed\n"
                " Line 52 of a page that is long enough to be one\n"
            ),
        }
        reply = ada.request("tools/call", {"name": "update_knowledgebase", "arguments": arguments})
        answer = ada.result(reply)
        assert answer["changed"] is True
        stored = world.text_of(entry.path)
        assert stored == content.replace("Line 51 of a page that is long enough to be one", "changed")
        sizes.append((len(json.dumps(arguments)), len(reply.body)))

    assert len(content) > 9 * limits.MIB
    assert abs(sizes[0][0] - sizes[1][0]) < 50
    assert abs(sizes[0][1] - sizes[1][1]) < 100


def test_one_refusal_is_enough_to_repair_all_hunks(world: World, ada: Agent) -> None:
    entry = world.entry(DEPLOY, TEXT)
    bad = (
        "@@ -4,3 +4,3 @@\n \n-Run the built.\n+Run the whole build.\n \n"
        "@@ -7,9 +7,9 @@\n ## Ship\n \n-Ship it to the customers.\n+Ship it.\n"
    )

    first, second = failures_of(update(ada, entry.version, diff=bad))
    difference = first["first_difference"]
    repaired = bad.replace(f"-{difference['expected']}", f"-{difference['actual']}").replace(
        "@@ -7,9 +7,9 @@", second["correct_header"]
    )
    answer = update(ada, entry.version, diff=repaired)

    assert answer["changed"] is True
    assert world.text_of(DEPLOY) == TEXT.replace("Run the build", "Run the whole build").replace(
        "Ship it to the customers.", "Ship it."
    )


def test_a_patch_that_failed_tells_the_version_it_was_compared_with(world: World, ada: Agent) -> None:
    entry = world.entry(DEPLOY, TEXT)

    details = update(ada, entry.version, diff="@@ -1 +1 @@\n-x\n+y\n")["error"]["details"]

    assert (details["current_version"], details["total_lines"]) == (entry.version, 9)


def test_a_dry_run_needs_no_request_id_and_uses_none(world: World, ada: Agent) -> None:
    entry = world.entry(DEPLOY, TEXT)
    given = {"action": "update", "path": DEPLOY, "expected_version": entry.version, "dry_run": True}

    for request in ({}, {"request_id": "r1"}):
        told = ada.update(**given, **request, diff=FIT)
        assert told["changed"] is True
        assert apply_diff(TEXT, told["diff"], path=DEPLOY).text == CHANGED
        assert told["entry"] == ada.read(path=DEPLOY)["entry"]
    assert world.text_of(DEPLOY) == TEXT
    # The id belongs to nobody yet: another change may have it.
    assert update(ada, entry.version, content="other\n")["changed"] is True


def test_without_a_dry_run_a_request_id_is_needed(world: World, ada: Agent) -> None:
    entry = world.entry(DEPLOY, TEXT)
    given = {"action": "update", "path": DEPLOY, "expected_version": entry.version, "diff": FIT}

    for more in ({}, {"dry_run": False}):
        error = ada.update(**given, **more)["error"]
        assert (error["code"], error["details"]["field"]) == ("INVALID_ARGUMENT", "request_id")
    assert world.text_of(DEPLOY) == TEXT


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"diff": FIT, "content": "x"}, "INVALID_ARGUMENT", "diff"),
        ({"diff": FIT, "edits": [{"old_text": "a", "new_text": "b"}]}, "INVALID_ARGUMENT", "edits"),
        ({"diff": ""}, "INVALID_ARGUMENT", "diff"),
        ({"diff": None}, "INVALID_ARGUMENT", "diff"),
        ({"diff": ["@@"]}, "INVALID_ARGUMENT", "diff"),
        ({"diff": "@@ \x00"}, "INVALID_ARGUMENT", "diff"),
        ({"diff": "@@ \ud800"}, "INVALID_ARGUMENT", "diff"),
        ({"diff": "x" * (limits.DIFF_MAX_BYTES + 1)}, "LIMIT_EXCEEDED", "diff"),
        ({"edits": []}, "INVALID_ARGUMENT", "edits"),
        ({"edits": {}}, "INVALID_ARGUMENT", "edits"),
        ({"edits": ["a"]}, "INVALID_ARGUMENT", "edits"),
        ({"edits": [{"old_text": "a"}]}, "INVALID_ARGUMENT", "edits.new_text"),
        ({"edits": [{"old_text": "", "new_text": "b"}]}, "INVALID_ARGUMENT", "edits.old_text"),
        ({"edits": [{"old_text": "a", "new_text": "a"}]}, "INVALID_ARGUMENT", "edits.new_text"),
        ({"edits": [{"old_text": "a", "new_text": None}]}, "INVALID_ARGUMENT", "edits.new_text"),
        ({"edits": [{"old_text": "a", "new_text": "b", "all": True}]}, "INVALID_ARGUMENT", "edits.all"),
        ({"edits": [{"old_text": "a", "new_text": "b"}] * 101}, "LIMIT_EXCEEDED", "edits"),
        ({"diff": FIT, "dry_run": "yes"}, "INVALID_ARGUMENT", "dry_run"),
        ({"diff": FIT, "replace_all": True}, "INVALID_ARGUMENT", "replace_all"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_arguments_that_do_not_fit_are_refused_by_name_before_anything_is_looked_up(
    world: World, ada: Agent, change: dict[str, Any], code: str, field: str
) -> None:
    for path in (DEPLOY, "Eng/none.md"):
        error = update(ada, "v0", path=path, **change)["error"]
        assert (error["code"], error["details"]["field"].split("[")[0]) == (code, field)


def test_a_hidden_entry_and_a_missing_one_answer_a_diff_alike(world: World, ada: Agent) -> None:
    hidden = world.entry("Secret/Codes.md", TEXT)

    for change in (
        {"diff": FIT},
        {"edits": [{"old_text": "Ship", "new_text": "x"}]},
        {"diff": FIT, "dry_run": True},
    ):
        answers = [
            update(ada, hidden.version, path=path, **change) for path in ("Secret/Codes.md", "Secret/none.md")
        ]
        assert answers[0] == answers[1]
        assert answers[0]["error"]["code"] == "NOT_FOUND"


def test_a_reader_learns_nothing_from_diffs(world: World, ada: Agent) -> None:
    world.grant("ada", Role.READER, "Pay")
    entry = world.entry("Pay/Deploy.md", TEXT)

    for version in (entry.version, "v0"):
        for diff in (FIT, "@@ -1 +1 @@\n-x\n+y\n"):
            answer = update(ada, version, path="Pay/Deploy.md", diff=diff)
            assert (answer["error"]["code"], answer["error"]["details"]) == ("FORBIDDEN", {})
