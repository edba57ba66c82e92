"""Each limit of a call: what just fits is taken, one more is refused and changes nothing.

The 10 MiB of content are in test_sizes.py, diffs and edits in tests/patching, names and paths in tests/core.
"""

import datetime as dt
from typing import Any

import pytest

from core import clock, limits
from tests.mcpapi.agent import Agent
from tests.world import World

pytestmark = pytest.mark.django_db


def create(**changed: Any) -> dict[str, Any]:
    whole = {
        "action": "create",
        "request_id": "r1",
        "folder_path": "Eng",
        "filename": "A.md",
        "type": "note",
        "title": "A",
        "content": "text\n",
    }
    return whole | changed


def of_update(field: str, value: object) -> dict[str, Any]:
    return {"metadata": {field: value}}


SEEDS_LIMITS: list[tuple[str, Any, Any, str]] = [
    ("title", "é" * 200, "é" * 201, "characters"),
    ("description", "é" * 4_000, "é" * 4_001, "characters"),
    ("tags", ["é" * 64], ["é" * 65], "characters"),
    ("tags", [f"t{n}" for n in range(50)], [f"t{n}" for n in range(51)], "tags"),
]


@pytest.mark.parametrize(("field", "fitting", "too_much", "unit"), SEEDS_LIMITS)
def test_what_just_fits_is_taken_and_one_more_refused(
    world: World, ada: Agent, field: str, fitting: Any, too_much: Any, unit: str
) -> None:
    refused = ada.update(**create(**{field: too_much}))
    nothing = ada.browse(action="entries", folder_path="Eng")["entries"]
    made = ada.update(**create(**{field: fitting}, request_id="r2"))
    version = made["entry"]["version"]
    change = {"action": "update", "path": "Eng/A.md", "expected_version": version}
    changed_too_much = ada.update(**change, **of_update(field, too_much), request_id="r3")
    changed = ada.update(**change, **of_update(field, fitting), request_id="r4")

    assert refused["error"]["code"] == changed_too_much["error"]["code"] == "LIMIT_EXCEEDED"
    assert refused["error"]["details"]["unit"] == unit
    assert nothing == []
    assert made["entry"][field] == changed["entry"][field] == fitting
    assert changed["entry"]["version"] == version


@pytest.mark.parametrize(
    ("field", "fitting", "too_much"), [("request_id", "r" * 128, "r" * 129), ("reason", "é" * 500, "é" * 501)]
)
def test_so_with_what_accompanies_a_change(
    world: World, ada: Agent, field: str, fitting: str, too_much: str
) -> None:
    made = ada.update(**create())
    change = {
        "action": "update",
        "path": "Eng/A.md",
        "expected_version": made["entry"]["version"],
        "content": "new\n",
        "request_id": "r2",
    }

    refused = ada.update(**(change | {field: too_much}))
    still = ada.read(path="Eng/A.md")["content"]
    changed = ada.update(**(change | {field: fitting}))

    assert refused["error"]["code"] == "LIMIT_EXCEEDED"
    assert refused["error"]["details"] == {"field": field, "limit": len(fitting), "unit": "characters"}
    assert still == "text\n"
    assert changed["changed"] is True


def test_a_page_has_fifty_rows_unless_told_otherwise_and_a_hundred_at_most(world: World, ada: Agent) -> None:
    for number in range(limits.PAGE_MAX + 1):
        world.entry(f"Eng/e{number:03d}.md", "needle\n")

    listed, found = [], []
    for more in ({}, {"limit": 100}, {"limit": 1}):
        listed.append(len(ada.browse(action="entries", folder_path="Eng", **more)["entries"]))
        search = ada.call("read_knowledgebase", action="search", query="needle", **more)
        found.append(len(search["results"]))
    assert listed == found == [50, 100, 1]
    for limit in (0, 101):
        refused = ada.browse(action="entries", folder_path="Eng", limit=limit)
        assert (refused["error"]["code"], refused["error"]["details"]["field"]) == (
            "INVALID_ARGUMENT",
            "limit",
        )


def test_a_request_id_means_a_new_call_when_its_seven_days_are_over(
    world: World, ada: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ada.update(**create())
    other = create(filename="B.md")
    at = clock.now()

    monkeypatch.setattr(clock, "now", lambda: at + dt.timedelta(days=limits.OUTCOME_DAYS, seconds=-1))
    within = ada.update(**create()), ada.update(**other)
    monkeypatch.setattr(clock, "now", lambda: at + dt.timedelta(days=limits.OUTCOME_DAYS, seconds=1))
    afterwards = ada.update(**other)

    assert within[0] == first
    assert within[1]["error"]["code"] == "REQUEST_ID_REUSE"
    assert afterwards["entry"]["path"] == "Eng/B.md"
