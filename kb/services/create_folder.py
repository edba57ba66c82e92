"""Create a folder."""

import msgspec

from access import authorizer
from access.authorizer import Sight
from access.principals import Principal
from core import ids, names
from core.errors import NameConflict
from core.types import FolderLocator, FolderRef, MutationRequest, Role
from kb.entry import FolderView, folder_view
from kb.locate import check_folder_locator, find_folder
from kb.mutation import Change, mutate
from kb.registry import FolderLine
from kb.store.content_store import Transaction, View
from kb.store.index import FolderRegistry
from kb.store.record import Subject
from kb.store.stores import store_of


class FolderCreated(msgspec.Struct, frozen=True):
    """The folder as its creator sees it."""

    folder: FolderView


def create_folder(
    principal: Principal, request: MutationRequest | None, parent: FolderLocator, *, name: str
) -> FolderCreated:
    """Create an empty folder in one that the caller may edit. It inherits the access of those above it.

    Raises InvalidArgument, LimitExceeded, NotFound, Forbidden, NameConflict, and what ``mutate`` raises.
    """
    check_folder_locator(parent)
    names.check_folder_name(name)

    def check(view: View, sight: Sight) -> FolderRegistry:
        folder = find_folder(view, sight, parent)
        sight.require(Role.EDITOR, folder.folder)
        names.join(folder.folder.path, name, field="name")
        if folder.child_named(name) is not None:
            raise NameConflict
        return folder

    def change(transaction: Transaction, sight: Sight) -> Change[FolderCreated]:
        above = check(transaction, sight).folder
        folder = add_folder(transaction, principal, above, name)
        shown = folder_view(folder, sight.role_on(above), has_children=False)
        subject = Subject(folder_id=folder.id, path=folder.path)
        return Change("create_folder", FolderCreated(shown), above, (subject,))

    return mutate(principal, request, FolderCreated, check=check, change=change)


def create_folder_path(principal: Principal, path: str) -> FolderRef:
    """The folder of this path, made with the parents it lacks; one that is there is left alone.

    Raises InvalidArgument, LimitExceeded, Forbidden, StorageUnavailable.
    """
    components = names.split_folder_path(path, field="path")
    with store_of(principal.organization_id).transaction() as transaction:
        sight = authorizer.content_sight_of(principal)
        folder, made = add_missing_folders(transaction, sight, principal, components)
        if made:
            subjects = [Subject(folder_id=one.id, path=one.path) for one in made]
            transaction.commit("create_folder", principal.actor, subjects)
        return folder


def add_missing_folders(
    transaction: Transaction, sight: Sight, principal: Principal, components: list[str]
) -> tuple[FolderRef, list[FolderRef]]:
    """The folder of these components and those of them that the transaction now makes. Raises NotFound, Forbidden."""
    known = transaction.root
    depth = 0
    while depth < len(components):
        child = known.child_named(components[depth])
        below = transaction.folder(child.id) if child else None
        if below is None:
            break
        known = below
        depth += 1
    folder, made = known.folder, []
    if depth < len(components):
        sight.require(Role.EDITOR, folder)
    for name in components[depth:]:
        folder = add_folder(transaction, principal, folder, name)
        made.append(folder)
    return folder, made


def add_folder(transaction: Transaction, principal: Principal, parent: FolderRef, name: str) -> FolderRef:
    """Let the transaction make one folder; the name was checked. Raises LimitExceeded."""
    names.join(parent.path, name, field="name")
    line = FolderLine(
        lsn=transaction.lsn_of_change,
        id=ids.new_id(ids.FOLDER),
        name=name,
        created_at=transaction.time,
        created_by=principal.actor,
    )
    return transaction.add_folder(parent, line)
