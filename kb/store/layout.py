"""Where an organization's files are: the names, and the open directories everything is reached from."""

import os
from pathlib import Path

from core import safe_open
from kb.store import marks
from kb.store.filesystem import check_one_disk
from kb.store.marks import Mark

FORMAT_FILE = "FORMAT"
FORMAT = "1"
# What ``FORMAT`` says while a restore is under way, so that nothing starts on half an instance.
RESTORING = "restoring"
ORGANIZATIONS = "orgs"
CONTENT = "content"
PRIVATE = "private"
LOCKS = "locks"
LOG = "log"
STAGE = "stage"
OUTCOMES = "outcomes"
RESERVE = "reserve"
QUARANTINE = "quarantine"
APPLIED = "applied"
CHECKPOINT = "checkpoint"
FAULT = "fault"
UNSYNCED = "unsynced"
LOCK_FILES = ("publication", "writer", "alive", "checkpoint", "gate", "content", "upkeep")

SEGMENT_SUFFIX = ".log"


def segment_name(first_lsn: int) -> str:
    """The file name of the segment that begins with this record."""
    return f"{first_lsn:020d}{SEGMENT_SUFFIX}"


def locks_path(data_dir: Path, organization_id: str) -> Path:
    """The folder of an organization's lock files."""
    return data_dir / ORGANIZATIONS / organization_id / PRIVATE / LOCKS


class Layout:
    """The open directories of one organization, and its ``applied`` mark. One for each process.

    Raises FileNotFoundError, UnsuitableFilesystem.
    """

    def __init__(self, data_dir: Path, organization_id: str) -> None:
        self.organization_id = organization_id
        self._descriptors: list[int] = []
        self._applied_for_writing = -1
        try:
            self._open(data_dir)
        except BaseException:
            self.close()
            raise

    def _open(self, data_dir: Path) -> None:
        start = os.open(data_dir, safe_open.DIRECTORY_FLAGS)
        try:
            self.root = self._kept(safe_open.open_directory(start, (ORGANIZATIONS, self.organization_id)))
        finally:
            os.close(start)
        self.private = self._kept(safe_open.open_directory(self.root, (PRIVATE,)))
        self.log = self._kept(safe_open.open_directory(self.private, (LOG,)))
        self.stage = self._kept(safe_open.open_directory(self.private, (STAGE,)))
        self.locks = self._kept(safe_open.open_directory(self.private, (LOCKS,)))
        # ``applied`` is never replaced, so one descriptor stays good for the life of the process. This one is also
        # the witness for lost pages: opened before the first change, as syncfs wants it.
        self.applied = self._kept(safe_open.open_file(self.private, APPLIED))
        content = safe_open.open_directory(self.root, (CONTENT,))
        try:
            check_one_disk(self.root, self.log, self.stage, content)
        finally:
            os.close(content)

    def read_applied(self) -> Mark | None:
        """How far the tree follows the log; None where the mark is damaged."""
        return marks.decode(os.pread(self.applied, marks.MARK_BYTES, 0))

    def applied_for_writing(self) -> int:
        """The same file, opened for writing at the first change: a reader needs no right to write."""
        if self._applied_for_writing < 0:
            self._applied_for_writing = self._kept(safe_open.open_file(self.private, APPLIED, os.O_RDWR))
        return self._applied_for_writing

    def read_checkpoint(self) -> Mark | None:
        """How far the tree is durable; None where the mark is damaged or missing."""
        try:
            return marks.decode(safe_open.read_file(self.private, (CHECKPOINT,)))
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Close every descriptor."""
        self._applied_for_writing = -1
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _kept(self, descriptor: int) -> int:
        self._descriptors.append(descriptor)
        return descriptor
