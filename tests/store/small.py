"""A small organization for the rigs: made once, copied for every trial, opened as a process of its own would."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.locks import WriterQueue
from kb.store import provision
from kb.store.content_store import ContentStore
from kb.store.layout import Layout

ORGANIZATION = "org_small"


class Small:
    """The files of one organization in a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.top = data_dir / "orgs" / ORGANIZATION
        self.content = self.top / "content"
        self.private = self.top / "private"
        self.log = self.private / "log"
        self.stage = self.private / "stage"
        self.fault = self.private / "fault"

    def provision(self) -> "Small":
        """Make the files as the first start does."""
        provision.provision(self.data_dir, ORGANIZATION)
        return self

    def without_spare_shards(self, *, keep: str = "00") -> "Small":
        """Leave one folder of outcomes of the 256, which nobody would miss: copying gets three times faster."""
        for shard in (self.private / "outcomes").iterdir():
            if shard.name != keep:
                shard.rmdir()
        return self

    def open(self) -> ContentStore:
        """The store, as a process that starts opens it."""
        layout = Layout(self.data_dir, ORGANIZATION)
        return ContentStore(layout, WriterQueue(layout.locks))

    @contextmanager
    def opened(self) -> Iterator[ContentStore]:
        """The store for the length of a block, then a clean stop."""
        store = self.open()
        try:
            yield store
        finally:
            store.close()

    def copy_to(self, data_dir: Path) -> "Small":
        """The same files once more, in place of whatever was there."""
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.copytree(self.data_dir, data_dir)
        return Small(data_dir)

    def segments(self) -> list[Path]:
        """The files of the log, oldest first."""
        return sorted(self.log.iterdir())

    def leftovers(self) -> list[str]:
        """What a writer who is gone left in ``stage/``."""
        return sorted(path.name for path in self.stage.iterdir())


def vanish(store: ContentStore) -> None:
    """End a store as SIGKILL ends its process: no checkpoint, no word, and every lock is free."""
    store._closing.set()
    store._checkpoint_due.set()
    if store._checkpointer is not None:
        store._checkpointer.join()
    if store._alive is not None:
        store._alive.drop_kept()
    store._segments.close()
    store.layout.close()
