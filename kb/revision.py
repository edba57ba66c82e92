"""What an update asks an entry's text to become: other text, or the old one with a diff or with exact edits."""

from collections.abc import Sequence
from dataclasses import dataclass

from core import limits, text
from core.errors import InvalidArgument, LimitExceeded
from kb.content import Content, prepare_content
from kb.patching.applying import Offset, apply_diff, apply_edits

Edits = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Revised:
    """The new text with its facts, and the hunks of the diff that were found away from their line."""

    content: Content
    offsets: tuple[Offset, ...] = ()


@dataclass(frozen=True, slots=True)
class Revision:
    """Exactly one of the three, checked as far as that needs no entry."""

    content: Content | None = None
    diff: str | None = None
    edits: Edits | None = None

    @property
    def needs_old_text(self) -> bool:
        """Whether the new text depends on the old one."""
        return self.content is None

    def revise(self, old: str, *, path: str) -> Revised:
        """The new text of the entry at ``path``. Raises PatchFailed, LimitExceeded."""
        if self.content is not None:
            return Revised(self.content)
        if self.diff is not None:
            patched = apply_diff(old, self.diff, path=path)
        else:
            patched = apply_edits(old, self.edits or ())
        return Revised(prepare_content(patched.text), patched.offsets)


def check_revision(*, content: str | None, diff: str | None, edits: Edits | None) -> Revision | None:
    """The revision that a caller asks for, None where none of the three is given.

    Line endings become LF, as in the entry. Raises InvalidArgument, LimitExceeded.
    """
    given = [
        name for name, value in (("content", content), ("diff", diff), ("edits", edits)) if value is not None
    ]
    if len(given) > 1:
        raise InvalidArgument(given[1], "Give at most one of content, diff and edits.")
    if content is not None:
        return Revision(content=prepare_content(content))
    if diff is not None:
        diff = text.clean_content(diff, field="diff", max_bytes=limits.DIFF_MAX_BYTES)
        if not diff.strip():
            raise InvalidArgument("diff", "This is empty.")
        return Revision(diff=diff)
    if edits is not None:
        return Revision(edits=_checked_edits(edits))
    return None


def _checked_edits(edits: Edits) -> Edits:
    if not edits:
        raise InvalidArgument("edits", "Give at least one edit.")
    if len(edits) > limits.EDITS_MAX:
        raise LimitExceeded("edits", limit=limits.EDITS_MAX, unit="edits")
    room = limits.DIFF_MAX_BYTES
    checked: list[tuple[str, str]] = []
    for number, (old_text, new_text) in enumerate(edits, 1):
        try:
            old = text.clean_content(old_text, field="edits.old_text", max_bytes=limits.DIFF_MAX_BYTES)
            new = text.clean_content(new_text, field="edits.new_text", max_bytes=limits.DIFF_MAX_BYTES)
        except InvalidArgument as refused:
            refused.details["edit"] = number
            raise
        room -= len(old_text.encode()) + len(new_text.encode())
        if room < 0:
            raise LimitExceeded("edits", limit=limits.DIFF_MAX_BYTES, unit="bytes")
        if old == "":
            raise InvalidArgument("edits.old_text", "This is empty.", edit=number)
        if old == new:
            raise InvalidArgument("edits.new_text", "This is the same as old_text.", edit=number)
        checked.append((old, new))
    return checked
