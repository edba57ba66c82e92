"""Telling a caller who comes with an old version what has changed since, so that one more call can be enough."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from access import authorizer
from access.principals import Principal
from core import limits
from core.errors import VersionConflict
from core.types import EntryLocator, Role
from kb.entry import version_of
from kb.history import History
from kb.locate import find_entry
from kb.patching.unified import unified_diff
from kb.registry import EntryLine
from kb.store.images import DamagedEntry
from kb.store.stores import store_of

METADATA = ("title", "description", "tags", "type")


def check_version(line: EntryLine, expected_version: str) -> None:
    """Refuse a version that is not the present one. Raises VersionConflict."""
    current = version_of(line, settings.DATA_KEY)
    if current != expected_version:
        raise VersionConflict(current_version=current, content_hash=line.content_hash)


@contextmanager
def explaining_conflicts(principal: Principal, entry: EntryLocator, expected_version: str) -> Iterator[None]:
    """Let a VersionConflict that leaves the block tell what has changed since ``expected_version``.

    The caller is judged again, and the conflict is that of the state in which this was done. Reading back and
    comparing happen with no lock held. Raises what the block raises, and NotFound, Forbidden, StorageUnavailable.
    """
    try:
        yield
    except VersionConflict:
        raise _explained(principal, entry, expected_version) from None


def _explained(principal: Principal, entry: EntryLocator, expected_version: str) -> VersionConflict:
    store = store_of(principal.organization_id)
    with store.snapshot() as view:
        sight = authorizer.content_sight_of(principal)
        registry, line = find_entry(view, sight, entry)
        sight.require(Role.EDITOR, registry.folder)
        folder, mark = registry.folder, view.mark
        try:
            current = view.read_content(folder, line).decode()
        except DamagedEntry:
            current = None
    history = History(store.layout, mark, folder, line, bytes_max=limits.HISTORY_SCAN_BYTES)
    return VersionConflict(
        current_version=version_of(line, settings.DATA_KEY),
        content_hash=line.content_hash,
        **_changed_since(history, expected_version, line, current),
    )


def _changed_since(history: History, version: str, line: EntryLine, current: str | None) -> dict[str, Any]:
    """What changed between a version that is still kept and the entry as it stands."""
    past = history.find(version, settings.DATA_KEY)
    if past is None or current is None:
        return {}
    since: dict[str, Any] = {}
    if any(getattr(past.line, name) != getattr(line, name) for name in METADATA):
        since["metadata_changed"] = True
    is_same = past.line.content_hash == line.content_hash
    old = current if is_same else history.text_of(past.line)
    if old is None:
        return since
    diff = unified_diff(old, current, filename=line.name, max_bytes=limits.DIFF_SINCE_MAX_BYTES)
    if diff.is_whole or diff.text:
        since["diff_since"] = diff.text
    if not diff.is_whole:
        since["diff_truncated"] = True
    return since
