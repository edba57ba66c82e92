"""A store without accounts: entries are saved into it as the services do it, with nobody to ask."""

from pathlib import Path

import msgspec

from core import ids, locks
from core.types import SYSTEM_ACTOR, FolderRef
from kb.content import prepare_content
from kb.registry import EntryLine, FolderLine, tombstone_of
from kb.store import check, provision
from kb.store.content_store import ContentStore
from kb.store.layout import SEGMENT_SUFFIX, Layout
from kb.store.record import Cause, Subject

ORGANIZATION = "org_bare"


class BareStore:
    """One organization's store in a data directory of its own. ``store`` is open until ``close``."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        provision.provision(data_dir, ORGANIZATION)
        self.store = open_store(data_dir)

    @property
    def path(self) -> Path:
        """The organization's directory."""
        return self.data_dir / "orgs" / ORGANIZATION

    @property
    def log(self) -> Path:
        """The folder of the log's segments."""
        return self.path / "private/log"

    def reopen(self) -> None:
        """Stop cleanly and open again, as a new process does."""
        self.close()
        self.store = open_store(self.data_dir)

    def close(self) -> None:
        """Stop cleanly."""
        self.store.close()

    def folder(self, path: str) -> FolderRef:
        """The folder with this path, made with those above it where they are missing."""
        with self.store.transaction() as transaction:
            current = transaction.root.folder
            made = False
            for name in path.split("/") if path else []:
                known = transaction.folder(current.id)
                child = known.child_named(name) if known else None
                found = transaction.folder(child.id) if child else None
                if found is not None:
                    current = found.folder
                    continue
                line = FolderLine(
                    lsn=transaction.lsn_of_change,
                    id=ids.new_id(ids.FOLDER),
                    name=name,
                    created_at=transaction.time,
                    created_by=SYSTEM_ACTOR,
                )
                current, made = transaction.add_folder(current, line), True
            if made:
                transaction.commit(
                    "create_folder", SYSTEM_ACTOR, [Subject(folder_id=current.id, path=current.path)]
                )
        return current

    def save(self, path: str, text: str) -> None:
        """Create the entry, or give it this text."""
        folder_path, _, name = path.rpartition("/")
        folder = self.folder(folder_path)
        content = prepare_content(text)
        with self.store.transaction() as transaction:
            known = transaction.folder(folder.id)
            line = known.entry_named(name) if known else None
            lsn = transaction.lsn_of_change
            new = EntryLine(
                lsn=lsn,
                id=line.id if line else ids.new_id(ids.ENTRY),
                name=name,
                title=name,
                type="note",
                description="",
                tags=(),
                content_seq=lsn,
                existence_seq=line.existence_seq if line else lsn,
                content_hash=content.content_hash,
                git_blob=content.git_blob,
                size_bytes=content.size_bytes,
                total_lines=content.total_lines,
                created_at=line.created_at if line else transaction.time,
                created_by=SYSTEM_ACTOR,
                updated_at=transaction.time,
                updated_by=SYSTEM_ACTOR,
            )
            transaction.save_entry(folder, new, content.data)
            transaction.commit(
                "update" if line else "create", SYSTEM_ACTOR, [Subject(folder.id, path, entry_id=new.id)]
            )

    def retitle(self, path: str, title: str) -> None:
        """Change an entry's title and nothing of its text."""
        folder, line = self.line(path)
        with self.store.transaction() as transaction:
            new = msgspec.structs.replace(line, lsn=transaction.lsn_of_change, title=title)
            transaction.save_entry(folder, new, None)
            transaction.commit("update", SYSTEM_ACTOR, [Subject(folder.id, path, entry_id=line.id)])

    def delete(self, path: str) -> None:
        """Delete the entry and keep its tombstone."""
        folder, line = self.line(path)
        with self.store.transaction() as transaction:
            tombstone = tombstone_of(
                line,
                ids.new_id(ids.DELETION),
                lsn=transaction.lsn_of_change,
                at=transaction.time,
                by=SYSTEM_ACTOR,
                reserved=False,
            )
            transaction.remove_entry(folder, tombstone)
            transaction.commit("delete", SYSTEM_ACTOR, [Subject(folder.id, path, entry_id=line.id)])

    def line(self, path: str) -> tuple[FolderRef, EntryLine]:
        """The entry's registry line, with its folder."""
        folder_path, _, name = path.rpartition("/")
        with self.store.snapshot() as view:
            folder = view.folder_at(folder_path.split("/") if folder_path else [])
            assert folder is not None
            line = folder.entry_named(name)
            assert line is not None
            return folder.folder, line

    def text_of(self, path: str) -> str:
        """What is stored under this path."""
        folder, line = self.line(path)
        with self.store.snapshot() as view:
            return view.read_content(folder, line).decode()

    def begin_segment(self) -> None:
        """Let the next record begin a segment of the log, with a checkpoint behind all before it."""
        with self.store.transaction() as transaction:
            cause = record_cause(transaction.time)
            self.store.append(cause, [], new_segment=True)
        self.store.checkpoint()

    def segments(self) -> list[int]:
        """The first record of each segment of the log."""
        return sorted(int(file.stem) for file in self.log.glob(f"*{SEGMENT_SUFFIX}"))

    def disagreements(self) -> list[str]:
        """What ``check_store`` finds wrong."""
        return [f"{found.place}: {found.what}" for found in check.check(self.store).disagreements]


def open_store(data_dir: Path) -> ContentStore:
    """The organization's store, as another process opens it."""
    layout = Layout(data_dir, ORGANIZATION)
    return ContentStore(layout, locks.WriterQueue(layout.locks))


def record_cause(time: str) -> Cause:
    """Why a record without any operation exists."""
    return Cause("upkeep", time, SYSTEM_ACTOR)
