"""Revision 2026-07-28 as a pure function: what each request must say, and what it is told when it does not."""

import base64
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import pytest

from core.errors import NotFound
from mcpapi import envelope, introduction, modern
from mcpapi.envelope import ToolResult, UnknownTool
from mcpapi.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Message

META: dict[str, Any] = {modern.VERSION_KEY: modern.VERSION, modern.CAPABILITIES_KEY: {}}
TOOLS: list[Mapping[str, Any]] = [{"name": "one"}, {"name": "two"}]


def call_tool(name: str, arguments: Mapping[str, Any]) -> ToolResult:
    if name != "one":
        raise UnknownTool
    return (
        envelope.failure(NotFound()) if "refuse" in arguments else envelope.success({"said": dict(arguments)})
    )


def ask(
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    meta: object = META,
    request_id: str | int | None = 7,
    **headers: str | None,
) -> modern.Answer:
    """One request with the headers that belong to it; a header set to None is left out."""
    params = dict(params or {})
    given: dict[str, str | None] = {
        "mcp-protocol-version": modern.VERSION,
        "mcp-method": method,
        "mcp-name": params["name"] if isinstance(params.get("name"), str) else None,
    }
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    message = Message(method, params | ({} if meta is None else {"_meta": meta}), request_id)
    return modern.handle(
        {name: value for name, value in given.items() if value is not None},
        message,
        list_tools=lambda: TOOLS,
        call_tool=call_tool,
    )


def body_of(answer: modern.Answer) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(msgspec.json.encode(answer.body))
    return decoded


def error_of(answer: modern.Answer) -> tuple[int, int]:
    return answer.status, body_of(answer)["error"]["code"]


def test_discovery_tells_version_abilities_and_how_to_behave() -> None:
    answer = ask("server/discover")

    result = body_of(answer)["result"]
    assert answer.status == 200
    assert result == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "instructions": introduction.INSTRUCTIONS,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "brain", "version": introduction.VERSION}},
    }


def test_a_list_belongs_to_one_token_and_is_never_kept() -> None:
    result = body_of(ask("tools/list"))["result"]

    assert result["tools"] == TOOLS
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
    assert "nextCursor" not in result


def test_a_list_has_one_page() -> None:
    assert error_of(ask("tools/list", {"cursor": "x"})) == (400, INVALID_PARAMS)


@pytest.mark.parametrize("arguments", [{"a": 1}, {"refuse": True}])
def test_a_result_says_the_same_as_object_and_as_text(arguments: dict[str, Any]) -> None:
    result = body_of(ask("tools/call", {"name": "one", "arguments": arguments}))["result"]

    (block,) = result["content"]
    assert block["type"] == "text"
    assert json.loads(block["text"]) == result["structuredContent"]
    assert result["isError"] is ("refuse" in arguments)
    assert result["resultType"] == "complete"


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": {}}])
def test_arguments_left_out_are_none(arguments: dict[str, Any]) -> None:
    result = body_of(ask("tools/call", {"name": "one", **arguments}))["result"]

    assert result["structuredContent"] == {"said": {}}


@pytest.mark.parametrize("arguments", [[], "x", 7, True])
def test_arguments_are_an_object(arguments: Any) -> None:
    assert error_of(ask("tools/call", {"name": "one", "arguments": arguments})) == (400, INVALID_PARAMS)


@pytest.mark.parametrize("name", [None, 7, [], {}])
def test_a_tool_is_named(name: Any) -> None:
    params = {} if name is None else {"name": name}

    assert error_of(ask("tools/call", params, mcp_name=None))[0] == 400


def test_an_unknown_tool_is_a_protocol_error() -> None:
    answer = ask("tools/call", {"name": "other"})

    assert error_of(answer) == (400, INVALID_PARAMS)
    assert body_of(answer)["error"]["message"] == UnknownTool.sentence


@pytest.mark.parametrize("method", ["ping", "initialize", "prompts/list", "resources/list", "tools/Call", ""])
def test_an_unknown_method_is_404(method: str) -> None:
    assert error_of(ask(method)) == (404, METHOD_NOT_FOUND)


@pytest.mark.parametrize(
    "meta",
    [
        None,
        {},
        7,
        {modern.VERSION_KEY: modern.VERSION},
        {modern.CAPABILITIES_KEY: {}},
        {modern.VERSION_KEY: modern.VERSION, modern.CAPABILITIES_KEY: 7},
    ],
)
def test_a_request_says_version_and_abilities_of_its_client(meta: Any) -> None:
    assert error_of(ask("tools/list", meta=meta)) == (400, INVALID_PARAMS)


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_protocol_version": None},
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_protocol_version": "2026-07-28, 2026-07-28"},
        {"mcp_method": None},
        {"mcp_method": "tools/call"},
        {"mcp_method": "TOOLS/LIST"},
    ],
)
def test_headers_agree_with_the_message(headers: dict[str, str | None]) -> None:
    assert error_of(ask("tools/list", None, **headers)) == (400, modern.HEADER_MISMATCH)


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize("name", ["one", encoded("one")])
def test_the_name_may_travel_plain_or_encoded(name: str) -> None:
    assert ask("tools/call", {"name": "one"}, mcp_name=name).status == 200


@pytest.mark.parametrize(
    "name", [None, "", "two", "ONE", "=?base64?b25l", encoded("two"), "=?base64?b25l!?=", "=?base64?b25m?="]
)
def test_another_name_in_the_header_is_a_mismatch(name: str | None) -> None:
    answer = ask("tools/call", {"name": "one"}, mcp_name=name)

    assert error_of(answer) == (400, modern.HEADER_MISMATCH)


@pytest.mark.parametrize("version", ["2027-01-01", "1", "", "draft"])
def test_an_unknown_version_is_told_which_are_known(version: str) -> None:
    meta = {**META, modern.VERSION_KEY: version}

    answer = ask("tools/list", meta=meta, mcp_protocol_version=version)

    assert error_of(answer) == (400, modern.UNSUPPORTED_VERSION)
    assert body_of(answer)["error"]["data"] == {"supported": ["2026-07-28"], "requested": version}


def test_a_version_that_is_no_text_never_matches_its_header() -> None:
    meta = {**META, modern.VERSION_KEY: 20260728}

    assert error_of(ask("tools/list", meta=meta))[0] == 400


def test_a_notification_gets_no_body() -> None:
    assert ask("notifications/cancelled", request_id=None) == modern.Answer(HTTPStatus.ACCEPTED)
    assert error_of(ask("notifications/x", request_id=None, mcp_protocol_version="1")) == (
        400,
        modern.UNSUPPORTED_VERSION,
    )


@pytest.mark.parametrize("request_id", ["", "a", "ä😀", 0, -1, 10**300])
def test_the_id_comes_back_as_it_came(request_id: str | int) -> None:
    assert body_of(ask("tools/list", request_id=request_id))["id"] == request_id
    assert body_of(ask("nothing", request_id=request_id))["id"] == request_id


@pytest.mark.parametrize(
    ("headers", "method", "meta", "is_modern"),
    [
        ({}, "initialize", {}, False),
        ({}, "tools/list", {}, False),
        ({"mcp-protocol-version": "2024-11-05"}, "tools/list", {}, False),
        ({"mcp-protocol-version": "2025-11-25"}, "tools/list", {}, False),
        ({"mcp-protocol-version": "2026-07-28"}, "tools/list", {}, True),
        ({"mcp-protocol-version": "2099-01-01"}, "initialize", {}, True),
        ({"mcp-method": "tools/list"}, "tools/list", {}, True),
        ({"mcp-method": "initialize", "mcp-protocol-version": "2025-11-25"}, "initialize", {}, False),
        ({}, "server/discover", {}, True),
        ({}, "tools/list", META, True),
        ({"mcp-protocol-version": "2025-11-25"}, "tools/list", META, True),
    ],
)
def test_which_era_a_message_belongs_to(
    headers: dict[str, str], method: str, meta: dict[str, Any], is_modern: bool
) -> None:
    message = Message(method, {"_meta": meta}, 1)

    assert modern.is_spoken_by(headers, message) is is_modern
