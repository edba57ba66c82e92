"""Update an entry: its whole text, its metadata, or both at once."""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.conf import settings

from access.authorizer import Sight
from access.principals import Principal
from core import text
from core.errors import InvalidArgument, VersionConflict
from core.types import EntryLocator, FolderRef, MutationRequest, Role
from kb.content import Content, prepare_content
from kb.entry import Entry, entry_summary, version_of
from kb.locate import check_entry_locator, find_entry
from kb.mutation import Change, mutate
from kb.registry import EntryLine
from kb.services.create_entry import check_type
from kb.store.content_store import Transaction, View
from kb.store.record import Subject


class Updated(msgspec.Struct, frozen=True):
    """The entry after the update. Without a change the version is the old one."""

    entry: Entry
    changed: bool
    previous_content_hash: str


def update_entry(
    principal: Principal,
    request: MutationRequest | None,
    entry: EntryLocator,
    *,
    expected_version: str,
    content: str | None = None,
    title: str | None = None,
    description: str | None = None,
    tags: Sequence[str] | None = None,
    type: str | None = None,
    reason: str | None = None,
) -> Updated:
    """Replace the text, the given metadata, or both, if nobody changed the entry in the meantime.

    ``reason`` is kept with the change in the log. Raises InvalidArgument, LimitExceeded, NotFound, Forbidden,
    VersionConflict, and what ``mutate`` raises.
    """
    check_entry_locator(entry)
    metadata = _checked_metadata(title=title, description=description, tags=tags, type=type)
    if content is None and not metadata:
        raise InvalidArgument("content", "Give new content, metadata, or both.")
    if reason is not None:
        reason = text.clean_reason(reason)
    prepared = prepare_content(content) if content is not None else None

    def check(view: View, sight: Sight) -> tuple[FolderRef, EntryLine]:
        folder, line = find_entry(view, sight, entry)
        sight.require(Role.EDITOR, folder.folder)
        check_version(line, expected_version)
        return folder.folder, line

    def change(transaction: Transaction, sight: Sight) -> Change[Updated]:
        folder, line = check(transaction, sight)
        replaced = prepared if prepared and prepared.content_hash != line.content_hash else None
        updates = {name: value for name, value in metadata.items() if getattr(line, name) != value}
        changed = replaced is not None or bool(updates)
        new = line
        if changed:
            new = _advanced(line, transaction, principal, replaced, updates)
            transaction.save_entry(folder, new, replaced.data if replaced else None)
        summary = entry_summary(folder, new, settings.DATA_KEY)
        subject = Subject(folder_id=folder.id, path=summary.path, entry_id=line.id)
        return Change(
            "update",
            Updated(entry=summary, changed=changed, previous_content_hash=line.content_hash),
            folder,
            (subject,),
            reason=reason,
            changed=changed,
        )

    return mutate(principal, request, Updated, check=check, change=change)


def check_version(line: EntryLine, expected_version: str) -> None:
    """Refuse a version that is not the present one. Raises VersionConflict."""
    current = version_of(line, settings.DATA_KEY)
    if current != expected_version:
        raise VersionConflict(current_version=current, content_hash=line.content_hash)


def _checked_metadata(
    *, title: str | None, description: str | None, tags: Sequence[str] | None, type: str | None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if title is not None:
        metadata["title"] = text.clean_title(title, field="metadata.title")
    if description is not None:
        metadata["description"] = text.clean_description(description, field="metadata.description")
    if tags is not None:
        metadata["tags"] = tuple(text.clean_tags(list(tags), field="metadata.tags"))
    if type is not None:
        check_type(type, field="metadata.type")
        metadata["type"] = type
    return metadata


def _advanced(
    line: EntryLine,
    transaction: Transaction,
    principal: Principal,
    content: Content | None,
    metadata: dict[str, Any],
) -> EntryLine:
    lsn = transaction.lsn_of_change
    facts: dict[str, Any] = dict(metadata)
    if content is not None:
        facts |= {
            "content_seq": lsn,
            "content_hash": content.content_hash,
            "git_blob": content.git_blob,
            "size_bytes": content.size_bytes,
            "total_lines": content.total_lines,
        }
    return msgspec.structs.replace(
        line, lsn=lsn, updated_at=transaction.time, updated_by=principal.actor, **facts
    )
