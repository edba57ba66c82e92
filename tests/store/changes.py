"""The changes that the stories of the rigs are made of, each made as the services make it: once for each request."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from core import clock, ids
from core.types import SYSTEM_ACTOR, FolderRef, MutationRequest
from kb.content import Content, prepare_content
from kb.registry import EntryLine, FolderLine, tombstone_of
from kb.store.content_store import ContentStore, Transaction
from kb.store.index import FolderRegistry
from kb.store.outcomes import Outcome
from kb.store.record import Subject

Result = dict[str, Any]


class Refused(Exception):
    """The change does not fit the present state: the path is taken, or nothing is there."""


@dataclass(frozen=True)
class Create:
    """A new entry in a folder that is there."""

    path: str
    text: str


@dataclass(frozen=True)
class Update:
    """New text for an entry. ``expected_lsn`` is the change sequence that the caller read."""

    path: str
    text: str
    expected_lsn: int | None = None


@dataclass(frozen=True)
class Retitle:
    """A new title and nothing else."""

    path: str
    title: str


@dataclass(frozen=True)
class Delete:
    """The entry goes, its tombstone stays."""

    path: str


@dataclass(frozen=True)
class MakeFolder:
    """A folder, with those above it that are missing."""

    path: str


@dataclass(frozen=True)
class Import:
    """Many entries and their folders in one record."""

    texts: Mapping[str, str]


Change = Create | Update | Retitle | Delete | MakeFolder | Import


def request_of(name: str) -> MutationRequest:
    """The request that the rigs call ``name``. All outcomes of the rigs lie in one folder."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return MutationRequest(key="00" + digest[2:], arguments_hash=digest)


def make(store: ContentStore, change: Change, request: str | None = None) -> Result:
    """Make a change, or give the answer that its request was given before.

    Raises Refused, StorageUnavailable, RequestInProgress.
    """
    if request is None:
        with store.transaction() as transaction:
            return _make(transaction, change, None)
    asked = request_of(request)
    with store.claim(asked):
        with store.snapshot() as view:
            known = view.outcome_of(asked)
        if known is not None:
            return known.result
        with store.transaction() as transaction:
            known = transaction.outcome_of(asked)
            return known.result if known is not None else _make(transaction, change, asked)


def _make(transaction: Transaction, change: Change, request: MutationRequest | None) -> Result:
    action, subjects = _MAKERS[type(change)](transaction, change)
    result = {"action": action, "lsn": transaction.lsn_of_change, "ids": [one.entry_id for one in subjects]}
    if request is not None:
        outcome = Outcome(
            arguments_hash=request.arguments_hash,
            folder_id=transaction.root.folder.id,
            role=2,
            time=clock.timestamp(),
            result=result,
        )
        transaction.keep_outcome(request, outcome)
    transaction.commit(action, SYSTEM_ACTOR, subjects)
    return result


def _create(transaction: Transaction, change: Create) -> tuple[str, list[Subject]]:
    folder, name = _place(transaction, change.path)
    if folder.entry_named(name) is not None:
        raise Refused
    line = new_line(transaction, name, prepare_content(change.text))
    transaction.save_entry(folder.folder, line, change.text.encode())
    return "create", [Subject(folder.folder.id, change.path, line.id)]


def _update(transaction: Transaction, change: Update) -> tuple[str, list[Subject]]:
    folder, known = _entry(transaction, change.path)
    if change.expected_lsn is not None and known.lsn != change.expected_lsn:
        raise Refused
    content = prepare_content(change.text)
    line = msgspec.structs.replace(
        known,
        lsn=transaction.lsn_of_change,
        content_seq=transaction.lsn_of_change,
        content_hash=content.content_hash,
        git_blob=content.git_blob,
        size_bytes=content.size_bytes,
        total_lines=content.total_lines,
        updated_at=transaction.time,
    )
    transaction.save_entry(folder.folder, line, content.data)
    return "update", [Subject(folder.folder.id, change.path, line.id)]


def _retitle(transaction: Transaction, change: Retitle) -> tuple[str, list[Subject]]:
    folder, known = _entry(transaction, change.path)
    line = msgspec.structs.replace(
        known, lsn=transaction.lsn_of_change, title=change.title, updated_at=transaction.time
    )
    transaction.save_entry(folder.folder, line, None)
    return "update", [Subject(folder.folder.id, change.path, line.id)]


def _delete(transaction: Transaction, change: Delete) -> tuple[str, list[Subject]]:
    folder, known = _entry(transaction, change.path)
    tombstone = tombstone_of(
        known,
        ids.new_id(ids.DELETION),
        lsn=transaction.lsn_of_change,
        at=transaction.time,
        by=SYSTEM_ACTOR,
        reserved=transaction.ever_backed_up,
    )
    transaction.remove_entry(folder.folder, tombstone)
    return "delete", [Subject(folder.folder.id, change.path, known.id)]


def _make_folder(transaction: Transaction, change: MakeFolder) -> tuple[str, list[Subject]]:
    made: dict[str, FolderRef] = {}
    folder = _folders_to(transaction, change.path, made)
    if not made:
        raise Refused
    return "create_folder", [Subject(folder.id, folder.path)]


def _import(transaction: Transaction, change: Import) -> tuple[str, list[Subject]]:
    made: dict[str, FolderRef] = {}
    subjects = []
    for path, text in change.texts.items():
        parent, _, name = path.rpartition("/")
        folder = _folders_to(transaction, parent, made)
        known = transaction.folder(folder.id)
        if known is not None and known.entry_named(name) is not None:
            raise Refused
        line = new_line(transaction, name, prepare_content(text))
        transaction.save_entry(folder, line, text.encode())
        subjects.append(Subject(folder.id, path, line.id))
    return "import", subjects


_MAKERS: dict[type, Callable[[Transaction, Any], tuple[str, list[Subject]]]] = {
    Create: _create,
    Update: _update,
    Retitle: _retitle,
    Delete: _delete,
    MakeFolder: _make_folder,
    Import: _import,
}


def _place(transaction: Transaction, path: str) -> tuple[FolderRegistry, str]:
    parent, _, name = path.rpartition("/")
    folder = transaction.folder_at(parent.split("/") if parent else [])
    if folder is None:
        raise Refused
    return folder, name


def _entry(transaction: Transaction, path: str) -> tuple[FolderRegistry, EntryLine]:
    folder, name = _place(transaction, path)
    known = folder.entry_named(name)
    if known is None:
        raise Refused
    return folder, known


def _folders_to(transaction: Transaction, path: str, made: dict[str, FolderRef]) -> FolderRef:
    current, done = transaction.root.folder, ""
    for name in path.split("/") if path else []:
        done = f"{done}/{name}" if done else name
        known = transaction.folder_at(done.split("/"))
        if known is not None:
            current = known.folder
        elif done in made:
            current = made[done]
        else:
            line = FolderLine(
                lsn=transaction.lsn_of_change,
                id=ids.new_id(ids.FOLDER),
                name=name,
                created_at=transaction.time,
                created_by=SYSTEM_ACTOR,
            )
            current = made[done] = transaction.add_folder(current, line)
    return current


def new_line(transaction: Transaction, name: str, content: Content) -> EntryLine:
    """The registry line of a new entry."""
    lsn = transaction.lsn_of_change
    return EntryLine(
        lsn=lsn,
        id=ids.new_id(ids.ENTRY),
        name=name,
        title=name,
        type="note",
        description="",
        tags=(),
        content_seq=lsn,
        existence_seq=lsn,
        content_hash=content.content_hash,
        git_blob=content.git_blob,
        size_bytes=content.size_bytes,
        total_lines=content.total_lines,
        created_at=transaction.time,
        created_by=SYSTEM_ACTOR,
        updated_at=transaction.time,
        updated_by=SYSTEM_ACTOR,
    )


def saved_by(store: ContentStore, path: str, text: str) -> None:
    """Create the entry with its folders, or give it this text."""
    parent = path.rpartition("/")[0]
    if parent and not has_folder(store, parent):
        make(store, MakeFolder(parent))
    try:
        make(store, Update(path, text))
    except Refused:
        make(store, Create(path, text))


def has_folder(store: ContentStore, path: str) -> bool:
    """Whether there is a folder with this path."""
    with store.snapshot() as view:
        return view.folder_at(path.split("/")) is not None


def text_of(store: ContentStore, path: str) -> str | None:
    """The entry's text as a reader gets it; None where there is no such entry."""
    parent, _, name = path.rpartition("/")
    with store.snapshot() as view:
        folder = view.folder_at(parent.split("/") if parent else [])
        line = folder.entry_named(name) if folder else None
        if folder is None or line is None:
            return None
        return view.read_content(folder.folder, line).decode()
