import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.services.inspect_access import inspect_access
from core.errors import NotFound
from core.types import Capability, Role
from tests.world import World

PAYMENTS = "Engineering/Payments"
CHECKOUT = "Engineering/Payments/Checkout"


def test_without_a_folder_it_tells_who_is_asking_and_how(world: World) -> None:
    bot = world.service_account("deploy-bot", role=Role.OWNER, capability=Capability.READ)

    assert inspect_access(bot).as_dict() == {
        "identity": {
            "identity_id": bot.identity_id,
            "name": "deploy-bot",
            "username": "deploy-bot",
            "kind": "service_account",
        },
        "role": None,
        "capability": "read",
        "folder_scopes": None,
        "acl_version": None,
        "grants": None,
    }


def test_the_role_is_what_the_connection_can_do_now(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    capped = world.through(world.token("ada", scopes={PAYMENTS: Role.READER}))

    assert inspect_access(ada, world.folder(CHECKOUT)).role is Role.OWNER
    seen = inspect_access(capped, world.folder(CHECKOUT)).as_dict()
    assert seen["role"] == "reader"
    assert seen["folder_scopes"] == [{"folder_id": world.folder(PAYMENTS).id, "max_role": "reader"}]
    assert seen["grants"] is None


@pytest.mark.parametrize("role", [Role.READER, Role.EDITOR])
def test_who_is_no_owner_sees_neither_grants_nor_version(world: World, role: Role) -> None:
    priya = world.person("priya", role=role, on=PAYMENTS)

    seen = inspect_access(priya, world.folder(PAYMENTS))

    assert (seen.role, seen.acl_version, seen.grants) == (role, None, None)


def test_an_owner_sees_every_grant_that_reaches_the_folder(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on="Engineering")
    world.person("priya", role=Role.READER, on=CHECKOUT)
    world.person("bo", role=Role.EDITOR, on="Engineering/Billing")
    world.service_account("deploy-bot", role=Role.EDITOR, on=CHECKOUT)
    world.person("root", is_admin=True)

    seen = inspect_access(ada, world.folder(CHECKOUT)).as_dict()

    assert seen["acl_version"] == 2
    assert [
        (grant["username"], grant["role"], grant["folder_path"], grant["inherited"])
        for grant in seen["grants"]
    ] == [
        ("deploy-bot", "editor", CHECKOUT, False),
        ("priya", "reader", CHECKOUT, False),
        ("ada", "owner", "Engineering", True),
    ]


def test_an_inherited_grant_does_not_tell_of_a_folder_that_the_owner_cannot_read(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    world.person("priya", role=Role.READER, on="Engineering")

    grants = inspect_access(ada, world.folder(PAYMENTS)).grants

    assert grants is not None
    assert [(grant.username, grant.folder_path) for grant in grants] == [("ada", PAYMENTS), ("priya", None)]


def test_an_administrator_sees_version_0_where_nothing_was_ever_granted(world: World) -> None:
    root = world.person("root", is_admin=True)

    seen = inspect_access(root, world.folder(PAYMENTS))

    assert (seen.role, seen.acl_version, seen.grants) == (Role.OWNER, 0, ())


def test_what_is_not_readable_is_not_found_a_label_included(world: World) -> None:
    priya = world.person("priya", role=Role.READER, on=CHECKOUT)

    with pytest.raises(NotFound):
        inspect_access(priya, world.folder(PAYMENTS))


@pytest.mark.parametrize("grants", [1, 30])
def test_the_number_of_queries_does_not_grow_with_the_number_of_grants(world: World, grants: int) -> None:
    root = world.person("root", is_admin=True)
    payments = world.folder(PAYMENTS)
    for number in range(grants):
        world.person(f"person-{number}", role=Role.READER, on=PAYMENTS)

    with CaptureQueriesContext(connection) as queries:
        inspect_access(root, payments)

    assert len(queries) == 3
