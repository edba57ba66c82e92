"""Reading many entries one after the other: a folder stays open for as long as they stand in it.

Opening the way down to a folder costs more than reading an entry of it, and lists come in path order.
"""

import os

from core import ids, safe_open
from core.types import FolderRef
from kb.registry import EntryLine
from kb.store.layout import CONTENT, Layout


class DamagedEntry(Exception):
    """An entry's file is missing or is not what its registry says. Carries the entry's id; the rest is fine."""


class Images:
    """The bytes of entries, proved against their registry lines."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._folder_id = ""
        self._directory = -1

    def read(self, folder: FolderRef, entry: EntryLine) -> bytes:
        """The bytes that the line tells of. Raises DamagedEntry."""
        try:
            if self._folder_id != folder.id:
                self.close()
                names = folder.path.split("/") if folder.path else []
                self._directory = safe_open.open_directory(self._layout.root, (CONTENT, *names))
                self._folder_id = folder.id
            descriptor = safe_open.open_file(self._directory, entry.name)
        except (FileNotFoundError, NotADirectoryError, safe_open.UnsafeFile) as error:
            raise DamagedEntry(entry.id) from error
        try:
            data = safe_open.read_all(descriptor)
        finally:
            os.close(descriptor)
        if ids.sha256_hex(data) != entry.content_hash:
            raise DamagedEntry(entry.id)
        return data

    def close(self) -> None:
        """Let the folder go."""
        if self._folder_id:
            self._folder_id = ""
            os.close(self._directory)
