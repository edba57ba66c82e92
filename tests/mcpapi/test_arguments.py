"""The strict models: what each action takes and what it refuses, naming the field."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from core import limits
from core.errors import BrainError, InvalidArgument, LimitExceeded
from core.types import EntryType
from mcpapi import arguments, catalog, dispatch, messages
from mcpapi.operations import Action
from mcpapi.tools import update_knowledgebase
from tests.mcpapi.callers import WRITER

ACTIONS = [(tool, action) for tool in catalog.TOOLS for action in tool.actions]
IDS = [f"{tool.name}.{action.name}" for tool, action in ACTIONS]

SECTIONS: list[dict[str, Any]] = [
    {"path": "A.md", "section": {"heading": "A"}},
    {"path": "A.md", "section": {"heading": "A", "occurrence": 2}},
]
# Arguments that fit, one for each way an action can be called.
GOOD: dict[str, list[dict[str, Any]]] = {
    "folders": [
        {},
        {"folder_id": "fld_x"},
        {"folder_path": ""},
        {"folder_path": "A/B", "recursive": True, "limit": 1, "cursor": "c"},
    ],
    "entries": [
        {},
        {"folder_path": "A", "recursive": False, "limit": 100},
        {"type": "skill", "tags": ["a", "b"], "name_contains": "x"},
    ],
    "search": [{"query": "x"}, {"query": "x", "folder_id": "fld_x", "type": "note", "case_sensitive": True}],
    "read": [
        {"path": "A.md"},
        {"entry_id": "ent_x"},
        *SECTIONS,
        {"path": "A.md", "start_line": 1, "end_line": 10**30},
    ],
    "create": [
        {
            "request_id": "r",
            "folder_path": "",
            "filename": "A.md",
            "type": "fact",
            "title": "A",
            "content": "",
        },
        {
            "request_id": "r",
            "folder_id": "fld_x",
            "filename": "A.md",
            "type": "note",
            "title": "A",
            "content": "x",
            "description": "",
            "tags": ["a", "b"],
        },
    ],
    "update": [
        {"request_id": "r", "path": "A.md", "expected_version": "v", "content": ""},
        {"request_id": "r", "entry_id": "e", "expected_version": "v", "metadata": {"tags": []}, "reason": ""},
        {"request_id": "r", "path": "A.md", "expected_version": "v", "diff": "@@ -1 +1 @@\n-a\n+b\n"},
        {
            "path": "A.md",
            "expected_version": "v",
            "edits": [{"old_text": "a", "new_text": ""}],
            "dry_run": True,
        },
        {
            "request_id": "r",
            "path": "A.md",
            "expected_version": "v",
            "content": "x",
            "metadata": {"title": "A", "description": "", "tags": ["t"], "type": "skill"},
        },
    ],
    "delete": [{"request_id": "r" * 128, "path": "A.md", "expected_version": "v"}],
    "create_folder": [{"request_id": "A-Z_09", "folder_path": "", "name": "A"}],
    "inspect": [{}, {"folder_id": "fld_x"}, {"folder_path": ""}],
    "explain": [{"folder_path": ""}, {"folder_id": "fld_x", "identity_id": "idn_x", "role": "owner"}],
    "grant": [
        {
            "request_id": "r",
            "folder_path": "",
            "identity_id": "idn_x",
            "role": "owner",
            "expected_acl_version": 0,
        }
    ],
    "revoke": [
        {"request_id": "r", "folder_id": "fld_x", "identity_id": "idn_x", "expected_acl_version": 10**30}
    ],
    "create_service_account": [{"request_id": "r", "name": "bot", "description": ""}],
    "disable_service_account": [{"request_id": "r", "identity_id": "idn_x"}],
    "list": [{"what": "folders"}, {"what": "identities", "query": "x", "limit": 100, "cursor": "c"}],
}


def base(action: str) -> dict[str, Any]:
    """Arguments that fit."""
    return {"action": action, **GOOD[action][-1]}


def action_named(name: str) -> Action:
    (action,) = [action for _, action in ACTIONS if action.name == name]
    return action


def refusal_of(action: str, given: dict[str, Any]) -> BrainError:
    """What the dispatcher's checks say before any service is called."""
    try:
        for field, problem in messages.problems(given):
            raise InvalidArgument(field, problem)
        arguments.check(action_named(action).arguments, given)
    except BrainError as refusal:
        return refusal
    raise AssertionError("it was taken")


def good_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    for action, variants in GOOD.items():
        for variant in variants:
            yield action, {"action": action, **variant}


@pytest.mark.parametrize(("action", "given"), list(good_calls()))
def test_what_fits_is_taken(action: str, given: dict[str, Any]) -> None:
    taken = arguments.check(action_named(action).arguments, given)

    assert taken.action == action


@pytest.mark.parametrize(("tool", "action"), ACTIONS, ids=IDS)
def test_the_example_in_the_description_fits(tool: Any, action: Action) -> None:
    assert arguments.check(action.arguments, action.example).action == action.name


@pytest.mark.parametrize("action", GOOD)
def test_every_required_field_is_missed_by_name(action: str) -> None:
    model = action_named(action).arguments
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    for name in required:
        given = {key: value for key, value in base(action).items() if key != name}
        if name == "action":
            continue
        refused = refusal_of(action, given)
        assert isinstance(refused, InvalidArgument)
        assert refused.details["field"] == name


@pytest.mark.parametrize("action", GOOD)
def test_null_is_refused_in_every_field(action: str) -> None:
    for name in action_named(action).arguments.model_fields:
        refused = refusal_of(action, {**base(action), name: None})
        assert isinstance(refused, InvalidArgument)
        assert refused.details["field"] == name


WRONG_TYPES: list[Any] = [7, 7.5, True, "x", [], {}, [7], {"x": 7}]


@pytest.mark.parametrize("action", GOOD)
def test_a_wrong_type_is_refused_in_every_field_and_never_bent(action: str) -> None:
    schema = action_named(action).arguments.model_json_schema()
    for name, shape in schema["properties"].items():
        if name == "action":
            continue
        (kind,) = {
            option.get("type", "object")
            for option in shape.get("anyOf", [shape])
            if option.get("type") != "null"
        }
        for wrong in WRONG_TYPES:
            if _is_a(kind, wrong):
                continue
            refused = refusal_of(action, {**base(action), name: wrong})
            assert isinstance(refused, InvalidArgument), (name, wrong)
            assert refused.details["field"] == name


def _is_a(kind: str, value: Any) -> bool:
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
    return isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))


@pytest.mark.parametrize("action", GOOD)
@pytest.mark.parametrize(
    "key", ["bogus", "Action", "content ", "constructor", "__proto__", "\ud800", "k" * 5_000]
)
def test_a_field_too_many_is_refused_by_name(action: str, key: str) -> None:
    refused = refusal_of(action, {**base(action), key: 1})

    assert isinstance(refused, InvalidArgument)
    assert refused.details["field"] == messages.shown_key(key)
    json.dumps(refused.as_dict(), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("action", "change", "field"),
    [
        ("read", {"entry_id": "ent_x"}, "path"),
        ("read", {"path": None}, "path"),
        ("update", {"entry_id": "ent_x"}, "path"),
        ("folders", {"folder_id": "fld_x"}, "folder_path"),
        ("create", {"folder_path": "A"}, "folder_path"),
        ("create", {"folder_id": None}, "folder_path"),
        ("create_folder", {"folder_path": None}, "folder_path"),
        ("inspect", {"folder_id": "fld_x"}, "folder_path"),
        ("read", {"start_line": None}, "start_line"),
        ("read", {"end_line": None}, "end_line"),
        ("read", {"start_line": 0}, "start_line"),
        ("read", {"start_line": -1}, "start_line"),
        ("read", {"end_line": 0}, "end_line"),
        ("folders", {"limit": 0}, "limit"),
        ("folders", {"limit": 101}, "limit"),
        ("folders", {"limit": -(10**300)}, "limit"),
        ("folders", {"limit": True}, "limit"),
        ("folders", {"limit": 10.0}, "limit"),
        ("folders", {"cursor": ""}, "cursor"),
        ("update", {"metadata": {}}, "metadata"),
        ("update", {"metadata": {"bogus": 1}}, "metadata.bogus"),
        ("update", {"metadata": {"title": 1}}, "metadata.title"),
        ("update", {"metadata": {"title": None}}, "metadata.title"),
        ("update", {"metadata": {"tags": [1]}}, "metadata.tags"),
        ("update", {"metadata": {"tags": [None]}}, "metadata.tags"),
        ("update", {"metadata": {"type": "poem"}}, "metadata.type"),
        ("update", {"metadata": None, "content": None}, "content"),
        ("create", {"type": "Note"}, "type"),
        ("create", {"tags": ["a", 1]}, "tags"),
        ("delete", {"request_id": "\ud800"}, "request_id"),
        ("folders", {"cursor": "\ud800"}, "cursor"),
        ("delete", {"request_id": ""}, "request_id"),
        ("delete", {"request_id": "a b"}, "request_id"),
        ("delete", {"request_id": "a\n"}, "request_id"),
        ("delete", {"request_id": "ä"}, "request_id"),
        ("delete", {"request_id": "a/b"}, "request_id"),
        ("delete", {"expected_version": ""}, "expected_version"),
        ("delete", {"expected_version": "v 1"}, "expected_version"),
        ("delete", {"path": None, "entry_id": ""}, "entry_id"),
        ("delete", {"path": None, "entry_id": "../x"}, "entry_id"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(action: str, change: dict[str, Any], field: str) -> None:
    # None here: the field is left out.
    given = base(action) if action != "folders" else {"action": "folders", "folder_path": "A"}
    for key, value in change.items():
        if value is None:
            del given[key]
        else:
            given[key] = value

    refused = refusal_of(action, given)

    assert isinstance(refused, InvalidArgument)
    assert refused.details["field"] == field


@pytest.mark.parametrize(
    ("action", "field", "most", "unit"),
    [
        ("delete", "request_id", limits.REQUEST_ID_MAX_CHARACTERS, "characters"),
        ("delete", "expected_version", limits.VERSION_MAX_CHARACTERS, "characters"),
        ("folders", "cursor", limits.CURSOR_MAX_CHARACTERS, "characters"),
        ("inspect", "folder_id", limits.ID_MAX_CHARACTERS, "characters"),
    ],
)
def test_longer_than_the_limit_is_a_limit_exceeded(action: str, field: str, most: int, unit: str) -> None:
    fits = {"action": action, **GOOD[action][0], field: "a" * most}
    arguments.check(action_named(action).arguments, fits)

    refused = refusal_of(action, {**fits, field: "a" * (most + 1)})

    assert isinstance(refused, LimitExceeded)
    assert refused.details == {"field": field, "limit": most, "unit": unit}


def test_too_many_tags_are_a_limit_exceeded_in_both_places() -> None:
    tags = [f"t{number}" for number in range(limits.TAGS_MAX + 1)]

    created = refusal_of("create", {**base("create"), "tags": tags})
    updated = refusal_of("update", {**base("update"), "metadata": {"tags": tags}})

    assert created.details == {"field": "tags", "limit": limits.TAGS_MAX, "unit": "tags"}
    assert updated.details == {"field": "metadata.tags", "limit": limits.TAGS_MAX, "unit": "tags"}


def test_of_two_faults_the_shape_is_told_before_the_limit() -> None:
    refused = refusal_of("delete", {**base("delete"), "request_id": "a" * 129, "expected_version": 7})

    assert isinstance(refused, InvalidArgument)
    assert refused.details["field"] == "expected_version"


def test_a_million_strange_fields_cost_one_look() -> None:
    refused = refusal_of("delete", {**base("delete"), **{f"k{number}": 1 for number in range(1_000_000)}})

    assert refused.details["field"] == "k0"


def test_the_types_of_entries_are_the_ones_of_the_floor() -> None:
    schema = arguments.public_schema({"create": update_knowledgebase.Create})

    assert schema["properties"]["type"]["enum"] == [kind.value for kind in EntryType]


def _hash_of(given: dict[str, Any]) -> str:
    taken = arguments.check(action_named(given["action"]).arguments, given)
    assert isinstance(taken, arguments.ChangeArguments)
    return taken.arguments_hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"description": ""}),
        ({}, {"tags": []}),
        ({"request_id": "r1"}, {"request_id": "r2"}),
    ],
)
def test_a_default_said_aloud_and_the_request_id_do_not_change_what_was_asked(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    plain = {"action": "create", **GOOD["create"][0]}

    hashes = {
        arguments.check(update_knowledgebase.Create, {**plain, **more}).arguments_hash
        for more in (one, other)
    }

    assert len(hashes) == 1


def test_whatever_else_differs_is_another_request() -> None:
    asked: list[dict[str, Any]] = [
        *({"action": action, **given} for action in ("create", "update") for given in GOOD[action]),
        *({**base("update"), field: "other"} for field in ("path", "expected_version", "content", "reason")),
        {**base("update"), "metadata": {"title": "B"}},
        base("delete"),
    ]

    hashes = [_hash_of(given) for given in asked]

    assert len(set(hashes)) == len(asked)


def test_a_hidden_or_unknown_or_wrong_action_is_one_answer() -> None:
    asked: list[Any] = ["find", "Read", "", "read ", "delete", 7, True, [], {"read": 1}]

    answers = {
        dispatch.call_tool(WRITER, "read_knowledgebase", {"action": action, "path": "A.md"}).encoded
        for action in asked
    }

    assert len(answers) == 1
    (answer,) = answers
    error = json.loads(answer)["error"]
    assert (error["code"], error["details"]["field"]) == ("INVALID_ARGUMENT", "action")
