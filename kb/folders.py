"""Which folders a caller sees, and walking them in path order.

What is readable is readable all the way down: grants and caps both inherit. So sight begins at a few folders, and
the folders above these are labels: shown so that one can find the way, without siblings, entries or counts.
Path order is that of the whole paths with ASCII case folded, so each subtree is one run in it.
"""

import bisect
import heapq
from collections.abc import Iterator
from functools import cached_property

from access.authorizer import Sight
from core import names
from core.types import FolderRef, Role
from kb.registry import EntryLine
from kb.store.content_store import View
from kb.store.index import FolderRegistry


class VisibleFolders:
    """What one caller sees of one state of the tree."""

    def __init__(self, view: View, sight: Sight) -> None:
        self._view = view
        self._sight = sight

    def role_on(self, folder: FolderRef) -> Role | None:
        """The caller's role; None where the folder is a label or hidden."""
        return self._sight.role_on(folder)

    def is_visible(self, folder: FolderRef) -> bool:
        """Whether the caller can read the folder or needs it as a label. The root is always visible."""
        return folder.parent_id is None or self._sight.can_read(folder) or self._is_label(folder)

    def has_children(self, folder: FolderRegistry) -> bool:
        """Whether the caller sees a folder in this one."""
        return next(self._child_keys(folder, ""), None) is not None

    def children(self, folder: FolderRegistry, after: str) -> Iterator[FolderRegistry]:
        """The visible folders in ``folder``, in path order, behind the place ``after``."""
        for key in self._child_keys(folder, after):
            child = self._child(folder, key)
            if place_of_folder(child.folder) > after:
                yield child

    def below(self, start: FolderRegistry, after: str) -> Iterator[FolderRegistry]:
        """The visible folders at any depth below ``start``, in path order, behind the place ``after``."""
        stack = [self.children_from(start, after)]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
                continue
            if place_of_folder(child.folder) > after:
                yield child
            stack.append(self.children_from(child, after))

    def children_from(self, folder: FolderRegistry, after: str) -> Iterator[FolderRegistry]:
        """The visible folders in ``folder`` whose subtree may reach behind the place ``after``."""
        for key in self._child_keys(folder, after):
            yield self._child(folder, key)

    def readable_tops(self, start: FolderRegistry) -> Iterator[FolderRegistry]:
        """The topmost readable folders at or below ``start``, in path order: all that is readable lies in them."""
        if self._sight.can_read(start.folder):
            yield start
            return
        prefix = place_of_folder(start.folder)
        last = ""
        for place in self._starts[bisect.bisect_left(self._starts, prefix) :]:
            if not place.startswith(prefix):
                return
            if last and place.startswith(last):
                continue
            last = place
            folder = self._view.folder_at(place[:-1].split("/"))
            assert folder is not None
            yield folder

    def entries(
        self, start: FolderRegistry, after: str, *, recursive: bool
    ) -> Iterator[tuple[FolderRef, EntryLine]]:
        """The readable entries in ``start``, or at any depth below it, in path order behind the place ``after``."""
        stack = [(start, self._steps(start, after, recursive=recursive))]
        while stack:
            folder, steps = stack[-1]
            key = next(steps, None)
            if key is None:
                stack.pop()
            elif key.endswith("/"):
                child = self._child(folder, key)
                stack.append((child, self._steps(child, after, recursive=True)))
            else:
                entry = folder.entry_named(key)
                assert entry is not None
                yield folder.folder, entry

    def _steps(self, folder: FolderRegistry, after: str, *, recursive: bool) -> Iterator[str]:
        entries: Iterator[str] = iter(())
        if self._sight.can_read(folder.folder):
            rest = _rest(after, place_of_folder(folder.folder))
            first = bisect.bisect_right(folder.entry_names, rest) if rest else 0
            entries = iter(folder.entry_names[first:])
        if not recursive:
            return entries
        return heapq.merge(entries, self._child_keys(folder, after))

    def _child_keys(self, folder: FolderRegistry, after: str) -> Iterator[str]:
        prefix = place_of_folder(folder.folder)
        keys = folder.child_names if self._sight.can_read(folder.folder) else self._label_keys(prefix)
        rest = _rest(after, prefix)
        first = bisect.bisect_left(keys, rest) if rest else 0
        if rest and first > 0 and rest.startswith(keys[first - 1]):
            # ``after`` lies inside this child's subtree.
            first -= 1
        # By number, since a list of 10,000 need not be copied for a page of 50.
        return (keys[number] for number in range(first, len(keys)))

    def _child(self, folder: FolderRegistry, key: str) -> FolderRegistry:
        line = folder.child_named(key[:-1])
        assert line is not None
        child = self._view.folder(line.id)
        assert child is not None
        return child

    @cached_property
    def _starts(self) -> list[str]:
        # The places where sight begins, sorted. Only of use where the root itself is not readable.
        granted = self._sight.granted_folder_ids()
        known = (self._view.folder(folder_id) for folder_id in granted or ())
        return sorted(
            place_of_folder(folder.folder)
            for folder in known
            if folder is not None and self._sight.can_read(folder.folder)
        )

    def _is_label(self, folder: FolderRef) -> bool:
        place = place_of_folder(folder)
        first = bisect.bisect_left(self._starts, place)
        return first < len(self._starts) and self._starts[first].startswith(place)

    def _label_keys(self, prefix: str) -> list[str]:
        first = bisect.bisect_left(self._starts, prefix)
        keys: set[str] = set()
        for start in self._starts[first:]:
            if not start.startswith(prefix):
                break
            component, slash, _ = start[len(prefix) :].partition("/")
            keys.add(component + slash)
        return sorted(keys)


def place_of_folder(folder: FolderRef) -> str:
    """A folder's place in path order: its folded path and ``/``; the root's is empty."""
    return names.fold(folder.path) + "/" if folder.path else ""


def place_of_entry(folder: FolderRef, entry: EntryLine) -> str:
    """An entry's place in path order: its folded path."""
    return place_of_folder(folder) + names.fold(entry.name)


def _rest(after: str, prefix: str) -> str:
    """The part of the place ``after`` below ``prefix``; empty when everything below ``prefix`` lies behind it."""
    if after.startswith(prefix):
        return after[len(prefix) :]
    return "" if after < prefix else "\x7f"
