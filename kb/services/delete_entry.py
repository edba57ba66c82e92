"""Delete an entry."""

import msgspec

from access.authorizer import Sight
from access.principals import Principal
from core import ids
from core.types import EntryLocator, FolderRef, MutationRequest, Role
from kb.conflicts import check_version, explaining_conflicts
from kb.locate import check_entry_locator, find_entry
from kb.mutation import Change, mutate
from kb.registry import EntryLine, tombstone_of
from kb.store.content_store import Transaction, View
from kb.store.record import Subject


class Deleted(msgspec.Struct, frozen=True):
    """The deletion: its id can be selected for backup later, since the entry's own is gone."""

    deletion_id: str
    path: str


def delete_entry(
    principal: Principal, request: MutationRequest | None, entry: EntryLocator, *, expected_version: str
) -> Deleted:
    """Remove an entry from all reading at once, and keep a tombstone of it.

    Raises InvalidArgument, LimitExceeded, NotFound, Forbidden, VersionConflict, and what ``mutate`` raises.
    """
    check_entry_locator(entry)

    def check(view: View, sight: Sight) -> tuple[FolderRef, EntryLine]:
        folder, line = find_entry(view, sight, entry)
        sight.require(Role.EDITOR, folder.folder)
        check_version(line, expected_version)
        return folder.folder, line

    def change(transaction: Transaction, sight: Sight) -> Change[Deleted]:
        folder, line = check(transaction, sight)
        tombstone = tombstone_of(
            line,
            ids.new_id(ids.DELETION),
            lsn=transaction.lsn_of_change,
            at=transaction.time,
            by=principal.actor,
            # Without backup history there is nothing that could bring the path back.
            reserved=transaction.ever_backed_up,
        )
        transaction.remove_entry(folder, tombstone)
        path = f"{folder.path}/{line.name}" if folder.path else line.name
        subject = Subject(folder_id=folder.id, path=path, entry_id=line.id)
        return Change("delete", Deleted(deletion_id=tombstone.id, path=path), folder, (subject,))

    with explaining_conflicts(principal, entry, expected_version):
        return mutate(principal, request, Deleted, check=check, change=change)
