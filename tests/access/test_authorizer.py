from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import example, given
from hypothesis import strategies as st

from access.authorizer import Sight, sight_of
from access.principals import Principal, system_principal
from access.services.revoke_token import revoke_token
from core.errors import Forbidden, NotFound
from core.types import Capability, ConnectionKind, FolderRef, Role
from tests.world import World

PAYMENTS = "Engineering/Payments"
CHECKOUT = "Engineering/Payments/Checkout"
BILLING = "Engineering/Payments/Billing"


def role_of(principal: Principal, folder: FolderRef) -> Role | None:
    return sight_of(principal).role_on(folder)


# One query


@pytest.mark.parametrize("grants", [0, 1, 40])
@pytest.mark.parametrize("depth", [1, 30])
def test_sight_is_one_query_whatever_the_number_of_grants_and_the_depth(
    world: World, grants: int, depth: int
) -> None:
    ada = world.person("ada")
    for number in range(grants):
        world.grant("ada", Role.READER, f"Folder {number}")
    deep = world.folder("/".join(["Deep"] * depth))
    world.grant("ada", Role.EDITOR, "Deep")

    with CaptureQueriesContext(connection) as queries:
        sight = sight_of(ada)
        role = sight.role_on(deep)
        sight.require(Role.EDITOR, deep)

    assert role is Role.EDITOR
    assert len(queries) == 1


def test_a_capped_token_costs_one_query_too(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    ada = world.through(world.token("ada", scopes={CHECKOUT: Role.READER, BILLING: Role.EDITOR}))
    checkout = world.folder(CHECKOUT)

    with CaptureQueriesContext(connection) as queries:
        role = role_of(ada, checkout)

    assert role is Role.READER
    assert len(queries) == 1


def test_a_stranger_costs_the_same_query_as_everybody(world: World) -> None:
    mallory = world.person("mallory")

    with CaptureQueriesContext(connection) as queries:
        sight_of(mallory)

    assert len(queries) == 1


def test_the_system_is_owner_everywhere_and_asks_no_database(world: World) -> None:
    folder = world.folder(PAYMENTS)

    with CaptureQueriesContext(connection) as queries:
        sight = sight_of(system_principal(world.organization_id))

    assert sight.role_on(folder) is Role.OWNER
    assert sight.is_administrator
    assert len(queries) == 0


# Grants


def test_a_grant_reaches_everything_below_its_folder_and_nothing_beside_or_above(world: World) -> None:
    priya = world.person("priya", role=Role.READER, on=CHECKOUT)

    assert role_of(priya, world.folder(CHECKOUT)) is Role.READER
    assert role_of(priya, world.folder(f"{CHECKOUT}/Later")) is Role.READER
    assert role_of(priya, world.folder(BILLING)) is None
    assert role_of(priya, world.folder(PAYMENTS)) is None
    assert role_of(priya, world.folder("")) is None


def test_grants_add_up_so_a_lower_one_further_down_takes_nothing_away(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    world.grant("ada", Role.READER, CHECKOUT)

    assert role_of(ada, world.folder(CHECKOUT)) is Role.EDITOR


def test_a_revocation_bites_on_the_next_call(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    checkout = world.folder(CHECKOUT)
    assert role_of(ada, checkout) is Role.EDITOR

    world.revoke("ada", PAYMENTS)

    assert role_of(ada, checkout) is None


def test_a_sight_does_not_change_once_it_is_taken(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    sight = sight_of(ada)

    world.revoke("ada", PAYMENTS)

    assert sight.role_on(world.folder(PAYMENTS)) is Role.EDITOR


def test_what_is_not_readable_is_missing_and_what_is_only_readable_is_forbidden(world: World) -> None:
    priya = world.person("priya", role=Role.READER, on=CHECKOUT)
    sight = sight_of(priya)

    sight.require(Role.READER, world.folder(CHECKOUT))
    with pytest.raises(Forbidden):
        sight.require(Role.EDITOR, world.folder(CHECKOUT))
    with pytest.raises(NotFound):
        sight.require(Role.READER, world.folder(BILLING))
    with pytest.raises(NotFound):
        sight.require(Role.OWNER, world.folder(PAYMENTS))


# Accounts


def test_an_administrator_is_owner_everywhere_without_any_grant(world: World) -> None:
    root = world.person("root", is_admin=True)
    sight = sight_of(root)

    assert sight.role_on(world.folder(PAYMENTS)) is Role.OWNER
    assert sight.is_administrator
    assert sight.granted_folder_ids() is None


def test_an_owner_of_the_root_is_no_administrator(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER)

    with pytest.raises(Forbidden):
        sight_of(ada).require_administrator()


@pytest.mark.parametrize("is_admin", [False, True])
def test_a_read_only_account_is_reader_at_most(world: World, is_admin: bool) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS, is_read_only=True, is_admin=is_admin)
    sight = sight_of(ada)

    assert sight.role_on(world.folder(PAYMENTS)) is Role.READER
    assert not sight.is_administrator


@pytest.mark.parametrize("is_admin", [False, True])
def test_a_disabled_account_sees_nothing(world: World, is_admin: bool) -> None:
    ada = world.person("ada", role=Role.OWNER, is_admin=is_admin)

    world.disable("ada")

    sight = sight_of(ada)
    assert sight.role_on(world.folder("")) is None
    assert sight.granted_folder_ids() == frozenset()
    assert not sight.is_administrator


def test_an_account_of_another_organization_sees_nothing(world: World) -> None:
    root = world.person("root", role=Role.OWNER, is_admin=True)

    elsewhere = replace(root, organization_id="org_elsewhere")

    assert role_of(elsewhere, world.folder("")) is None


# Connections


def test_a_revoked_connection_sees_nothing_even_in_a_call_that_authenticated_before(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    token = world.token("ada")
    ada = world.through(token)

    revoke_token(world.system, world.connection(token).id)

    assert role_of(ada, world.folder(PAYMENTS)) is None


def test_a_connection_sees_nothing_from_the_moment_it_expires(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    token = world.token("ada", expires_in_days=1)
    ada = world.through(token)
    folder = world.folder(PAYMENTS)
    end = world.connection(token).expires_at
    assert end is not None

    with time_machine.travel(end - timedelta(seconds=1), tick=False):
        assert role_of(ada, folder) is Role.EDITOR
    with time_machine.travel(end, tick=False):
        assert role_of(ada, folder) is None


def test_a_connection_is_of_no_use_to_another_identity(world: World) -> None:
    world.person("ada", role=Role.OWNER, on=PAYMENTS)
    mallory = world.person("mallory", role=Role.READER, on=PAYMENTS)
    adas = world.through(world.token("ada")).connection

    borrowed = replace(mallory, connection=adas)

    assert role_of(borrowed, world.folder(PAYMENTS)) is None


def test_caps_are_read_anew_and_not_taken_from_the_caller(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    capped = world.through(world.token("ada", scopes={CHECKOUT: Role.READER}))
    assert capped.connection is not None

    widened = replace(capped, connection=replace(capped.connection, folder_scopes=None))

    assert role_of(widened, world.folder(CHECKOUT)) is Role.READER
    assert role_of(widened, world.folder(BILLING)) is None


@pytest.mark.parametrize(
    ("scopes", "on_payments", "on_checkout"),
    [
        ({PAYMENTS: Role.READER}, Role.READER, Role.READER),
        ({PAYMENTS: Role.READER, CHECKOUT: Role.EDITOR}, Role.READER, Role.EDITOR),
        ({PAYMENTS: Role.EDITOR, CHECKOUT: Role.READER}, Role.EDITOR, Role.EDITOR),
        ({CHECKOUT: Role.EDITOR}, None, Role.EDITOR),
        ({BILLING: Role.EDITOR}, None, None),
        ({}, None, None),
    ],
)
def test_of_overlapping_caps_the_highest_counts(
    world: World, scopes: dict[str, Role], on_payments: Role | None, on_checkout: Role | None
) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    ada = world.through(world.token("ada", scopes=scopes))

    assert role_of(ada, world.folder(PAYMENTS)) is on_payments
    assert role_of(ada, world.folder(CHECKOUT)) is on_checkout


def test_a_cap_never_gives_more_than_the_identity_has_now(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    ada = world.through(world.token("ada", scopes={PAYMENTS: Role.EDITOR}))

    world.grant("ada", Role.READER, PAYMENTS)
    assert role_of(ada, world.folder(CHECKOUT)) is Role.READER

    world.revoke("ada", PAYMENTS)
    assert role_of(ada, world.folder(CHECKOUT)) is None


def test_caps_hold_for_administrators_too(world: World) -> None:
    world.person("root", is_admin=True)
    capped = world.through(world.token("root", scopes={CHECKOUT: Role.EDITOR}))
    sight = sight_of(capped)

    assert sight.role_on(world.folder(CHECKOUT)) is Role.EDITOR
    assert sight.role_on(world.folder(BILLING)) is None
    assert not sight.is_administrator
    assert sight.granted_folder_ids() == frozenset({world.folder(CHECKOUT).id})


def test_a_read_connection_reads_and_changes_nothing(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    ada = world.through(world.token("ada", capability=Capability.READ))
    sight = sight_of(ada)

    sight.require(Role.READER, world.folder(PAYMENTS))
    with pytest.raises(Forbidden):
        sight.require(Role.EDITOR, world.folder(PAYMENTS))
    with pytest.raises(NotFound):
        sight.require(Role.EDITOR, world.folder("Sales"))


def test_a_managed_connection_changes_content_and_never_access(world: World) -> None:
    bot = world.service_account("deploy-bot", role=Role.OWNER, on=PAYMENTS, kind=ConnectionKind.MANAGED)
    sight = sight_of(bot)

    sight.require(Role.EDITOR, world.folder(PAYMENTS))
    with pytest.raises(Forbidden):
        sight.require(Role.OWNER, world.folder(PAYMENTS))


@pytest.mark.parametrize(
    ("capability", "kind", "scopes", "is_administrator"),
    [
        (Capability.WRITE, ConnectionKind.EXTERNAL, None, True),
        (Capability.READ, ConnectionKind.EXTERNAL, None, False),
        (Capability.WRITE, ConnectionKind.MANAGED, None, False),
        (Capability.WRITE, ConnectionKind.EXTERNAL, {"": Role.EDITOR}, False),
        (Capability.WRITE, ConnectionKind.EXTERNAL, {}, False),
    ],
)
def test_only_an_unnarrowed_connection_acts_as_its_administrator(
    world: World,
    capability: Capability,
    kind: ConnectionKind,
    scopes: dict[str, Role] | None,
    is_administrator: bool,
) -> None:
    world.person("root", is_admin=True)
    root = world.through(world.token("root", capability=capability, kind=kind, scopes=scopes))

    assert sight_of(root).is_administrator is is_administrator


# Where visibility begins

TREE = {
    "root": ("root",),
    "eng": ("root", "eng"),
    "payments": ("root", "eng", "payments"),
    "checkout": ("root", "eng", "payments", "checkout"),
    "billing": ("root", "eng", "payments", "billing"),
    "sales": ("root", "sales"),
}
some_roles = st.dictionaries(st.sampled_from(list(TREE)), st.sampled_from(Role))


@given(granted=some_roles, caps=st.none() | some_roles, is_owner_everywhere=st.booleans())
@example(granted={"payments": Role.EDITOR}, caps={"eng": Role.EDITOR}, is_owner_everywhere=False)
@example(granted={"eng": Role.EDITOR}, caps={"payments": Role.EDITOR}, is_owner_everywhere=False)
def test_nothing_is_visible_that_is_not_at_or_below_a_folder_where_visibility_may_begin(
    granted: dict[str, Role], caps: dict[str, Role] | None, is_owner_everywhere: bool
) -> None:
    sight = Sight(
        system_principal("org"),
        is_alive=True,
        is_owner_everywhere=is_owner_everywhere,
        granted=granted,
        caps=caps,
    )
    beginnings = sight.granted_folder_ids()
    readable = {name for name, lineage in TREE.items() if sight.can_read(FolderRef(name, name, lineage))}

    if beginnings is None:
        assert readable == set(TREE)
    else:
        # The highest readable folder of every lineage is a beginning: labels and ranges are counted from there.
        for name in readable:
            highest = next(folder for folder in TREE[name] if folder in readable)
            assert highest in beginnings
