"""Bad input of every kind changes nothing: no file of the data directory, no row of the database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core import limits
from core.types import Capability, Role
from mcpapi import modern
from tests.mcpapi.agent import META, Agent, Era
from tests.mcpapi.images import image_of_database, image_of_disk
from tests.world import World

DEEP = "[" * 10_000 + "]" * 10_000
CREATE = (
    '"action":"create","request_id":"bad","folder_path":"Eng","filename":"Bad.md","type":"note","title":"Bad",'
    '"content":"x"'
)
UPDATE = '"action":"update","request_id":"bad","path":"Eng/A.md","expected_version":"v0"'

# Arguments as the text that is sent, since much of what is bad cannot be said by an encoder.
ARGUMENTS = [
    "{}",
    '{"action":"create"}',
    '{"action":"nothing"}',
    '{"action":null}',
    f"{{{CREATE},{CREATE}}}",
    f'{{{CREATE},"content":"y"}}',
    f'{{{CREATE},"bogus":1}}',
    f'{{{CREATE},"description":null}}',
    f'{{{CREATE},"tags":"a"}}',
    f'{{{CREATE},"tags":["a","a"]}}',
    f'{{{CREATE},"tags":[["a"]]}}',
    f'{{{CREATE},"tags":{DEEP[:400]}{DEEP[-400:]}}}',
    CREATE.replace('"x"', '"\\ud800"').join("{}"),
    CREATE.replace('"x"', '"\\u0000"').join("{}"),
    CREATE.replace('"x"', '"\\u001b[31m"').join("{}"),
    CREATE.replace('"x"', "7").join("{}"),
    CREATE.replace('"x"', "true").join("{}"),
    CREATE.replace('"x"', '["x"]').join("{}"),
    CREATE.replace('"bad"', '"bad id"').join("{}"),
    CREATE.replace('"bad"', f'"{"r" * 129}"').join("{}"),
    CREATE.replace('"bad"', "10e400").join("{}"),
    CREATE.replace('"bad"', "9" * 10_000).join("{}"),
    CREATE.replace('"Bad.md"', '"../../Bad.md"').join("{}"),
    CREATE.replace('"Bad.md"', '".registry.jsonl"').join("{}"),
    CREATE.replace('"Bad.md"', '"CON.md"').join("{}"),
    CREATE.replace('"Bad.md"', '"a.md"').join("{}"),
    CREATE.replace('"Bad.md"', f'"{"f" * 65}.md"').join("{}"),
    CREATE.replace('"Eng"', '"Eng/../../private"').join("{}"),
    CREATE.replace('"Eng"', '"/etc"').join("{}"),
    CREATE.replace('"Eng"', '"Secret"').join("{}"),
    CREATE.replace('"Eng"', '"Pay"').join("{}"),
    CREATE.replace('"Eng"', '"Nowhere"').join("{}"),
    CREATE.replace('"note"', '"Note"').join("{}"),
    f'{{{UPDATE},"content":"y"}}',
    f"{{{UPDATE}}}",
    f'{{{UPDATE},"metadata":{{}}}}',
    f'{{{UPDATE},"metadata":{{"title":"a","title":"b"}}}}',
    f'{{{UPDATE},"metadata":{{"title":null}}}}',
    f'{{{UPDATE},"content":"y","entry_id":"ent_x"}}',
    f'{{{UPDATE},"content":"y","reason":"{"r" * 501}"}}',
    '{"action":"delete","request_id":"bad","path":"Eng/A.md","expected_version":"v0"}',
    '{"action":"delete","request_id":"bad","path":"Eng/none.md","expected_version":"v0"}',
    '{"action":"create_folder","request_id":"bad","folder_path":"Eng","name":".."}',
    '{"action":"create_folder","request_id":"bad","folder_path":"Eng","name":"a/b"}',
    '{"action":"create_folder","request_id":"bad","folder_path":"Eng","name":"sub"}',
    '{"action":"create_folder","request_id":"bad","folder_path":"Eng/Sub","name":""}',
]

# Whole bodies that are no call at all.
BODIES = [
    b"{",
    b"\xff\xfe",
    b"[]",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"update_knowledgebase","arguments":NaN}}',
    DEEP.encode(),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + DEEP + "}").encode(),
    (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"update_knowledgebase","arguments":'
        f'{{{CREATE},"tags":{DEEP}}}}}}}'
    ).encode(),
    f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"x","params":{{"arguments":{{{CREATE}}}}}}}'.encode(),
]


@pytest.fixture
def furnished(world: World, ada: Agent) -> Iterator[Agent]:
    """Ada edits Eng, reads Pay and does not see Secret. All must stand as it stood when the test ends."""
    world.entry("Eng/A.md", "a\n")
    world.folder("Eng/Sub")
    world.entry("Pay/B.md", "b\n")
    world.entry("Secret/C.md", "c\n")
    world.grant("ada", Role.READER, "Pay")
    ada.browse(action="folders")  # the first use of a token is noted
    yield ada
    for path, content in (("Eng/A.md", "a\n"), ("Pay/B.md", "b\n"), ("Secret/C.md", "c\n")):
        assert world.text_of(path) == content


def test_bad_arguments_change_nothing(furnished: Agent, data_dir: Path) -> None:
    before = image_of_disk(data_dir), image_of_database()

    for arguments in ARGUMENTS:
        reply = furnished.raw_call("update_knowledgebase", arguments)
        answer = furnished.result(reply)
        assert "error" in answer, arguments[:200]
        assert answer["error"]["code"] != "INTERNAL_ERROR", arguments[:200]

    assert (image_of_disk(data_dir), image_of_database()) == before


def test_bad_bodies_change_nothing(furnished: Agent, data_dir: Path) -> None:
    before = image_of_disk(data_dir), image_of_database()

    for body in BODIES:
        headers = furnished.headers("tools/call", {"name": "update_knowledgebase"})
        reply = furnished.send(body, headers)
        # Python 3.12 and later read on where 3.11 gives up; both refuse.
        assert reply.status == 400 or "error" in furnished.result(reply)

    assert (image_of_disk(data_dir), image_of_database()) == before


def test_a_call_from_outside_changes_nothing(furnished: Agent, data_dir: Path) -> None:
    before = image_of_disk(data_dir), image_of_database()
    good = furnished.message(
        "tools/call", {"name": "update_knowledgebase", "arguments": json.loads(f"{{{CREATE}}}")}
    )
    headers = furnished.headers("tools/call", {"name": "update_knowledgebase"})

    statuses = [
        furnished.send(json.dumps(good).encode(), {**headers, **change}).status
        for change in (
            {"Authorization": ""},
            {"Authorization": "Bearer brn_" + "x" * 43},
            {"Origin": "https://evil.example"},
            {"Content-Type": "text/plain"},
            {"MCP-Protocol-Version": "1"},
            {"MCP-Protocol-Version": modern.VERSION, "Mcp-Method": "tools/list"},
        )
    ]

    assert statuses == [401, 401, 403, 415, 400, 400]
    assert (image_of_disk(data_dir), image_of_database()) == before


def test_a_read_connection_changes_nothing(world: World, furnished: Agent, data_dir: Path) -> None:
    reader = Agent(world.token("ada", capability=Capability.READ), furnished.era)
    reader.browse(action="folders")
    before = image_of_disk(data_dir), image_of_database()

    reply = reader.raw_call("update_knowledgebase", f"{{{CREATE}}}")

    assert reply.json["error"]["code"] == -32602
    assert (image_of_disk(data_dir), image_of_database()) == before


def test_a_key_that_stands_twice_is_named(furnished: Agent) -> None:
    for arguments, field in (
        (f'{{{CREATE},"content":"y"}}', "content"),
        (f'{{{UPDATE},"metadata":{{"tags":[],"title":"a","title":"b"}}}}', "metadata.title"),
        (f'{{"action":"create",{CREATE}}}', "action"),
    ):
        error = furnished.result(furnished.raw_call("update_knowledgebase", arguments))["error"]
        assert (error["code"], error["details"]["field"]) == ("INVALID_ARGUMENT", field)


@pytest.mark.parametrize("digits", [30, 400, 5_000, 200_000])
def test_a_number_of_any_length_is_only_a_number(furnished: Agent, digits: int) -> None:
    number = "9" * digits

    page = furnished.result(
        furnished.raw_call("browse_knowledgebase", f'{{"action":"folders","limit":{number}}}')
    )
    lines = furnished.result(
        furnished.raw_call(
            "read_knowledgebase", f'{{"action":"read","path":"Eng/A.md","start_line":1,"end_line":{number}}}'
        )
    )

    assert page["error"]["details"]["field"] == "limit"
    # Beyond what anybody can mean it is no whole number any more.
    assert lines.get("content") == "a\n" or lines["error"]["details"]["field"] == "end_line"


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_in_json_is_a_parse_error(furnished: Agent, bad: str) -> None:
    reply = furnished.raw_call("browse_knowledgebase", f'{{"action":"folders","limit":{bad}}}')

    assert (reply.status, reply.json["error"]["code"]) == (400, -32700)


def test_many_strange_shapes_never_break_the_server(furnished: Agent, era: Era) -> None:
    shapes = [
        "1e999",
        "-0",
        "0.0",
        '""',
        '"\\u0000"',
        '"\\ud800"',
        "[]",
        "{}",
        "[[]]",
        '{"a":{"a":1}}',
        "false",
        DEEP[:50] + DEEP[-50:],
    ]
    tools = [
        "browse_knowledgebase",
        "read_knowledgebase",
        "update_knowledgebase",
        "manage_knowledgebase_access",
    ]
    fields = [
        "action",
        "path",
        "entry_id",
        "folder_id",
        "limit",
        "cursor",
        "tags",
        "metadata",
        "request_id",
        "\\u0000",
    ]

    for tool in tools:
        for field in fields:
            for shape in shapes:
                reply = furnished.raw_call(tool, f'{{"action":"read","{field}_":{shape},"{field}":{shape}}}')
                error = furnished.result(reply)["error"]
                assert error["code"] == "INVALID_ARGUMENT", (tool, field, shape)
    for method in ("tools/list", "tools/call", "initialize", "ping", "server/discover"):
        meta = json.dumps(META) if era == "modern" else "{}"
        for shape in shapes:
            given = ",".join(
                f'"{name}":{shape}' for name in ("name", "cursor", "protocolVersion", "capabilities")
            )
            body = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{meta},{given}}}}}'
            reply = furnished.send(body.encode(), furnished.headers(method, {}))
            assert reply.status in (200, 400, 404)


def test_one_character_over_every_limit_is_told_and_not_stored(furnished: Agent, data_dir: Path) -> None:
    before = image_of_disk(data_dir)
    for change in (
        {"title": "t" * (limits.TITLE_MAX_CHARACTERS + 1)},
        {"description": "d" * (limits.DESCRIPTION_MAX_CHARACTERS + 1)},
        {"tags": ["t" * (limits.TAG_MAX_CHARACTERS + 1)]},
        {"folder_path": "f" * (limits.PATH_MAX_BYTES + 1)},
    ):
        given: dict[str, Any] = {**json.loads(f"{{{CREATE}}}"), **change}
        assert furnished.update(**given)["error"]["code"] == "LIMIT_EXCEEDED"
    assert image_of_disk(data_dir) == before
