"""Whom access can be given to and where: lists for Owners, a page at a time."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.models import Identity
from access.pages import Page
from access.principals import Principal
from access.services.list_identities import list_identities
from core.errors import Forbidden, InvalidArgument, LimitExceeded
from core.types import Capability, ConnectionKind, IdentityKind, Role
from kb.services.browse_folders import browse_folders
from kb.services.list_owned_folders import list_owned_folders
from tests.world import World

PAYMENTS = "Engineering/Payments"
CHECKOUT = "Engineering/Payments/Checkout"

Listing = Callable[..., Page[Any]]
lists = pytest.mark.parametrize("listing", [list_identities, list_owned_folders])


def usernames(principal: Principal, **options: Any) -> list[str]:
    return [identity.username for identity in list_identities(principal, **options).items]


def paths(principal: Principal, **options: Any) -> list[tuple[str, int]]:
    page = list_owned_folders(principal, **options)
    return [(owned.folder.path, owned.acl_version) for owned in page.items]


def every_page(listing: Listing, principal: Principal, **options: Any) -> list[Any]:
    rows: list[Any] = []
    cursor = None
    while True:
        page = listing(principal, cursor=cursor, **options)
        rows += [row.as_dict() for row in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return rows


# Who may ask


@lists
def test_owners_of_any_folder_and_administrators_may_ask(world: World, listing: Listing) -> None:
    ada = world.person("ada", role=Role.OWNER, on=CHECKOUT)
    root = world.person("root", is_admin=True)

    for principal in (ada, root, world.through(world.token("ada")), world.system):
        assert listing(principal).items


@lists
@pytest.mark.parametrize("who", ["nobody", "reader", "editor", "read-only owner", "disabled owner"])
def test_who_owns_nothing_may_not_ask(world: World, listing: Listing, who: str) -> None:
    roles = {"nobody": None, "reader": Role.READER, "editor": Role.EDITOR}
    bo = world.person(
        "bo", role=roles.get(who, Role.OWNER), on=PAYMENTS, is_read_only=who == "read-only owner"
    )
    if who == "disabled owner":
        world.disable("bo")

    with pytest.raises(Forbidden):
        listing(bo)


@lists
@pytest.mark.parametrize("username", ["ada", "root"])
@pytest.mark.parametrize(
    "narrowed",
    [
        {"capability": Capability.READ},
        {"kind": ConnectionKind.MANAGED},
        {"scopes": {PAYMENTS: Role.EDITOR}},
        {"scopes": {}},
    ],
)
def test_through_a_narrowed_connection_nobody_may_ask(
    world: World, listing: Listing, username: str, narrowed: dict[str, Any]
) -> None:
    world.person("ada", role=Role.OWNER, on=PAYMENTS)
    world.person("root", is_admin=True)

    with pytest.raises(Forbidden):
        listing(world.through(world.token(username, **narrowed)))


# Identities


def test_everybody_is_listed_by_username_and_nobodys_address(world: World) -> None:
    root = world.person("root", is_admin=True)
    bot = world.service_account("deploy-bot")
    Identity.objects.filter(username="root").update(email="root@example.org", name="Rosa Root")
    world.disable("deploy-bot")

    assert [identity.as_dict() for identity in list_identities(root).items] == [
        {
            "identity_id": bot.identity_id,
            "name": "deploy-bot",
            "username": "deploy-bot",
            "kind": "service_account",
            "active": False,
        },
        {
            "identity_id": root.identity_id,
            "name": "Rosa Root",
            "username": "root",
            "kind": "person",
            "active": True,
        },
    ]


def test_of_one_kind_only(world: World) -> None:
    root = world.person("root", is_admin=True)
    world.service_account("deploy-bot")

    assert usernames(root, kind=IdentityKind.SERVICE_ACCOUNT) == ["deploy-bot"]
    assert usernames(root, kind=IdentityKind.PERSON) == ["root"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("nov", ["cnovak"]),
        ("NOVÁK", ["cnovak"]),
        ("nova\u0301k", ["cnovak"]),
        ("c", ["chall", "cnovak"]),
        ("owner-hall", ["chall"]),
        (" ", ["chall", "cnovak"]),
        ("%", []),
        ("_", []),
        (".", []),
        ("example", []),
    ],
)
def test_a_query_is_a_literal_text_in_the_name_or_username_in_any_case(
    world: World, query: str, found: list[str]
) -> None:
    root = world.person("root", is_admin=True)
    for username, name in (("cnovak", "Chris Novák"), ("chall", "Chris Owner-Hall")):
        world.person(username)
        Identity.objects.filter(username=username).update(name=name, email="c@example.org")

    assert usernames(root, query=query) == found


@lists
@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("", InvalidArgument),
        ("a\nb", InvalidArgument),
        ("\ud800", InvalidArgument),
        ("x" * 257, LimitExceeded),
    ],
)
def test_a_query_is_one_line_of_256_characters(
    world: World, listing: Listing, query: str, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        listing(world.system, query=query)
    assert listing(world.system, query="x" * 256).items == []


def test_two_thousand_people_come_in_pages_of_two_queries_each(world: World) -> None:
    root = world.person("root", is_admin=True)
    Identity.objects.bulk_create(
        Identity(
            organization_id=world.organization_id,
            kind=IdentityKind.PERSON,
            username=f"p{number:04}",
            name=f"Person {number}",
        )
        for number in range(2_000)
    )

    listed = every_page(list_identities, root, limit=100)
    with CaptureQueriesContext(connection) as queries:
        page = list_identities(root, query="1999")

    assert [identity["username"] for identity in listed] == [*(f"p{n:04}" for n in range(2_000)), "root"]
    assert [identity.username for identity in page.items] == ["p1999"]
    assert len(queries) == 2


def test_pages_neither_skip_nor_repeat_while_people_come(world: World) -> None:
    root = world.person("root", is_admin=True)
    for username in ("bo", "dora"):
        world.person(username)

    first = list_identities(root, limit=1)
    world.person("ada")
    world.person("cleo")
    second = list_identities(root, limit=2, cursor=first.next_cursor)

    assert [identity.username for identity in (*first.items, *second.items)] == ["bo", "cleo", "dora"]


# Folders


def test_owned_folders_are_those_of_grants_and_all_below_in_path_order(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    world.grant("ada", Role.OWNER, "Zoo")
    world.grant("ada", Role.EDITOR, "Engineering")
    world.folder(CHECKOUT)
    world.folder("Engineering/Billing")
    world.folder("Hidden")
    world.grant("ada", Role.READER, CHECKOUT)

    assert paths(ada) == [(PAYMENTS, 1), (CHECKOUT, 1), ("Zoo", 1)]


def test_an_owned_folder_is_shown_as_it_is_when_browsing(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    world.folder(CHECKOUT)

    listed = [owned.as_dict() for owned in list_owned_folders(ada).items]

    browsed = {folder.folder_id: folder.as_dict() for folder in browse_folders(ada, recursive=True).items}
    assert [folder.pop("acl_version") for folder in listed] == [1, 0]
    assert listed == [browsed[folder["folder_id"]] for folder in listed]


def test_an_administrator_owns_the_root_too(world: World) -> None:
    root = world.person("root", is_admin=True)
    world.folder(CHECKOUT)

    assert paths(root) == [("", 0), ("Engineering", 0), (PAYMENTS, 0), (CHECKOUT, 0)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_pages_of_every_length_give_the_same_folders(world: World, limit: int) -> None:
    root = world.person("root", is_admin=True)
    for path in (CHECKOUT, "Engineering/Billing", "Zoo"):
        world.folder(path)

    whole = every_page(list_owned_folders, root)

    assert every_page(list_owned_folders, root, limit=limit) == whole
    assert len(whole) == 6


def test_a_query_looks_in_the_whole_path(world: World) -> None:
    root = world.person("root", is_admin=True)
    world.folder(CHECKOUT)

    assert paths(root, query="PAYMENTS") == [(PAYMENTS, 0), (CHECKOUT, 0)]
    assert paths(root, query="payments/c") == [(CHECKOUT, 0)]


def test_a_grant_taken_away_takes_the_rest_of_the_pages(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    world.folder(CHECKOUT)
    cursor = list_owned_folders(ada, limit=1).next_cursor

    world.revoke("ada", PAYMENTS)
    with pytest.raises(Forbidden):
        list_owned_folders(ada, cursor=cursor)

    world.grant("ada", Role.OWNER, "Zoo")
    assert paths(ada, cursor=cursor) == [("Zoo", 1)]


def test_folders_cost_two_queries_however_many(world: World) -> None:
    root = world.person("root", is_admin=True)
    for number in range(30):
        world.person(f"person-{number}", role=Role.READER, on=f"Folder {number}")

    with CaptureQueriesContext(connection) as queries:
        listed = paths(root)

    assert len(listed) == 31
    assert len(queries) == 2


# Cursors


@lists
def test_a_cursor_is_good_for_one_caller_one_connection_and_one_query(world: World, listing: Listing) -> None:
    ada = world.person("ada", role=Role.OWNER, on=CHECKOUT)
    world.grant("ada", Role.OWNER, "Engineering")
    bo = world.person("bo", role=Role.OWNER, on="Engineering")
    cursor = listing(ada, limit=1).next_cursor
    assert cursor is not None

    assert listing(ada, limit=2, cursor=cursor).items
    for principal, query in ((bo, None), (world.through(world.token("ada")), None), (ada, "e")):
        with pytest.raises(InvalidArgument):
            listing(principal, query=query, cursor=cursor)


def test_a_cursor_of_one_list_is_none_of_another(world: World) -> None:
    root = world.person("root", is_admin=True)
    world.service_account("bot-a")
    world.service_account("bot-b")
    world.folder(PAYMENTS)
    people = list_identities(root, limit=1).next_cursor
    folders = list_owned_folders(root, limit=1).next_cursor

    with pytest.raises(InvalidArgument):
        list_owned_folders(root, cursor=people)
    with pytest.raises(InvalidArgument):
        list_identities(root, cursor=folders)
    with pytest.raises(InvalidArgument):
        list_identities(root, kind=IdentityKind.SERVICE_ACCOUNT, cursor=people)


@lists
@pytest.mark.parametrize("limit", [0, 101])
def test_a_page_has_1_to_100_rows(world: World, listing: Listing, limit: int) -> None:
    with pytest.raises(InvalidArgument):
        listing(world.system, limit=limit)
