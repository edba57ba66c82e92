"""Changing content: creating, updating and deleting entries, creating folders."""

import dataclasses
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from access.principals import Principal
from backup.services.add_backup_state import add_backup_state, add_deletion_backup_state
from core import limits
from core.errors import InvalidArgument
from core.types import Capability
from kb.services.create_entry import create_entry
from kb.services.create_folder import create_folder as create_folder_in
from kb.services.delete_entry import delete_entry
from kb.services.update_entry import update_entry
from mcpapi.arguments import (
    ChangeArguments,
    EntryArguments,
    ExpectedVersion,
    NamedFolderArguments,
    RequestId,
    Shape,
    bounded,
)
from mcpapi.operations import Action, Tool

NAME = "update_knowledgebase"
FILENAME_MAX = limits.NAME_MAX_CHARACTERS + len(".md")

Filename = Annotated[
    str,
    bounded(
        "Name of the new entry ending in .md: ASCII letters, digits, blanks, _ and -, a letter or digit first, at "
        f"most {limits.NAME_MAX_CHARACTERS} characters before .md.",
        least=4,
        most=FILENAME_MAX,
    ),
]
FolderName = Annotated[
    str,
    bounded(
        "Name of the new folder, by the rules of filename, without .md.",
        least=1,
        most=limits.NAME_MAX_CHARACTERS,
    ),
]
EntryKind = Annotated[
    Literal["skill", "note", "fact", "source"], Field(description="What the entry is; a label without rules.")
]
Title = Annotated[str, bounded("One line.", least=1, most=limits.TITLE_MAX_CHARACTERS)]
Description = Annotated[
    str, bounded("What the entry is about, for lists.", most=limits.DESCRIPTION_MAX_CHARACTERS)
]
Tag = Annotated[str, bounded(least=1, most=limits.TAG_MAX_CHARACTERS)]
Tags = Annotated[list[Tag], Field(max_length=limits.TAGS_MAX, description="Tags, each once. [] means none.")]
Content = Annotated[
    str,
    bounded(
        f"The whole Markdown text, at most {limits.CONTENT_MAX_BYTES:,} bytes of UTF-8. Control characters but tab "
        "and line feed are refused; line endings become LF.",
        most=limits.CONTENT_MAX_BYTES,
    ),
]
Diff = Annotated[
    str,
    bounded(
        "A unified diff against the version you read, such as '@@ -3,1 +3,2 @@\\n Run it.\\n+Check it.\\n', with right "
        f"counts; file headers may be left out. At most {limits.DIFF_MAX_BYTES:,} bytes. Give at most one of diff, "
        "edits and content.",
        least=1,
        most=limits.DIFF_MAX_BYTES,
    ),
]
OldText = Annotated[
    str, bounded("Stands in the entry exactly once, to the character.", least=1, most=limits.DIFF_MAX_BYTES)
]
NewText = Annotated[str, bounded("What stands there afterwards.", most=limits.DIFF_MAX_BYTES)]
DryRun = Annotated[
    bool,
    Field(
        description=(
            "true: judge everything, return the diff that would be made, change nothing; request_id may be left out. "
            "Default false."
        )
    ),
]
Reason = Annotated[
    str, bounded("Why, in a sentence; kept with the change.", most=limits.REASON_MAX_CHARACTERS)
]


class Create(ChangeArguments, NamedFolderArguments):
    """``create``."""

    action: Literal["create"]
    filename: Filename
    type: EntryKind
    title: Title
    content: Content
    description: Description = ""
    tags: Tags = Field(default_factory=list)


def _say_it_once(schema: dict[str, Any]) -> None:
    # The same words stand beside the fields of ``create``.
    for field in schema["properties"].values():
        for option in field["anyOf"]:
            option.pop("description", None)


class Metadata(Shape):
    """What an update may change beside the text; at least one of them."""

    model_config = ConfigDict(json_schema_extra=_say_it_once)

    title: Title | None = None
    description: Description | None = None
    tags: Tags | None = None
    type: EntryKind | None = None


class Edit(Shape):
    """One passage and what it becomes."""

    old_text: OldText
    new_text: NewText


Edits = Annotated[
    list[Edit],
    Field(
        min_length=1,
        max_length=limits.EDITS_MAX,
        description=(
            "Exact replacements of passages that do not overlap, all found in the entry as it stands. Literal text, "
            "no patterns."
        ),
    ),
]


def _advertise_request_id(schema: dict[str, Any]) -> None:
    # Only a dry run can do without it.
    schema["required"].append("request_id")


class Update(ChangeArguments, EntryArguments):
    """``update``."""

    model_config = ConfigDict(json_schema_extra=_advertise_request_id)

    action: Literal["update"]
    request_id: RequestId | None = None  # type: ignore[assignment]
    expected_version: ExpectedVersion
    edits: Edits | None = None
    diff: Diff | None = None
    content: Content | None = None
    metadata: (
        Annotated[Metadata, Field(description="What to change, as in create; the rest stays.")] | None
    ) = None
    reason: Reason | None = None
    dry_run: DryRun = False

    @model_validator(mode="after")
    def _changes_something_once(self) -> Self:
        if self.request_id is None and not self.dry_run:
            raise InvalidArgument("request_id", "This field is required.")
        if self.metadata is not None and not self.metadata.model_fields_set:
            raise InvalidArgument("metadata", "Give at least one of title, description, tags and type.")
        given = [name for name in ("content", "diff", "edits") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidArgument(given[1], "Give at most one of content, diff and edits.")
        if not given and self.metadata is None:
            raise InvalidArgument("content", "Give one of edits, diff and content, or metadata, or both.")
        return self


class Delete(ChangeArguments, EntryArguments):
    """``delete``."""

    action: Literal["delete"]
    expected_version: ExpectedVersion


class CreateFolder(ChangeArguments, NamedFolderArguments):
    """``create_folder``."""

    action: Literal["create_folder"]
    name: FolderName


def create(principal: Principal, arguments: Create) -> dict[str, Any]:
    """The new entry."""
    created = create_entry(
        principal,
        arguments.request_of(principal, NAME),
        arguments.folder,
        filename=arguments.filename,
        type=arguments.type,
        title=arguments.title,
        content=arguments.content,
        description=arguments.description,
        tags=arguments.tags,
    )
    return {"entry": add_backup_state([created.entry.as_dict()])[0]}


def update(principal: Principal, arguments: Update) -> dict[str, Any]:
    """The entry as it is now, and whether that is another than before; of a dry run what would be."""
    metadata = arguments.metadata or Metadata()
    updated = update_entry(
        principal,
        None if arguments.dry_run else arguments.request_of(principal, NAME),
        arguments.entry,
        expected_version=arguments.expected_version,
        content=arguments.content,
        diff=arguments.diff,
        edits=None
        if arguments.edits is None
        else [(edit.old_text, edit.new_text) for edit in arguments.edits],
        title=metadata.title,
        description=metadata.description,
        tags=metadata.tags,
        type=metadata.type,
        reason=arguments.reason,
        dry_run=arguments.dry_run,
    )
    answer: dict[str, Any] = {
        "entry": add_backup_state([updated.entry.as_dict()])[0],
        "changed": updated.changed,
        "previous_content_hash": updated.previous_content_hash,
    }
    if updated.offsets:
        answer["offsets"] = [dataclasses.asdict(offset) for offset in updated.offsets]
    if updated.diff is not None:
        answer["diff"] = updated.diff
    if updated.diff_truncated:
        answer["diff_truncated"] = True
    return answer


def delete(principal: Principal, arguments: Delete) -> dict[str, Any]:
    """The deletion."""
    deleted = delete_entry(
        principal,
        arguments.request_of(principal, NAME),
        arguments.entry,
        expected_version=arguments.expected_version,
    )
    return add_deletion_backup_state({"deletion_id": deleted.deletion_id, "path": deleted.path})


def create_folder(principal: Principal, arguments: CreateFolder) -> dict[str, Any]:
    """The new folder."""
    created = create_folder_in(
        principal, arguments.request_of(principal, NAME), arguments.folder, name=arguments.name
    )
    return {"folder": created.folder.as_dict()}


TOOL = Tool(
    name=NAME,
    title="Change the knowledge base",
    summary=(
        "Create, update and delete Markdown entries and create folders. A change is durable and visible to every "
        "reader when the call returns."
    ),
    advice=(
        'request_id: a new one for every change. When an answer is lost, or says "retryable": true, repeat exactly '
        "the same call with the same request_id; it takes effect at most once. REQUEST_IN_PROGRESS, "
        "STORAGE_UNAVAILABLE: wait retry_after_seconds, then repeat it. REQUEST_ID_REUSE: this id made another "
        "change; take a new one. VERSION_CONFLICT: somebody changed the entry; fit your change to details.diff_since "
        "(without it, read again) and send it with details.current_version. PATCH_FAILED: nothing changed; "
        "details.failures shows where the entry reads otherwise; repair all of it and send again. NAME_CONFLICT: the "
        "name is taken; choose another, or update the entry that has it. PATH_PENDING_DELETION_BACKUP: choose another "
        "name for now. NOT_FOUND: no such folder or entry, or none that you may read; an update never creates. "
        "FORBIDDEN: you may read here but not write. INVALID_ARGUMENT, LIMIT_EXCEEDED: details names the field; "
        "nothing changed, repair it and call again."
    ),
    actions=(
        Action(
            name="create",
            arguments=Create,
            run=create,
            description="a new entry in the folder that folder_id or folder_path names; it never replaces one.",
            example={
                "action": "create",
                "request_id": "deploy-guide-1",
                "folder_path": "Guides",
                "filename": "Deploy.md",
                "type": "note",
                "title": "Deploying",
                "content": "# Deploying\n",
            },
            needs=Capability.WRITE,
        ),
        Action(
            name="update",
            arguments=Update,
            run=update,
            description="change passages by edits or a diff, or all of the content; metadata; or both.",
            example={
                "action": "update",
                "request_id": "deploy-guide-2",
                "path": "Guides/Deploy.md",
                "expected_version": "v7q2",
                "edits": [{"old_text": "Run it.", "new_text": "Run it twice."}],
            },
            needs=Capability.WRITE,
        ),
        Action(
            name="delete",
            arguments=Delete,
            run=delete,
            description="remove an entry.",
            example={
                "action": "delete",
                "request_id": "deploy-guide-3",
                "path": "Guides/Deploy.md",
                "expected_version": "v7q2",
            },
            needs=Capability.WRITE,
        ),
        Action(
            name="create_folder",
            arguments=CreateFolder,
            run=create_folder,
            description="a folder in the one that folder_id or folder_path names ('' is the root).",
            example={
                "action": "create_folder",
                "request_id": "guides-1",
                "folder_path": "",
                "name": "Guides",
            },
            needs=Capability.WRITE,
        ),
    ),
    hints={
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    },
    writes_content=True,
)
