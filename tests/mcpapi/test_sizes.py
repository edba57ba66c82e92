"""Ten MiB of text, in every way of writing it, and one byte more."""

import hashlib
import json

import pytest

from core import limits
from tests.mcpapi.agent import Agent
from tests.world import World

MAX = limits.CONTENT_MAX_BYTES


def create(content: str, request_id: str = "big") -> str:
    return (
        f'{{"action":"create","request_id":"{request_id}","folder_path":"Eng","filename":"Big.md","type":"note",'
        f'"title":"Big","content":"{content}"}}'
    )


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        pytest.param("x" * MAX, "x" * MAX, id="one byte a character"),
        pytest.param("é" * (MAX // 2), "é" * (MAX // 2), id="two bytes a character"),
        pytest.param("\\u00e9" * (MAX // 2), "é" * (MAX // 2), id="two bytes a character, escaped"),
        pytest.param("\\ud83d\\ude00" * (MAX // 4), "😀" * (MAX // 4), id="four bytes a character, escaped"),
    ],
)
def test_ten_mib_of_text_go_in_and_come_out(world: World, ada: Agent, written: str, stored: str) -> None:
    answer = ada.result(ada.raw_call("update_knowledgebase", create(written)))

    entry = answer["entry"]
    assert entry["size_bytes"] == MAX
    assert entry["content_hash"] == hashlib.sha256(stored.encode()).hexdigest()
    reading = ada.read(path="Eng/Big.md")
    assert reading["content"] == stored
    assert reading["version"] == entry["version"]


@pytest.mark.parametrize(
    "written",
    [
        pytest.param("x" * (MAX + 1), id="one byte a character"),
        pytest.param("x" + "é" * (MAX // 2), id="two bytes a character"),
        pytest.param("x" + "\\u00e9" * (MAX // 2), id="two bytes a character, escaped"),
        pytest.param("\\r\\n" * (MAX // 2) + "x", id="less after normalising, but measured before"),
    ],
)
def test_one_byte_more_is_over_the_limit(world: World, ada: Agent, written: str) -> None:
    error = ada.result(ada.raw_call("update_knowledgebase", create(written)))["error"]

    assert error["code"] == "LIMIT_EXCEEDED"
    assert error["details"] == {"field": "content", "limit": MAX, "unit": "bytes"}
    assert ada.browse(action="entries", folder_path="Eng")["entries"] == []


def test_three_lines_of_a_large_entry_cost_three_lines(world: World, ada: Agent) -> None:
    """D8: what goes over the wire does not grow with the entry."""
    line = "A line of the handbook, long enough to be one.\n"
    sizes = []
    for name, lines in (("Small.md", 1_000), ("Large.md", 190_000)):
        world.entry(f"Eng/{name}", line * lines)
        arguments = {"action": "read", "path": f"Eng/{name}", "start_line": 501, "end_line": 503}
        reply = ada.request("tools/call", {"name": "read_knowledgebase", "arguments": arguments})
        answer = ada.result(reply)
        assert answer["content"] == line * 3
        assert (answer["start_line"], answer["end_line"], answer["total_lines"]) == (501, 503, lines)
        assert answer["version"] == answer["entry"]["version"]
        sizes.append(len(reply.body))

    assert abs(sizes[0] - sizes[1]) < 50


def test_a_body_over_the_limit_is_refused_unread(ada: Agent) -> None:
    body = b" " * (limits.MCP_BODY_MAX_BYTES + 1)

    reply = ada.send(body, ada.headers("tools/list", {}))

    assert reply.status == 413
    assert json.loads(reply.body)["jsonrpc"] == "2.0"
