"""The folder tree beside a page, and the way down to it: what ``reveal_folder`` found, as nested branches."""

from dataclasses import dataclass

from kb.entry import FolderView
from kb.links import address_of_folder
from kb.services.reveal_folder import Level


@dataclass(frozen=True, slots=True)
class Branch:
    """A folder in the tree. Labels have no role. ``rest`` is the address of what the branch has no room for."""

    name: str
    address: str
    is_label: bool
    has_children: bool
    is_open: bool = False
    is_current: bool = False
    branches: tuple["Branch", ...] = ()
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the way from the root."""

    name: str
    address: str
    is_label: bool


def tree_of(levels: list[Level]) -> Branch:
    """The root with all that is open below it."""
    below: Branch | None = None
    for level in reversed(levels):
        below = _opened(level, below)
    assert below is not None
    return below


def crumbs_of(levels: list[Level]) -> list[Crumb]:
    """The folders from below the root down to the last one."""
    return [
        Crumb(level.folder.name, address_of_folder(level.folder.path), level.folder.role is None)
        for level in levels[1:]
    ]


def _opened(level: Level, below: Branch | None) -> Branch:
    address = address_of_folder(level.folder.path)
    children = level.children.items + ([level.beyond] if level.beyond else [])
    branches = tuple(_branch(child, below) for child in children)
    cursor = level.children.next_cursor
    return Branch(
        name=level.folder.name,
        address=address,
        is_label=level.folder.role is None,
        has_children=level.folder.has_children,
        is_open=True,
        is_current=below is None,
        branches=branches,
        rest=f"{address}?folders={cursor}" if cursor else "",
    )


def _branch(folder: FolderView, opened: Branch | None) -> Branch:
    address = address_of_folder(folder.path)
    if opened is not None and opened.address == address:
        return opened
    return Branch(
        name=folder.name,
        address=address,
        is_label=folder.role is None,
        has_children=folder.has_children,
    )
