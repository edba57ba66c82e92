"""Parameters of the address, and what they say as the arguments of a tool's action.

Each endpoint takes what its action takes, under the same names where nothing is said; so both judge alike. Here a text
becomes a number, a truth value or a list, and nothing else: bounds are the action's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from core.errors import InvalidArgument, LimitExceeded
from mcpapi.arguments import ToolArguments
from mcpapi.messages import shown_key

# More digits than any number that means something here.
WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
TRUTH = {"true": True, "false": False}
# What an address says of a parameter, in the words of JSON Schema.
TOLD = frozenset(
    {"type", "enum", "default", "pattern", "minLength", "maxLength", "minimum", "maximum", "maxItems"}
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. ``place`` is where it stands in the arguments, ``schema`` what it may be."""

    name: str
    place: tuple[str, ...]
    schema: Mapping[str, Any]
    description: str
    is_required: bool


def parameters_of(
    model: type[ToolArguments], *, renamed: Mapping[str, str], left_out: Sequence[str] = ()
) -> tuple[Parameter, ...]:
    """The parameters for the arguments of an action, in their order.

    ``renamed`` gives the name in the address for one in the arguments; ``left_out`` do not stand in the query. The
    fields of an object are parameters of their own.
    """
    schema = model.model_json_schema()
    return tuple(
        parameter
        for parameter in _fields(schema, schema.get("$defs", {}), (), is_required=True, renamed=renamed)
        if parameter.place[0] not in ("action", *left_out)
    )


def read_query(query: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """What a query string says, as arguments by name. Raises InvalidArgument.

    ``query`` is that of WSGI. Refused are bytes that are no UTF-8, parameters that do not exist, and single ones given
    twice.
    """
    known = {parameter.name: parameter for parameter in parameters}
    texts: dict[str, list[str]] = {}
    for name, text in _pairs(query):
        if name not in known:
            takes = f"It takes: {', '.join(known)}." if known else "It takes none."
            raise InvalidArgument(shown_key(name), f"There is no such parameter here. {takes}")
        texts.setdefault(name, []).append(text)
    given: dict[str, Any] = {}
    for name, values in texts.items():
        parameter = known[name]
        inner = given
        for step in parameter.place[:-1]:
            inner = inner.setdefault(step, {})
        inner[parameter.place[-1]] = _value(parameter, values)
    return given


@contextmanager
def fields_named_as(parameters: Sequence[Parameter], renamed: Mapping[str, str]) -> Iterator[None]:
    """Let a refusal name the parameter where the action names its own field."""
    names = {".".join(parameter.place): parameter.name for parameter in parameters} | dict(renamed)
    try:
        yield
    except (InvalidArgument, LimitExceeded) as refusal:
        field = refusal.details["field"]
        refusal.details["field"] = names.get(field, field)
        raise


def _fields(
    schema: Mapping[str, Any],
    definitions: Mapping[str, Any],
    above: tuple[str, ...],
    *,
    is_required: bool,
    renamed: Mapping[str, str],
) -> Iterator[Parameter]:
    for name, raw in schema["properties"].items():
        place = (*above, name)
        field = _resolved(raw, definitions)
        needed = is_required and name in schema.get("required", ())
        if "properties" in field:
            yield from _fields(field, definitions, place, is_required=needed, renamed=renamed)
            continue
        told = {key: value for key, value in field.items() if key in TOLD and value is not None}
        if "items" in field:
            told["items"] = {key: value for key, value in field["items"].items() if key in TOLD}
        yield Parameter(
            name=renamed.get(name, name),
            place=place,
            schema=told,
            description=field.get("description", ""),
            is_required=needed,
        )


def _resolved(raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    # A field that may be left out is "this or null" to the model; an address cannot say null.
    siblings = {key: value for key, value in raw.items() if key not in ("anyOf", "$ref")}
    if "$ref" in raw:
        return {**definitions[raw["$ref"].rpartition("/")[2]], **siblings}
    if "anyOf" in raw:
        (some,) = [option for option in raw["anyOf"] if option != {"type": "null"}]
        return {**_resolved(some, definitions), **siblings}
    return dict(raw)


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    for pair in query.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            yield _text(name, "query"), _text(value, name)


def _text(written: str, field: str) -> str:
    try:
        return unquote_to_bytes(written.replace("+", " ").encode("latin-1")).decode()
    except UnicodeError:
        raise InvalidArgument(shown_key(field), "This is no UTF-8.") from None


def _value(parameter: Parameter, texts: list[str]) -> Any:
    kind = parameter.schema["type"]
    if kind == "array":
        return texts
    if len(texts) > 1:
        raise InvalidArgument(parameter.name, "This stands here twice.")
    (text,) = texts
    if kind == "integer":
        if not WHOLE_NUMBER.fullmatch(text):
            raise InvalidArgument(parameter.name, "This must be a whole number.")
        return int(text)
    if kind == "boolean":
        if text not in TRUTH:
            raise InvalidArgument(parameter.name, "This must be true or false.")
        return TRUTH[text]
    return text
