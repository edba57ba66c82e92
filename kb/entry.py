"""What callers are shown of entries and folders: the shapes of docs/reference/mcp.md.

``kb`` knows nothing of backup, so its summaries have no backup state; ``backup`` adds it.
"""

from typing import Any

import msgspec

from core import ids
from core.types import Actor, FolderRef, Role
from kb.registry import EntryLine


class Entry(msgspec.Struct, frozen=True):
    """An entry summary."""

    entry_id: str
    path: str
    folder_id: str
    filename: str
    title: str
    type: str
    description: str
    tags: tuple[str, ...]
    version: str
    content_hash: str
    size_bytes: int
    total_lines: int
    created_at: str
    created_by: Actor
    updated_at: str
    updated_by: Actor

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain JSON values, without its backup state."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class FolderView(msgspec.Struct, frozen=True):
    """A folder as one caller sees it. ``role`` is None for an ancestor shown only as a label.

    ``has_children`` counts the child folders that this caller sees.
    """

    folder_id: str
    path: str
    name: str
    parent_id: str | None
    role: str | None
    has_children: bool

    def as_dict(self) -> dict[str, Any]:
        """The folder as plain JSON values."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def entry_summary(folder: FolderRef, line: EntryLine, data_key: bytes) -> Entry:
    """The summary of a registry's line."""
    return Entry(
        entry_id=line.id,
        path=f"{folder.path}/{line.name}" if folder.path else line.name,
        folder_id=folder.id,
        filename=line.name,
        title=line.title,
        type=line.type,
        description=line.description,
        tags=line.tags,
        version=version_of(line, data_key),
        content_hash=line.content_hash,
        size_bytes=line.size_bytes,
        total_lines=line.total_lines,
        created_at=line.created_at,
        created_by=line.created_by,
        updated_at=line.updated_at,
        updated_by=line.updated_by,
    )


def version_of(line: EntryLine, data_key: bytes) -> str:
    """The opaque version token of an entry as it stands."""
    return ids.version_token(data_key, entry_id=line.id, sequence=line.lsn, content_hash=line.content_hash)


def folder_view(folder: FolderRef, role: Role | None, *, has_children: bool) -> FolderView:
    """A folder as a caller with this role sees it."""
    return FolderView(
        folder_id=folder.id,
        path=folder.path,
        name=folder.name,
        parent_id=folder.parent_id,
        role=role.word if role else None,
        has_children=has_children,
    )
