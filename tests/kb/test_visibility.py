"""What a caller sees of a tree, compared with a plain account of the rules on random trees, grants and caps."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from access.authorizer import Sight
from access.principals import system_principal
from core.types import SYSTEM_ACTOR, FolderRef, Role
from kb.folders import VisibleFolders
from kb.registry import EntryLine, FolderLine
from kb.store.index import FolderRegistry

NAMES = ["a", "A2", "a-b", "b", "B_c", "z"]


@dataclass
class Tree:
    """Folders by id, as a view would hold them; ids are the paths."""

    folders: dict[str, FolderRegistry] = field(default_factory=dict)

    def folder(self, folder_id: str) -> FolderRegistry | None:
        return self.folders.get(folder_id)


def entry(name: str) -> EntryLine:
    return EntryLine(
        lsn=1, id=name, name=name, title=name, type="note", description="", tags=(), content_seq=1,
        existence_seq=1, content_hash="", git_blob="", size_bytes=0, total_lines=0, created_at="",
        created_by=SYSTEM_ACTOR, updated_at="", updated_by=SYSTEM_ACTOR,
    )  # fmt: skip


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    tree = Tree()
    root = FolderRegistry(FolderRef("root", "", ("root",)), b"")
    tree.folders["root"] = root
    for _ in range(draw(st.integers(0, 12))):
        parent = draw(st.sampled_from(sorted(tree.folders)))
        name = draw(st.sampled_from(NAMES))
        above = tree.folders[parent]
        if above.child_named(name):
            continue
        path = f"{above.folder.path}/{name}" if above.folder.path else name
        above.take(FolderLine(lsn=1, id=path, name=name, created_at="", created_by=SYSTEM_ACTOR))
        tree.folders[path] = FolderRegistry(FolderRef(path, path, (*above.folder.lineage, path)), b"")
    for _ in range(draw(st.integers(0, 10))):
        folder = tree.folders[draw(st.sampled_from(sorted(tree.folders)))]
        name = draw(st.sampled_from(NAMES)) + ".md"
        if not folder.entry_named(name):
            folder.take(entry(name))
    return tree


def roles(tree: Tree) -> st.SearchStrategy[dict[str, Role]]:
    return st.dictionaries(
        st.sampled_from([*sorted(tree.folders), "gone"]), st.sampled_from(Role), max_size=3
    )


def sorted_as_paths(paths: list[str]) -> list[str]:
    return sorted(paths, key=str.lower)


def sorted_as_folders(paths: list[str]) -> list[str]:
    return sorted(paths, key=lambda path: path.lower() + "/")


@given(st.data())
def test_listings_are_what_the_rules_say_and_pages_add_up(data: st.DataObject) -> None:
    tree = data.draw(trees())
    sight = Sight(
        system_principal("org"),
        is_alive=True,
        granted=data.draw(roles(tree)),
        caps=data.draw(st.none() | roles(tree)),
    )
    visible = VisibleFolders(tree, sight)  # type: ignore[arg-type]
    start = tree.folders[data.draw(st.sampled_from(sorted(tree.folders)))]

    readable = {key for key, one in tree.folders.items() if sight.can_read(one.folder)}
    shown = {
        key
        for key, one in tree.folders.items()
        if key == "root"
        or key in readable
        or any(other.startswith(one.folder.path + "/") for other in readable)
    }
    below = [
        one.folder.path
        for key, one in tree.folders.items()
        if key in shown and start.folder.id in one.folder.lineage[:-1]
    ]
    entries = [
        (f"{one.folder.path}/{line.name}").lstrip("/")
        for key, one in tree.folders.items()
        if key in readable and start.folder.id in one.folder.lineage
        for line in one.entries.values()
    ]

    assert {key for key, one in tree.folders.items() if visible.is_visible(one.folder)} == shown
    if start.folder.id not in shown:
        return
    listed = [one.folder.path for one in visible.below(start, "")]
    assert listed == sorted_as_folders(below)
    direct = [
        path
        for path in listed
        if path.count("/") == (start.folder.path + "/").count("/") - (not start.folder.path)
    ]
    assert [one.folder.path for one in visible.children(start, "")] == direct
    assert visible.has_children(start) == bool(direct)
    found = [
        (f"{folder.path}/{line.name}").lstrip("/")
        for folder, line in visible.entries(start, "", recursive=True)
    ]
    assert found == sorted_as_paths(entries)
    for cut in range(len(found)):
        rest = visible.entries(start, found[cut].lower(), recursive=True)
        assert [(f"{folder.path}/{line.name}").lstrip("/") for folder, line in rest] == found[cut + 1 :]
    for cut in range(len(listed)):
        rest_of_folders = visible.below(start, listed[cut].lower() + "/")
        assert [one.folder.path for one in rest_of_folders] == listed[cut + 1 :]
    for cut in range(len(direct)):
        rest_of_children = visible.children(start, direct[cut].lower() + "/")
        assert [one.folder.path for one in rest_of_children] == direct[cut + 1 :]


def test_a_place_between_two_rows_goes_on_with_the_next_one() -> None:
    root = FolderRegistry(FolderRef("root", "", ("root",)), b"")
    for name in ("a.md", "c.md"):
        root.take(entry(name))
    tree = Tree({"root": root})
    sight = Sight(system_principal("org"), is_alive=True, is_owner_everywhere=True)

    found = VisibleFolders(tree, sight).entries(root, "b.md", recursive=True)  # type: ignore[arg-type]

    assert [line.name for _, line in found] == ["c.md"]
