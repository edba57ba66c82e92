"""What tools take: a strict model for each action, and the one flat schema that clients are shown.

The models judge shape: fields, types, lengths of what no other place looks at. Names, paths and texts are judged
by ``core.names`` and ``core.text`` in the services, before anything is looked up, so their bounds stand here only for
the schema. All numbers come from ``core.limits``.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from access.principals import Principal
from core import ids, limits
from core.errors import BrainError, InvalidArgument, LimitExceeded
from core.types import EntryLocator, FolderLocator, MutationRequest
from mcpapi import messages

WORD = r"^[A-Za-z0-9_-]+$"


class Shape(BaseModel):
    """An object that callers write: no field too many, no type bent, nothing changed afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ToolArguments(Shape):
    """The arguments of one action. Each subclass says its ``action`` as a Literal of one word."""

    action: str


def bounded(description: str | None = None, *, least: int | None = None, most: int | None = None) -> Any:
    """A text field whose bounds are told here and judged by a service."""
    bounds = {"minLength": least, "maxLength": most}
    extra: dict[str, Any] = {key: bound for key, bound in bounds.items() if bound is not None}
    return Field(description=description, json_schema_extra=extra)


EntryId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.ID_MAX_CHARACTERS,
        pattern=WORD,
        description="Its id, or path.",
    ),
]
EntryPath = Annotated[
    str,
    bounded(
        "Its path, in any case.",
        least=1,
        most=limits.PATH_MAX_BYTES,
    ),
]
FolderId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.ID_MAX_CHARACTERS,
        pattern=WORD,
        description="Its id, or folder_path.",
    ),
]
FolderPath = Annotated[
    str,
    bounded(
        "Its path; '' is the root.",
        most=limits.PATH_MAX_BYTES,
    ),
]
Recursive = Annotated[bool, Field(description="At any depth below. Default false.")]
# The words and tags of entries, as texts to look for: judged by the services like those that are written.
WantedType = Annotated[Literal["skill", "note", "fact", "source"], Field(description="Only this type.")]
WantedTag = Annotated[str, bounded(least=1, most=limits.TAG_MAX_CHARACTERS)]
WantedTags = Annotated[
    list[WantedTag], Field(max_length=limits.TAGS_MAX, description="Only with all of these tags.")
]
Limit = Annotated[
    int,
    Field(
        ge=1,
        le=limits.PAGE_MAX,
        description=f"Rows a page. Default {limits.PAGE_DEFAULT}.",
    ),
]
Cursor = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.CURSOR_MAX_CHARACTERS,
        description="next_cursor of the page before.",
    ),
]
RequestId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.REQUEST_ID_MAX_CHARACTERS,
        pattern=WORD,
        description=(
            "Your own new id for this change, of A-Z a-z 0-9 _ -. Repeat it only with the very same call."
        ),
    ),
]
ExpectedVersion = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.VERSION_MAX_CHARACTERS,
        pattern=WORD,
        description="version, as you last read or listed the entry.",
    ),
]


Arguments = TypeVar("Arguments", bound=ToolArguments)


class EntryArguments(ToolArguments):
    """The action is about one entry."""

    entry_id: EntryId | None = None
    path: EntryPath | None = None

    @model_validator(mode="after")
    def _has_one_locator(self) -> Self:
        if (self.entry_id is None) == (self.path is None):
            raise InvalidArgument("path", "Give exactly one of entry_id and path.")
        return self

    @property
    def entry(self) -> EntryLocator:
        """The locator that the caller gave."""
        return EntryLocator(entry_id=self.entry_id, path=self.path)


class FolderArguments(ToolArguments):
    """The action is about one folder, the root where none is named."""

    folder_id: FolderId | None = None
    folder_path: FolderPath | None = None

    @model_validator(mode="after")
    def _has_at_most_one_locator(self) -> Self:
        if self.folder_id is not None and self.folder_path is not None:
            raise InvalidArgument("folder_path", "Give only one of folder_id and folder_path.")
        return self

    @property
    def folder(self) -> FolderLocator:
        """The locator that the caller gave, or the root's."""
        return FolderLocator(folder_id=self.folder_id, folder_path=self.folder_path)


class NamedFolderArguments(FolderArguments):
    """The action is about one folder that the caller has to name."""

    @model_validator(mode="after")
    def _has_one_locator(self) -> Self:
        if self.folder_id is None and self.folder_path is None:
            raise InvalidArgument("folder_path", "Give exactly one of folder_id and folder_path.")
        return self


class PagedArguments(ToolArguments):
    """The action gives a list, a page at a time."""

    limit: Limit = limits.PAGE_DEFAULT
    cursor: Cursor | None = None


class PageArguments(PagedArguments, FolderArguments):
    """The action lists what is in a folder, a page at a time."""


class ChangeArguments(ToolArguments):
    """The action changes something, at most once for each ``request_id``."""

    request_id: RequestId

    @property
    def arguments_hash(self) -> str:
        """SHA-256 over what the caller asked for, without ``request_id``. A default said aloud changes nothing."""
        asked = self.model_dump(exclude={"request_id"}, exclude_defaults=True)
        canonical = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        # A lone surrogate is refused later, by the service, which can say where it stands.
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()

    def request_of(self, principal: Principal, tool: str) -> MutationRequest:
        """The caller's request. Ids belong to the identity and the tool."""
        key = ids.request_key(
            organization_id=principal.organization_id,
            identity_id=principal.identity_id,
            tool=tool,
            request_id=self.request_id,
        )
        return MutationRequest(key=key, arguments_hash=self.arguments_hash)


def check(model: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    """The arguments as the model of their action. Raises InvalidArgument, LimitExceeded."""
    for key in given:
        if key not in model.model_fields:
            raise InvalidArgument(messages.shown_key(key), _no_such_field(given["action"], model))
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise refusal_of(error) from None


def refusal_of(error: ValidationError) -> BrainError:
    """The refusal that tells the first thing wrong: shape before limits, else in the order of the fields."""
    found = error.errors(include_url=False, include_input=False)
    found.sort(key=lambda problem: problem["type"] in _OVER_LIMIT)
    problem = found[0]
    kind, context = problem["type"], problem.get("ctx", {})
    field = ".".join(messages.shown_key(part) for part in problem["loc"] if isinstance(part, str))
    if kind in _OVER_LIMIT:
        # A list is counted in what it is a list of.
        unit = "characters" if kind == "string_too_long" else field.rpartition(".")[2]
        return LimitExceeded(field, limit=context["max_length"], unit=unit)
    sentence = _SENTENCES.get(kind)
    return InvalidArgument(field, sentence.format(**context) if sentence else f"{problem['msg']}.")


def public_schema(models: Mapping[str, type[ToolArguments]]) -> dict[str, Any]:
    """The flat schema of a tool with these actions: the union of their models, as plain as every client takes it.

    One object; ``action`` an enum and alone required; every other field optional, with one type, its bounds, and a
    description that begins with the actions it belongs to.
    """
    fields: dict[str, dict[str, Any]] = {}
    takers: dict[str, dict[str, bool]] = {}
    for action, model in models.items():
        schema = model.model_json_schema()
        for name, raw in schema["properties"].items():
            if name == "action":
                continue
            plain = _plain(raw, schema.get("$defs", {}))
            if fields.setdefault(name, plain) != plain:
                raise AssertionError(f"{name} means different things in different actions")
            takers.setdefault(name, {})[action] = name in schema.get("required", ())
    properties: dict[str, Any] = {"action": {"type": "string", "enum": list(models)}}
    for name, plain in fields.items():
        described = {
            "type": plain["type"],
            "description": f"{_who_takes(takers[name])}: {plain['description']}",
        }
        properties[name] = described | {key: value for key, value in plain.items() if key not in described}
    return {
        "type": "object",
        "properties": properties,
        "required": ["action"],
        "additionalProperties": False,
    }


# What pydantic calls its findings, and what callers are told.
_OVER_LIMIT = frozenset({"string_too_long", "too_long"})
_SENTENCES = {
    "missing": "This field is required.",
    "extra_forbidden": "There is no such field here.",
    "string_type": "This must be a string.",
    "string_unicode": "There is a lone surrogate.",
    "string_too_short": "This is empty.",
    "string_pattern_mismatch": "Only A-Z, a-z, 0-9, '_' and '-' are allowed.",
    "int_type": "This must be a whole number.",
    "greater_than_equal": "This must be at least {ge}.",
    "less_than_equal": "This must be at most {le}.",
    "bool_type": "This must be true or false.",
    "list_type": "This must be a list.",
    "too_short": "This is empty.",
    "model_type": "This must be an object.",
    "literal_error": "This must be one of {expected}.",
}

# Keywords that every provider's tool interface takes; "pattern" and the like stay in the model alone.
_KEPT = (
    "type",
    "description",
    "enum",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
)
_LEFT_OUT = frozenset({"title", "default", "pattern", "additionalProperties"})


def _plain(raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in raw:
        siblings = {key: value for key, value in raw.items() if key != "$ref"}
        raw = {**definitions[raw["$ref"].rpartition("/")[2]], **siblings}
    if "anyOf" in raw:
        (some,) = [option for option in raw["anyOf"] if option != {"type": "null"}]
        siblings = {key: value for key, value in raw.items() if key not in ("anyOf", "default")}
        return _plain({**some, **siblings}, definitions)
    plain = {key: raw[key] for key in _KEPT if key in raw}
    if "const" in raw:
        plain["enum"] = [raw["const"]]
    if "items" in raw:
        plain["items"] = _plain(raw["items"], definitions)
    if "properties" in raw:
        plain["properties"] = {name: _plain(field, definitions) for name, field in raw["properties"].items()}
        plain["additionalProperties"] = False
        if "required" in raw:
            plain["required"] = raw["required"]
    unknown = set(raw) - set(_KEPT) - _LEFT_OUT - {"const", "items", "properties", "required"}
    if unknown:
        raise AssertionError(f"some clients refuse these keywords: {sorted(unknown)}")
    return plain


def _who_takes(required: Mapping[str, bool]) -> str:
    needing = [action for action, is_required in required.items() if is_required]
    taking = [action for action, is_required in required.items() if not is_required]
    groups = [f"{', '.join(needing)} (required)"] if needing else []
    return "; ".join([*groups, *([", ".join(taking)] if taking else [])])


def _no_such_field(action: str, model: type[ToolArguments]) -> str:
    return f"{action} has no such field. It takes: {', '.join(model.model_fields)}."
