"""The shapes of answers, for the OpenAPI document alone. Tests hold the real answers to them, field by field."""

from typing import Annotated, Any, Literal

import msgspec

from access.services.explain_access import Via
from access.warnings import AccessWarning
from core.errors import BrainError
from core.types import Capability, EntryType, IdentityKind
from kb.entry import Entry, FolderView
from kb.search.query import LineMatch
from kb.services.read_entry import Reading

REFERENCE = "#/components/schemas/{name}"

Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
RoleWord = Literal["reader", "editor", "owner"]


class BackupState(msgspec.Struct):
    """How far the backup of an entry is."""

    state: Literal["pending", "committed", "backed_up", "not_configured"]


class EntrySummary(Entry, frozen=True):
    """What is known of an entry, without its text."""

    type: EntryType
    created_at: Moment
    updated_at: Moment
    backup: BackupState


class Folder(FolderView, frozen=True):
    """A folder as the caller sees it; without a role it is only shown as the way to more."""

    role: RoleWord | None


class FolderList(msgspec.Struct):
    """A page of folders, in path order."""

    folders: list[Folder]
    next_cursor: str | None


class EntryList(msgspec.Struct):
    """A page of entries, in path order."""

    entries: list[EntrySummary]
    next_cursor: str | None


class EntryReading(Reading, frozen=True):
    """An entry, whole or a part of it. An empty one has bounds of 0."""

    entry: EntrySummary


class SearchResult(msgspec.Struct):
    """An entry that holds the query, with its first matching lines and how many there are."""

    entry: EntrySummary
    matched_in: list[Literal["content", "title", "description", "filename"]]
    matches: list[LineMatch]
    match_count: int


class SearchResults(msgspec.Struct):
    """A page of results, in path order."""

    results: list[SearchResult]
    next_cursor: str | None


class EntryBackup(msgspec.Struct):
    """How far the backup of one entry is."""

    entry_id: str
    path: str
    version: str
    state: Literal["pending", "committed", "backed_up", "not_configured"]


class BackupStatus(msgspec.Struct):
    """The backup as far as the caller may know it. ``aggregate`` is null where no destination is set up."""

    configured: bool
    branch: str | None
    aggregate: dict[str, int] | None
    entries: list[EntryBackup]
    deletions: list[dict[str, Any]]
    receipts: list[dict[str, Any]]
    last_backup_error: str | None
    last_successful_backup_at: str | None
    next_cursor: str | None


class Identity(msgspec.Struct):
    """Who somebody is."""

    identity_id: str
    name: str
    username: str
    kind: IdentityKind


class FolderScope(msgspec.Struct):
    """A folder that a connection is narrowed to, and the most it may do there."""

    folder_id: str
    max_role: RoleWord


class Grant(msgspec.Struct):
    """A grant that reaches a folder. ``folder_path`` is null where the caller may not read the granting folder."""

    identity_id: str
    name: str
    username: str
    kind: IdentityKind
    role: RoleWord
    folder_path: str | None
    inherited: bool


class Access(msgspec.Struct):
    """What the caller can do; of a folder that is named, its Owners also learn who else can."""

    identity: Identity
    role: RoleWord | None
    capability: Capability
    folder_scopes: list[FolderScope] | None
    folder: Folder | None
    acl_version: int | None
    grants: list[Grant] | None


class KnownIdentity(Identity):
    """Who somebody is; a disabled account is not active."""

    active: bool


class Reason(msgspec.Struct):
    """One thing that a role follows from, and the folder from which on it counts."""

    via: Via
    folder_path: str
    role: RoleWord


class GrantWarning(msgspec.Struct):
    """What to think of before a change that is allowed."""

    kind: AccessWarning
    message: str


class Explanation(msgspec.Struct):
    """Why somebody has their role. ``inherited_from_above`` tells that reasons stand where the caller may not read."""

    identity: KnownIdentity
    role: RoleWord | None
    because: list[Reason]
    would_be: RoleWord | None
    inherited_from_above: Literal[True] | msgspec.UnsetType = msgspec.UNSET
    warnings: list[GrantWarning] | msgspec.UnsetType = msgspec.UNSET


class OwnedFolder(Folder, frozen=True):
    """A folder that the caller owns, with the version of its own grants."""

    acl_version: int


class AccessList(msgspec.Struct):
    """A page of the identities, or of the folders, that were asked for."""

    next_cursor: str | None
    identities: list[KnownIdentity] | msgspec.UnsetType = msgspec.UNSET
    folders: list[OwnedFolder] | msgspec.UnsetType = msgspec.UNSET


class Refusal(msgspec.Struct, omit_defaults=True):
    """Why not. Programs read ``code``, ``retryable`` and ``details``; ``message`` is for people."""

    code: str
    message: str
    retryable: bool
    details: dict[str, Any]
    retry_after_seconds: int | msgspec.UnsetType = msgspec.UNSET


class Error(msgspec.Struct):
    """The error object of every refusal."""

    error: Refusal


ANSWERS: tuple[type, ...] = (
    FolderList,
    EntryList,
    EntryReading,
    SearchResults,
    BackupStatus,
    Access,
    Explanation,
    AccessList,
    Error,
)


def components() -> dict[str, Any]:
    """The answers as schemas of OpenAPI 3.1, closed: no field stands in an answer that does not stand here."""
    _, schemas = msgspec.json.schema_components(ANSWERS, ref_template=REFERENCE)
    for schema in schemas.values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    return schemas


def reference(answer: type) -> dict[str, str]:
    """A pointer to the schema of an answer."""
    return {"$ref": REFERENCE.format(name=answer.__name__)}


def codes_of(refusals: tuple[type[BrainError], ...]) -> str:
    """The codes of some refusals, as the document lists them."""
    return ", ".join(dict.fromkeys(refusal.code for refusal in refusals))
