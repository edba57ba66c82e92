"""Turning a locator into the thing itself. Absent and not visible are one refusal from one place."""

from access.authorizer import Sight
from core import names
from core.errors import InvalidArgument, NotFound
from core.types import EntryLocator, FolderLocator
from kb.folders import VisibleFolders
from kb.registry import EntryLine
from kb.store.content_store import View
from kb.store.index import FolderRegistry


def check_folder_locator(locator: FolderLocator) -> None:
    """Refuse a locator that no folder could have, before anything is looked up.

    Raises InvalidArgument, LimitExceeded.
    """
    if locator.folder_id is not None and locator.folder_path is not None:
        raise InvalidArgument("folder_path", "Give either folder_id or folder_path.")
    if locator.folder_path is not None:
        names.split_folder_path(locator.folder_path)


def check_entry_locator(locator: EntryLocator) -> None:
    """Refuse a locator that no entry could have, before anything is looked up.

    Raises InvalidArgument, LimitExceeded.
    """
    if (locator.entry_id is None) == (locator.path is None):
        raise InvalidArgument("path", "Give exactly one of entry_id and path.")
    if locator.path is not None:
        names.split_entry_path(locator.path)


def find_folder(view: View, sight: Sight, locator: FolderLocator) -> FolderRegistry:
    """The folder, if the caller can read it. Raises NotFound, and what ``check_folder_locator`` raises."""
    check_folder_locator(locator)
    found = _look_up_folder(view, locator)
    if found is None or not sight.can_read(found.folder):
        raise NotFound
    return found


def find_visible_folder(view: View, visible: VisibleFolders, locator: FolderLocator) -> FolderRegistry:
    """The folder, if the caller can read it or sees it as a label; the root always.

    Raises NotFound, and what ``check_folder_locator`` raises.
    """
    check_folder_locator(locator)
    found = _look_up_folder(view, locator)
    if found is None or not visible.is_visible(found.folder):
        raise NotFound
    return found


def find_entry(view: View, sight: Sight, locator: EntryLocator) -> tuple[FolderRegistry, EntryLine]:
    """The entry and its folder, if the caller can read them.

    Raises NotFound, and what ``check_entry_locator`` raises.
    """
    check_entry_locator(locator)
    found = _look_up_entry(view, locator)
    if found is None or not sight.can_read(found[0].folder):
        raise NotFound
    return found


def _look_up_folder(view: View, locator: FolderLocator) -> FolderRegistry | None:
    if locator.folder_id is not None:
        return view.folder(locator.folder_id)
    return view.folder_at(names.split_folder_path(locator.folder_path or ""))


def _look_up_entry(view: View, locator: EntryLocator) -> tuple[FolderRegistry, EntryLine] | None:
    if locator.entry_id is not None:
        folder = view.folder_of_entry(locator.entry_id)
        return (folder, folder.entries[locator.entry_id]) if folder else None
    components, filename = names.split_entry_path(locator.path or "")
    folder = view.folder_at(components)
    entry = folder.entry_named(filename) if folder else None
    return (folder, entry) if folder and entry else None
