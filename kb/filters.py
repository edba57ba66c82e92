"""Narrowing a list of entries by what their registry lines say."""

from collections.abc import Sequence
from dataclasses import dataclass

from core import limits, text
from core.errors import InvalidArgument, LimitExceeded
from core.folding import fold
from kb.registry import EntryLine
from kb.services.create_entry import check_type


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """All that is given must hold: the type, every tag, and ``name_contains`` (folded) in filename or title."""

    type: str | None = None
    tags: tuple[str, ...] = ()
    name_contains: str | None = None

    def matches(self, entry: EntryLine) -> bool:
        """Whether the entry passes."""
        return (
            (self.type is None or entry.type == self.type)
            and all(tag in entry.tags for tag in self.tags)
            and (
                self.name_contains is None
                or self.name_contains in fold(entry.name)
                or self.name_contains in fold(entry.title)
            )
        )


def entry_filter(
    *, type: str | None = None, tags: Sequence[str] = (), name_contains: str | None = None
) -> EntryFilter:
    """The filter of a caller's arguments. Raises InvalidArgument, LimitExceeded."""
    if type is not None:
        check_type(type)
    if name_contains is not None:
        if name_contains == "":
            raise InvalidArgument("name_contains", "This is empty.")
        if len(name_contains) > limits.NAME_FILTER_MAX_CHARACTERS:
            raise LimitExceeded("name_contains", limit=limits.NAME_FILTER_MAX_CHARACTERS, unit="characters")
        text.refuse_unprintable(name_contains, field="name_contains")
        name_contains = fold(name_contains)
    return EntryFilter(type=type, tags=tuple(text.clean_tags(list(tags))), name_contains=name_contains)
