"""What a reader gets from a store: everything in one look, to be compared with the account."""

import json

import msgspec

from kb.store.content_store import ContentStore, View
from tests.store.account import Picture


def picture(store: ContentStore) -> Picture:
    """Everything that a reader can see. Raises StorageUnavailable."""
    with store.snapshot() as view:
        return picture_in(view)


def picture_in(view: View) -> Picture:
    """Everything in one view. Raises DamagedEntry."""
    entries: dict[str, tuple[bytes, str]] = {}
    folders: dict[str, str] = {}
    pending = [view.root]
    while pending:
        known = pending.pop()
        path = known.folder.path
        assert path not in folders, f"{path} stands in itself"
        folders[path] = known.folder.id
        for line in known.entries.values():
            shown = json.dumps(msgspec.to_builtins(line), sort_keys=True)
            where = f"{path}/{line.name}" if path else line.name
            entries[where] = (view.read_content(known.folder, line), shown)
        for child in known.children.values():
            below = view.folder(child.id)
            assert below is not None, f"{path}/{child.name} is not known"
            pending.append(below)
    return entries, folders
