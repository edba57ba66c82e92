"""The versions that an entry had, as far as the log still holds them."""

from collections.abc import Iterator
from dataclasses import dataclass

from core import ids
from core.log import get_logger
from core.types import FolderRef
from kb import registry
from kb.entry import version_of
from kb.registry import REGISTRY_NAME, DamagedRegistry, EntryLine
from kb.store.layout import CONTENT, Layout
from kb.store.marks import Mark
from kb.store.past import LookBack, LookedFarEnough, PastRecord
from kb.store.record import DamagedRecord, is_purged

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PastVersion:
    """An entry as a record left it. ``line`` has its hash, its metadata, and who changed it when."""

    line: EntryLine
    action: str
    reason: str | None


class History:
    """What the log up to ``end`` still holds of one live entry. Reads at most ``bytes_max``, and holds no lock."""

    def __init__(
        self, layout: Layout, end: Mark, folder: FolderRef, entry: EntryLine, *, bytes_max: int
    ) -> None:
        self._look = LookBack(layout, end, bytes_max=bytes_max)
        self._entry = entry
        above = (CONTENT, *folder.path.split("/")) if folder.path else (CONTENT,)
        self._registry = (*above, REGISTRY_NAME)
        self._file = (*above, entry.name)

    def versions(self) -> Iterator[PastVersion]:
        """The versions, newest first, down to the entry's creation or to where the log begins."""
        for past in self._look.about(self._entry.id, since=self._entry.existence_seq):
            line = self._line_of(past)
            if line is not None:
                yield PastVersion(line, past.cause.action, past.cause.reason)

    def find(self, version: str, data_key: bytes) -> PastVersion | None:
        """The version with this token; None where it is not kept, or too far back for this look."""
        try:
            return next(
                (past for past in self.versions() if version_of(past.line, data_key) == version), None
            )
        except LookedFarEnough:
            return None
        except (OSError, DamagedRecord, DamagedRegistry) as problem:
            _tell(problem)
            return None

    def text_of(self, line: EntryLine) -> str | None:
        """The text of a version; None where it is not kept, was purged, or is too far back for this look."""
        try:
            past = self._look.record(line.content_seq)
            data = self._look.read(past, self._file) if past else None
        except LookedFarEnough:
            return None
        except (OSError, DamagedRecord) as problem:
            _tell(problem)
            return None
        if data is None or is_purged(data) or ids.sha256_hex(data) != line.content_hash:
            return None
        return data.decode()

    def _line_of(self, past: PastRecord) -> EntryLine | None:
        data = self._look.read(past, self._registry) or b""
        needle = self._entry.id.encode()
        # A registry may be written whole: only what names the entry is decoded.
        mine = b"".join(line for line in data.splitlines(keepends=True) if needle in line)
        lines = [line for line in registry.decode_lines(mine) if isinstance(line, EntryLine)]
        return next((line for line in lines if line.id == self._entry.id and line.lsn == past.lsn), None)


def _tell(problem: Exception) -> None:
    # Whoever asked was refused anyway or only looks; ``check_store`` judges the log.
    log.warning("an old version could not be read", problem=type(problem).__name__)
