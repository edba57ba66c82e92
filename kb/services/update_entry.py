"""Update an entry: its text as a whole, by a diff or by exact edits; its metadata; or both at once."""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.conf import settings

from access import authorizer
from access.authorizer import Sight
from access.principals import Principal
from core import limits, text
from core.errors import InvalidArgument, PatchFailed
from core.types import EntryLocator, FolderRef, MutationRequest, Role
from kb.conflicts import check_version, explaining_conflicts
from kb.content import Content
from kb.entry import Entry, entry_summary
from kb.locate import check_entry_locator, find_entry
from kb.mutation import Change, mutate
from kb.patching.applying import Offset
from kb.patching.unified import unified_diff
from kb.registry import EntryLine
from kb.revision import Edits, Revised, Revision, check_revision
from kb.services.create_entry import check_type
from kb.store.content_store import Transaction, View
from kb.store.record import Subject
from kb.store.stores import store_of


class Updated(msgspec.Struct, frozen=True):
    """The entry after the update. Without a change the version is the old one.

    ``offsets``: the hunks of a diff that were found away from the line they named. Only a dry run has a ``diff``, and
    its ``entry`` is the entry as it stands; ``diff_truncated`` tells that hunks of it were left out.
    """

    entry: Entry
    changed: bool
    previous_content_hash: str
    offsets: tuple[Offset, ...] = ()
    diff: str | None = None
    diff_truncated: bool = False


def update_entry(
    principal: Principal,
    request: MutationRequest | None,
    entry: EntryLocator,
    *,
    expected_version: str,
    content: str | None = None,
    diff: str | None = None,
    edits: Edits | None = None,
    title: str | None = None,
    description: str | None = None,
    tags: Sequence[str] | None = None,
    type: str | None = None,
    reason: str | None = None,
    dry_run: bool = False,
) -> Updated:
    """Change the text, the given metadata, or both, if nobody changed the entry in the meantime.

    At most one of ``content`` (the whole text), ``diff`` (unified, for this entry) and ``edits`` (pairs of an old text
    that stands in the entry exactly once and its new one). ``reason`` is kept with the change in the log. A
    ``dry_run`` judges everything and changes nothing; its request stays unused.

    Raises InvalidArgument, LimitExceeded, NotFound, Forbidden, VersionConflict, PatchFailed, and what ``mutate``
    raises.
    """
    check_entry_locator(entry)
    metadata = _checked_metadata(title=title, description=description, tags=tags, type=type)
    if reason is not None:
        reason = text.clean_reason(reason)
    revision = check_revision(content=content, diff=diff, edits=edits)
    if revision is None and not metadata:
        raise InvalidArgument("content", "Give one of content, diff and edits, or metadata, or both.")
    update = _Update(principal, entry, expected_version, revision, metadata, reason, dry_run=dry_run)
    with explaining_conflicts(principal, entry, expected_version):
        if dry_run:
            return update.foretell()
        return mutate(
            principal, request, Updated, check=update.look, prepare=update.work_out, change=update.change
        )


class _Update:
    """One update on its way: looked at on a snapshot, worked out with nothing held, then judged again and saved."""

    def __init__(
        self,
        principal: Principal,
        entry: EntryLocator,
        expected_version: str,
        revision: Revision | None,
        metadata: dict[str, Any],
        reason: str | None,
        *,
        dry_run: bool,
    ) -> None:
        self._principal = principal
        self._entry = entry
        self._expected_version = expected_version
        self._revision = revision
        self._metadata = metadata
        self._reason = reason
        self._reads_text = revision is not None and (dry_run or revision.needs_old_text)
        self._old = b""
        self._seen: Entry | None = None
        self._revised: Revised | None = None

    def look(self, view: View, sight: Sight) -> EntryLine:
        """Judge the update on a snapshot, and take from it what working it out needs."""
        folder, line = self._judged(view, sight)
        self._seen = entry_summary(folder, line, settings.DATA_KEY)
        if self._reads_text:
            self._old = view.read_content(folder, line)
        return line

    def work_out(self) -> None:
        """Make the new text of the one that was seen; its version is compared again before it is saved."""
        assert self._seen is not None
        if self._revision is None:
            return
        try:
            self._revised = self._revision.revise(self._old.decode(), path=self._seen.path)
        except PatchFailed as refused:
            refused.details["current_version"] = self._seen.version
            raise

    def change(self, transaction: Transaction, sight: Sight) -> Change[Updated]:
        """Judge again and save."""
        folder, line = self._judged(transaction, sight)
        content, updates = self._differing(line)
        changed = content is not None or bool(updates)
        new = line
        if changed:
            new = _advanced(line, transaction, self._principal, content, updates)
            transaction.save_entry(folder, new, content.data if content else None)
        summary = entry_summary(folder, new, settings.DATA_KEY)
        result = Updated(
            entry=summary,
            changed=changed,
            previous_content_hash=line.content_hash,
            offsets=self._revised.offsets if self._revised else (),
        )
        subject = Subject(folder_id=folder.id, path=summary.path, entry_id=line.id)
        return Change("update", result, folder, (subject,), reason=self._reason, changed=changed)

    def foretell(self) -> Updated:
        """What the update would do, without doing it."""
        with store_of(self._principal.organization_id).snapshot() as view:
            line = self.look(view, authorizer.content_sight_of(self._principal))
        self.work_out()
        assert self._seen is not None
        content, updates = self._differing(line)
        new = content.data if content else self._old
        diff = unified_diff(
            self._old.decode(), new.decode(), filename=line.name, max_bytes=limits.DIFF_MAX_BYTES
        )
        return Updated(
            entry=self._seen,
            changed=content is not None or bool(updates),
            previous_content_hash=line.content_hash,
            offsets=self._revised.offsets if self._revised else (),
            diff=diff.text,
            diff_truncated=not diff.is_whole,
        )

    def _judged(self, view: View, sight: Sight) -> tuple[FolderRef, EntryLine]:
        folder, line = find_entry(view, sight, self._entry)
        sight.require(Role.EDITOR, folder.folder)
        check_version(line, self._expected_version)
        return folder.folder, line

    def _differing(self, line: EntryLine) -> tuple[Content | None, dict[str, Any]]:
        """The text and the metadata that differ from the entry's."""
        content = self._revised.content if self._revised else None
        if content is not None and content.content_hash == line.content_hash:
            content = None
        updates = {name: value for name, value in self._metadata.items() if getattr(line, name) != value}
        return content, updates


def _checked_metadata(
    *, title: str | None, description: str | None, tags: Sequence[str] | None, type: str | None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if title is not None:
        metadata["title"] = text.clean_title(title, field="metadata.title")
    if description is not None:
        metadata["description"] = text.clean_description(description, field="metadata.description")
    if tags is not None:
        metadata["tags"] = tuple(text.clean_tags(list(tags), field="metadata.tags"))
    if type is not None:
        check_type(type, field="metadata.type")
        metadata["type"] = type
    return metadata


def _advanced(
    line: EntryLine,
    transaction: Transaction,
    principal: Principal,
    content: Content | None,
    metadata: dict[str, Any],
) -> EntryLine:
    lsn = transaction.lsn_of_change
    facts: dict[str, Any] = dict(metadata)
    if content is not None:
        facts |= {
            "content_seq": lsn,
            "content_hash": content.content_hash,
            "git_blob": content.git_blob,
            "size_bytes": content.size_bytes,
            "total_lines": content.total_lines,
        }
    return msgspec.structs.replace(
        line, lsn=lsn, updated_at=transaction.time, updated_by=principal.actor, **facts
    )
