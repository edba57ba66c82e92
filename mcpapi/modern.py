"""MCP of revision 2026-07-28: each request stands alone and says in itself which revision it speaks.

Pure: headers and message in, status and body out. It knows neither Django nor the library that speaks the older
revisions.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from mcpapi import introduction
from mcpapi.envelope import ToolResult, UnknownTool
from mcpapi.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Message

VERSION = "2026-07-28"
# Revisions that begin with an initialize request and are spoken elsewhere.
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

# Lists differ by token, and a revoked token must show at once.
NOT_CACHED: Mapping[str, Any] = {"ttlMs": 0, "cacheScope": "private"}

_ENCODED_HEADER = re.compile(r"=\?base64\?(.*)\?=")


@dataclass(frozen=True, slots=True)
class Answer:
    """The status, and the JSON-RPC body unless there is none."""

    status: HTTPStatus
    body: Mapping[str, Any] | None = None


def is_spoken_by(headers: Mapping[str, str], message: Message) -> bool:
    """Whether the message is of this revision, or of one nobody knows. The rest is for the handshake revisions."""
    version = headers.get(VERSION_HEADER)
    if version is None:
        says_so = METHOD_HEADER in headers
    else:
        # A header that only this revision has, beside an older version, is a client that sends it always.
        says_so = version not in HANDSHAKE_VERSIONS
    return says_so or VERSION_KEY in message.meta or message.method == "server/discover"


def handle(
    headers: Mapping[str, str],
    message: Message,
    *,
    list_tools: Callable[[], Sequence[Mapping[str, Any]]],
    call_tool: Callable[[str, Mapping[str, Any]], ToolResult],
) -> Answer:
    """Answer one message. ``headers`` are looked up by lowercase names; ``call_tool`` may raise UnknownTool."""
    if message.is_notification:
        return _unsupported(message, headers.get(VERSION_HEADER, "")) or Answer(HTTPStatus.ACCEPTED)
    refusal = _check_request(headers, message)
    if refusal is not None:
        return refusal
    if message.method == "server/discover":
        return _discovered(message)
    if message.method == "tools/list":
        return _listed(message, list_tools)
    if message.method == "tools/call":
        return _called(message, call_tool)
    return error(message, METHOD_NOT_FOUND, "This server has no such method.")


def error(message: Message, code: int, sentence: str, data: Mapping[str, Any] | None = None) -> Answer:
    """A JSON-RPC error, with the HTTP status that this revision gives it."""
    found: dict[str, Any] = {"code": code, "message": sentence}
    if data is not None:
        found["data"] = data
    status = HTTPStatus.NOT_FOUND if code == METHOD_NOT_FOUND else HTTPStatus.BAD_REQUEST
    return Answer(status, {"jsonrpc": "2.0", "id": encoded_id(message.request_id), "error": found})


def tool_arguments(params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | str:
    """Name and arguments of a ``tools/call``, or the sentence that says what is wrong with them."""
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        return "params.name must be the name of a tool."
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return "params.arguments must be an object."
    return name, arguments


def encoded_id(request_id: str | int | None) -> msgspec.Raw:
    """A request's id for a body: whole numbers of any size come back as they came."""
    return msgspec.Raw(json.dumps(request_id).encode())


def _check_request(headers: Mapping[str, str], message: Message) -> Answer | None:
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in message.meta]
    if missing:
        return error(message, INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    version = message.meta[VERSION_KEY]
    if headers.get(VERSION_HEADER) != version:
        return error(message, HEADER_MISMATCH, "The header MCP-Protocol-Version differs from params._meta.")
    if headers.get(METHOD_HEADER) != message.method:
        return error(message, HEADER_MISMATCH, "The header Mcp-Method differs from the method.")
    name = message.params.get("name")
    if message.method == "tools/call" and name is not None and _decoded(headers.get(NAME_HEADER)) != name:
        return error(message, HEADER_MISMATCH, "The header Mcp-Name differs from params.name.")
    unsupported = _unsupported(message, version)
    if unsupported is not None:
        return unsupported
    if not isinstance(message.meta[CAPABILITIES_KEY], dict):
        return error(message, INVALID_PARAMS, f"params._meta {CAPABILITIES_KEY} must be an object.")
    return None


def _unsupported(message: Message, version: str) -> Answer | None:
    if version == VERSION:
        return None
    data = {"supported": [VERSION], "requested": version}
    return error(message, UNSUPPORTED_VERSION, "This protocol version is not supported.", data)


def _discovered(message: Message) -> Answer:
    return _result(
        message,
        {
            "supportedVersions": [VERSION],
            "capabilities": {"tools": {}},
            "instructions": introduction.INSTRUCTIONS,
            **NOT_CACHED,
        },
    )


def _listed(message: Message, list_tools: Callable[[], Sequence[Mapping[str, Any]]]) -> Answer:
    if message.params.get("cursor") is not None:
        return error(message, INVALID_PARAMS, "The list has one page; there is no such cursor.")
    return _result(message, {"tools": list_tools(), **NOT_CACHED})


def _called(message: Message, call_tool: Callable[[str, Mapping[str, Any]], ToolResult]) -> Answer:
    asked = tool_arguments(message.params)
    if isinstance(asked, str):
        return error(message, INVALID_PARAMS, asked)
    try:
        result = call_tool(*asked)
    except UnknownTool as unknown:
        return error(message, INVALID_PARAMS, unknown.sentence)
    return _result(
        message,
        {
            "content": [{"type": "text", "text": result.text}],
            "structuredContent": msgspec.Raw(result.encoded),
            "isError": result.is_error,
        },
    )


def _result(message: Message, result: Mapping[str, Any]) -> Answer:
    server = {"name": introduction.NAME, "version": introduction.VERSION}
    whole = {"resultType": "complete", **result, "_meta": {SERVER_KEY: server}}
    return Answer(HTTPStatus.OK, {"jsonrpc": "2.0", "id": encoded_id(message.request_id), "result": whole})


def _decoded(header: str | None) -> str | None:
    # What does not fit into a header travels as =?base64?…?=. Only the canonical encoding counts.
    encoded = _ENCODED_HEADER.fullmatch(header or "")
    if encoded is None:
        return header
    try:
        decoded = base64.b64decode(encoded[1], validate=True)
        if base64.b64encode(decoded).decode() != encoded[1]:
            return None
        return decoded.decode("utf-8")
    except (binascii.Error, ValueError):
        return None
