"""Create an entry."""

from collections.abc import Sequence

import msgspec
from django.conf import settings

from access.authorizer import Sight
from access.principals import Principal
from core import ids, names, text
from core.errors import InvalidArgument, NameConflict, PathPendingDeletionBackup
from core.types import EntryType, FolderLocator, FolderRef, MutationRequest, Role
from kb.content import Content, prepare_content
from kb.entry import Entry, entry_summary
from kb.locate import check_folder_locator, find_folder
from kb.mutation import Change, mutate
from kb.registry import EntryLine
from kb.store.content_store import Transaction, View
from kb.store.index import FolderRegistry
from kb.store.record import Subject


class Created(msgspec.Struct, frozen=True):
    """The entry as it was created."""

    entry: Entry


def create_entry(
    principal: Principal,
    request: MutationRequest | None,
    parent: FolderLocator,
    *,
    filename: str,
    type: str,
    title: str,
    content: str,
    description: str = "",
    tags: Sequence[str] = (),
) -> Created:
    """Create an entry in a folder that the caller may edit; it never replaces one.

    Raises InvalidArgument, LimitExceeded, NotFound, Forbidden, NameConflict, PathPendingDeletionBackup, and what
    ``mutate`` raises.
    """
    check_folder_locator(parent)
    names.check_filename(filename)
    check_type(type)
    text.clean_title(title)
    description = text.clean_description(description)
    tags = text.clean_tags(list(tags))
    prepared = prepare_content(content)

    def check(view: View, sight: Sight) -> FolderRegistry:
        folder = find_folder(view, sight, parent)
        sight.require(Role.EDITOR, folder.folder)
        check_name_is_free(folder, filename)
        return folder

    def change(transaction: Transaction, sight: Sight) -> Change[Created]:
        folder = check(transaction, sight).folder
        line = add_entry(
            transaction,
            principal,
            folder,
            prepared,
            filename=filename,
            type=type,
            title=title,
            description=description,
            tags=tags,
        )
        entry = entry_summary(folder, line, settings.DATA_KEY)
        subject = Subject(folder_id=folder.id, path=entry.path, entry_id=line.id)
        return Change("create", Created(entry), folder, (subject,))

    return mutate(principal, request, Created, check=check, change=change)


def add_entry(
    transaction: Transaction,
    principal: Principal,
    folder: FolderRef,
    content: Content,
    *,
    filename: str,
    type: str,
    title: str,
    description: str = "",
    tags: Sequence[str] = (),
) -> EntryLine:
    """Let the transaction make one entry; everything about it was checked."""
    lsn = transaction.lsn_of_change
    line = EntryLine(
        lsn=lsn,
        id=ids.new_id(ids.ENTRY),
        name=filename,
        title=title,
        type=type,
        description=description,
        tags=tuple(tags),
        content_seq=lsn,
        existence_seq=lsn,
        content_hash=content.content_hash,
        git_blob=content.git_blob,
        size_bytes=content.size_bytes,
        total_lines=content.total_lines,
        created_at=transaction.time,
        created_by=principal.actor,
        updated_at=transaction.time,
        updated_by=principal.actor,
    )
    transaction.save_entry(folder, line, content.data)
    return line


def check_type(type: str, *, field: str = "type") -> None:
    """Refuse a type that is none of the four. Raises InvalidArgument."""
    if type not in set(EntryType):
        raise InvalidArgument(field, "The type is one of: " + ", ".join(EntryType) + ".")


def check_name_is_free(folder: FolderRegistry, filename: str) -> None:
    """Refuse a filename that is taken in the folder. Raises NameConflict, PathPendingDeletionBackup, LimitExceeded."""
    names.join(folder.folder.path, filename, field="filename")
    if folder.entry_named(filename) is not None:
        raise NameConflict
    if folder.reserved_by(filename) is not None:
        raise PathPendingDeletionBackup
