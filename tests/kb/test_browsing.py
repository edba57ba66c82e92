"""Browsing: path order, pages that stay true while others write, labels, and cursors that are good for one caller."""

from typing import Any

import pytest

from access.principals import Principal
from core.errors import InvalidArgument, NotFound
from core.types import EntryLocator, FolderLocator, Role
from kb.services.browse_entries import browse_entries
from kb.services.browse_folders import browse_folders
from kb.services.delete_entry import delete_entry
from kb.services.locate_folder import locate_folder
from kb.services.show_folder import show_folder
from tests.world import World

pytestmark = pytest.mark.django_db

PATHS = [
    "Engineering/Billing/invoices.md",
    "Engineering/Payments/Checkout/deployment.md",
    "Engineering/Payments/Checkout-2/notes.md",
    "Engineering/Payments/overview.md",
    "Engineering/payments-old.md",
    "Zebra/z.md",
    "apple.md",
    "Banana.md",
]


@pytest.fixture
def tree(world: World) -> World:
    for path in PATHS:
        world.entry(path, f"{path}\n")
    return world


def entries(principal: Principal, folder: str = "", **options: Any) -> list[str]:
    return [
        entry.path for entry in browse_entries(principal, FolderLocator(folder_path=folder), **options).items
    ]


def folders(principal: Principal, folder: str = "", **options: Any) -> list[tuple[str, str | None]]:
    return [
        (one.path, one.role)
        for one in browse_folders(principal, FolderLocator(folder_path=folder), **options).items
    ]


def test_a_listing_is_in_path_order_without_regard_to_case(tree: World) -> None:
    assert entries(tree.system, recursive=True) == sorted(PATHS, key=str.lower)
    assert entries(tree.system) == ["apple.md", "Banana.md"]


def test_the_pages_put_together_are_the_whole_listing(tree: World) -> None:
    for limit in (1, 2, 3, 8):
        seen, cursor = [], None
        while True:
            page = browse_entries(tree.system, recursive=True, limit=limit, cursor=cursor)
            seen += [entry.path for entry in page.items]
            if page.next_cursor is None:
                break
            cursor = page.next_cursor
        assert seen == sorted(PATHS, key=str.lower)


def test_folders_below_are_listed_parents_first(tree: World) -> None:
    assert [path for path, _ in folders(tree.system, recursive=True)] == [
        "Engineering",
        "Engineering/Billing",
        "Engineering/Payments",
        "Engineering/Payments/Checkout-2",
        "Engineering/Payments/Checkout",
        "Zebra",
    ]
    seen, cursor = [], None
    while True:
        page = browse_folders(tree.system, recursive=True, limit=1, cursor=cursor)
        seen += [folder.path for folder in page.items]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert seen == [path for path, _ in folders(tree.system, recursive=True)]


def test_a_page_is_not_shifted_by_what_others_create_and_delete_before_it(tree: World) -> None:
    first = browse_entries(tree.system, recursive=True, limit=3)
    gone = first.items[-1]

    tree.entry("aaa.md", "new before the page\n")
    delete_entry(tree.system, None, EntryLocator(entry_id=gone.entry_id), expected_version=gone.version)
    rest = browse_entries(tree.system, recursive=True, cursor=first.next_cursor)

    assert [entry.path for entry in first.items + rest.items] == sorted(PATHS, key=str.lower)


def test_a_child_grant_shows_ancestors_as_labels_without_siblings_or_entries(tree: World) -> None:
    priya = tree.person("priya", role=Role.READER, on="Engineering/Payments/Checkout")

    assert folders(priya) == [("Engineering", None)]
    assert folders(priya, "Engineering") == [("Engineering/Payments", None)]
    assert folders(priya, "Engineering/Payments") == [("Engineering/Payments/Checkout", "reader")]
    assert folders(priya, recursive=True) == [
        ("Engineering", None),
        ("Engineering/Payments", None),
        ("Engineering/Payments/Checkout", "reader"),
    ]
    assert entries(priya, "Engineering") == []
    assert entries(priya, recursive=True) == ["Engineering/Payments/Checkout/deployment.md"]


def test_has_children_counts_what_the_caller_sees(tree: World) -> None:
    priya = tree.person("priya", role=Role.READER, on="Engineering/Payments/Checkout")

    for path, seen_by_all, seen_by_priya in [
        ("Engineering", True, True),
        ("Engineering/Payments", True, True),
        ("Engineering/Payments/Checkout", False, False),
    ]:
        locator = FolderLocator(folder_path=path)
        assert show_folder(tree.system, locator).has_children is seen_by_all
        assert show_folder(priya, locator).has_children is seen_by_priya


def test_a_label_can_be_browsed_and_nothing_else(tree: World) -> None:
    priya = tree.person("priya", role=Role.READER, on="Engineering/Payments/Checkout")

    assert show_folder(priya, FolderLocator(folder_path="Engineering")).role is None
    with pytest.raises(NotFound):
        locate_folder(priya, FolderLocator(folder_path="Engineering"))
    for hidden in ("Engineering/Billing", "Zebra", "Nowhere"):
        with pytest.raises(NotFound):
            browse_folders(priya, FolderLocator(folder_path=hidden))
        with pytest.raises(NotFound):
            browse_entries(priya, FolderLocator(folder_path=hidden), recursive=True)


def test_the_root_always_answers(tree: World) -> None:
    mallory = tree.person("mallory")

    assert folders(mallory, recursive=True) == []
    assert entries(mallory, recursive=True) == []
    assert show_folder(mallory, FolderLocator()).role is None


def test_a_cursor_is_good_for_its_own_query_and_caller_alone(tree: World) -> None:
    ada = tree.person("ada", role=Role.READER)
    priya = tree.person("priya", role=Role.READER)
    cursor = browse_entries(ada, recursive=True, limit=2).next_cursor

    for attempt in (
        lambda: browse_entries(priya, recursive=True, cursor=cursor),
        lambda: browse_entries(ada, recursive=False, cursor=cursor),
        lambda: browse_entries(ada, FolderLocator(folder_path="Zebra"), recursive=True, cursor=cursor),
        lambda: browse_folders(ada, recursive=True, cursor=cursor),
        lambda: browse_entries(ada, recursive=True, cursor="noise"),
        lambda: browse_entries(ada, recursive=True, cursor=""),
    ):
        with pytest.raises(InvalidArgument) as refused:
            attempt()
        assert refused.value.details["field"] == "cursor"
    assert len(browse_entries(ada, recursive=True, limit=100, cursor=cursor).items) == len(PATHS) - 2


@pytest.mark.parametrize("limit", [0, 101, -1])
def test_a_page_has_one_to_a_hundred_rows(tree: World, limit: int) -> None:
    with pytest.raises(InvalidArgument):
        browse_entries(tree.system, limit=limit)


def test_access_is_judged_anew_on_every_page(tree: World) -> None:
    ada = tree.person("ada", role=Role.READER)
    cursor = browse_entries(ada, recursive=True, limit=2).next_cursor

    tree.revoke("ada")

    assert browse_entries(ada, recursive=True, cursor=cursor).items == []
