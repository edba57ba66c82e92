"""Reading one JSON-RPC message, strictly: nothing that two readers could understand in two ways goes through.

A key that stands twice in an object is kept as a mark on that object. In the envelope it refuses the message; in the
arguments of a tool it becomes a tool result, since there the caller is a model that can put it right.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

# Deeper than any message of MCP outside the arguments; reading goes no deeper than Python's own reader.
ENVELOPE_MAX_DEPTH = 32
# Longer whole numbers are not worth their conversion, which grows with the square; they are no valid argument.
INTEGER_MAX_DIGITS = 400
KEY_SHOWN_CHARACTERS = 64
PATH_SHOWN_CHARACTERS = 256


class MalformedMessage(Exception):
    """The body is no message of MCP. Carries a JSON-RPC code, one sentence, and the id where it could be read."""

    def __init__(self, code: int, sentence: str, request_id: str | int | None = None) -> None:
        self.code = code
        self.sentence = sentence
        self.request_id = request_id
        super().__init__(sentence)


class RepeatedKey(dict[str, Any]):
    """An object in which ``key`` stood twice. What else it holds is not to be relied on."""

    def __init__(self, pairs: list[tuple[str, Any]], key: str) -> None:
        super().__init__(pairs)
        self.key = key


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or a notification where ``request_id`` is None. ``arguments`` are a tool's, as they came."""

    method: str
    params: Mapping[str, Any]
    request_id: str | int | None

    @property
    def is_notification(self) -> bool:
        """Whether nobody waits for an answer."""
        return self.request_id is None

    @property
    def meta(self) -> Mapping[str, Any]:
        """The object ``params._meta``; empty where there is none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


def read_message(body: bytes) -> Message:
    """The one message in a body. Raises MalformedMessage."""
    decoded = read_json(body)
    if not isinstance(decoded, dict):
        raise MalformedMessage(
            INVALID_REQUEST, "The body must be one JSON-RPC message; batches are not taken."
        )
    request_id = _request_id(decoded)
    _check_envelope(decoded, request_id)
    method = decoded.get("method")
    if decoded.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise MalformedMessage(INVALID_REQUEST, 'A message has "jsonrpc": "2.0" and a "method".', request_id)
    params = decoded.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise MalformedMessage(INVALID_REQUEST, "params must be an object.", request_id)
    return Message(method, params, request_id)


def read_json(body: bytes) -> Any:
    """The JSON value in a body of UTF-8; objects with a repeated key are ``RepeatedKey``. Raises MalformedMessage."""
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_not_json,
            parse_int=_integer,
        )
    except RecursionError as error:
        raise MalformedMessage(PARSE_ERROR, "The body is nested too deeply.") from error
    except ValueError as error:
        raise MalformedMessage(PARSE_ERROR, "The body is not valid JSON in UTF-8.") from error


def problems(value: Any) -> Iterator[tuple[str, str]]:
    """Each repeated key and each null in a JSON value, in the order of the text: where it is, and what it is.

    Works through any depth and length without recursion or a copy.
    """
    for where, current, _ in _walk(value):
        if current is None:
            yield where, "null is not allowed; leave the field out instead."
        elif isinstance(current, RepeatedKey):
            yield _below(where, current.key), "This key stands twice in one object."


def shown_key(key: str) -> str:
    """A caller's key as it may be told back: cut, and without lone surrogates, which no UTF-8 can carry."""
    shown = key[:KEY_SHOWN_CHARACTERS].encode("utf-8", "replace").decode()
    return shown + "…" if len(key) > KEY_SHOWN_CHARACTERS else shown


def _check_envelope(message: dict[str, Any], request_id: str | int | None) -> None:
    # The whole message but the arguments of a tool.
    for where, current, depth in _walk(message, leave_out="params.arguments"):
        if isinstance(current, RepeatedKey):
            problem = f"The key {shown_key(current.key)!r} stands twice in one object."
            raise MalformedMessage(INVALID_REQUEST, problem, request_id)
        if depth > ENVELOPE_MAX_DEPTH:
            problem = f"{where[:KEY_SHOWN_CHARACTERS]} is nested too deeply."
            raise MalformedMessage(INVALID_REQUEST, problem, request_id)


def _walk(value: Any, *, leave_out: str | None = None) -> Iterator[tuple[str, Any, int]]:
    # Everything in a JSON value with its path and depth; list items have the path of their list.
    open_levels = [iter([("", value)])]
    while open_levels:
        step = next(open_levels[-1], None)
        if step is None:
            open_levels.pop()
            continue
        where, current = step
        if leave_out is not None and where == leave_out:
            continue
        yield where, current, len(open_levels) - 1
        if isinstance(current, dict | list):
            open_levels.append(_members(where, current))


def _members(where: str, container: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(container, list):
        return ((where, item) for item in container)
    return ((_below(where, key), item) for key, item in container.items())


def _request_id(message: dict[str, Any]) -> str | int | None:
    if isinstance(message, RepeatedKey) or "id" not in message:
        return None
    request_id = message["id"]
    if isinstance(request_id, int) and not isinstance(request_id, bool):
        return request_id
    if isinstance(request_id, str) and request_id == request_id.encode("utf-8", "replace").decode():
        return request_id
    raise MalformedMessage(INVALID_REQUEST, "id must be a string or a whole number.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return RepeatedKey(pairs, key)
        seen.add(key)
    return found


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= INTEGER_MAX_DIGITS else float(digits)


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _below(path: str, key: str) -> str:
    if len(path) > PATH_SHOWN_CHARACTERS:
        return path  # deep enough to be found
    return f"{path}.{shown_key(key)}" if path else shown_key(key)
