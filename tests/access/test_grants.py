import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.db import IntegrityError, connection, connections
from guardian.utils import get_user_obj_perms_model

from access import acl, audit
from access.models import AuditEvent, Folder, FolderGrant, Identity
from access.principals import Principal
from access.services.grant_role import grant_role
from access.services.has_grants import has_grants
from access.services.revoke_role import RevokeOutcome, revoke_role
from access.writer import writer_queue
from core import locks
from core.errors import AccessVersionConflict, Forbidden, InvalidArgument, NotFound, StorageUnavailable
from core.types import Capability, ConnectionKind, Role
from tests.world import World

PAYMENTS = "Engineering/Payments"
CHECKOUT = "Engineering/Payments/Checkout"
BILLING = "Engineering/Payments/Billing"

Change = Callable[..., object]


def give_reader(principal: Principal, world: World, path: str, username: str, **expected: Any) -> object:
    identity = world.identity(username)
    return grant_role(principal, world.folder(path), identity.id, Role.READER, **expected)


def take_away(principal: Principal, world: World, path: str, username: str, **expected: Any) -> object:
    return revoke_role(principal, world.folder(path), world.identity(username).id, **expected)


changes = pytest.mark.parametrize("change", [give_reader, take_away])


# Granting


def test_the_first_grant_of_a_folder_makes_its_row_with_version_1(world: World) -> None:
    world.person("ada")
    payments = world.folder(PAYMENTS)
    assert not Folder.objects.exists()

    outcome = grant_role(world.system, payments, world.identity("ada").id, Role.EDITOR)

    assert (outcome.acl_version, outcome.previous_role, outcome.warnings) == (1, None, ())
    assert world.grants() == {("ada", payments.id, Role.EDITOR)}


def test_the_role_that_somebody_has_already_changes_nothing(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    events = AuditEvent.objects.count()

    outcome = grant_role(world.system, world.folder(PAYMENTS), ada.identity_id, Role.EDITOR)

    assert (outcome.acl_version, outcome.previous_role) == (1, Role.EDITOR)
    assert AuditEvent.objects.count() == events


@pytest.mark.parametrize("role", [Role.READER, Role.OWNER])
def test_another_role_takes_the_place_of_the_one_before_in_the_same_row(world: World, role: Role) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    payments = world.folder(PAYMENTS)
    row = FolderGrant.objects.get()

    outcome = grant_role(world.system, payments, ada.identity_id, role, expected_acl_version=1)

    assert (outcome.acl_version, outcome.previous_role) == (2, Role.EDITOR)
    assert world.grants() == {("ada", payments.id, role)}
    assert FolderGrant.objects.get().pk == row.pk


def test_a_grant_elsewhere_does_not_move_a_folders_version(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)

    world.grant("ada", Role.OWNER, CHECKOUT)
    world.grant("ada", Role.OWNER, "Engineering")

    assert world.acl_version(PAYMENTS) == 1


def test_the_database_refuses_a_second_role_of_an_identity_on_a_folder(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    row = FolderGrant.objects.get()

    with pytest.raises(IntegrityError):
        FolderGrant(user=row.user, content_object=row.content_object, permission=row.permission).save()


def test_guardian_knows_the_grants_as_its_own(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)

    assert get_user_obj_perms_model(Folder.objects.get()) is FolderGrant


def test_guardian_made_no_identity_of_its_own(world: World) -> None:
    assert not Identity.objects.exists()


def test_a_disabled_account_keeps_its_grants_and_gets_no_new_ones(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    payments = world.folder(PAYMENTS)
    world.disable("ada")

    with pytest.raises(InvalidArgument) as refused:
        grant_role(world.system, payments, ada.identity_id, Role.OWNER)

    assert refused.value.details["field"] == "identity_id"
    assert world.grants() == {("ada", payments.id, Role.EDITOR)}
    revoke_role(world.system, payments, ada.identity_id)
    assert world.grants() == set()


def test_an_identity_that_does_not_exist_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        grant_role(world.system, world.folder(PAYMENTS), "idn_nobody", Role.READER)

    assert not Folder.objects.exists()


# Revoking


def test_revoking_removes_the_direct_grant_alone_and_tells_what_is_left(world: World) -> None:
    world.person("ada", role=Role.READER, on="Engineering")
    world.grant("ada", Role.EDITOR, PAYMENTS)
    world.grant("ada", Role.OWNER, CHECKOUT)
    engineering, payments, checkout = map(world.folder, ("Engineering", PAYMENTS, CHECKOUT))

    outcome = revoke_role(world.system, payments, world.identity("ada").id, expected_acl_version=1)

    assert outcome == RevokeOutcome(acl_version=2, removed_role=Role.EDITOR, remaining_role=Role.READER)
    assert world.grants() == {("ada", engineering.id, Role.READER), ("ada", checkout.id, Role.OWNER)}


def test_the_version_goes_on_counting_after_the_last_grant_is_revoked(world: World) -> None:
    world.person("ada", role=Role.READER, on=PAYMENTS)

    world.revoke("ada", PAYMENTS)
    world.grant("ada", Role.READER, PAYMENTS)

    assert world.acl_version(PAYMENTS) == 3


def test_revoking_what_is_inherited_names_the_granting_folders_that_the_caller_may_read(world: World) -> None:
    priya = world.person("priya", role=Role.READER)
    world.grant("priya", Role.EDITOR, "Engineering")
    bo = world.person("bo", role=Role.OWNER, on="Engineering")

    with pytest.raises(InvalidArgument) as refused:
        revoke_role(bo, world.folder(PAYMENTS), priya.identity_id)

    assert refused.value.details["granting_folders"] == ["Engineering"]
    assert world.acl_version(PAYMENTS) == 0


def test_revoking_what_nobody_granted_is_refused(world: World) -> None:
    priya = world.person("priya")

    with pytest.raises(InvalidArgument) as refused:
        revoke_role(world.system, world.folder(PAYMENTS), priya.identity_id)

    assert "granting_folders" not in refused.value.details


# Who may


@changes
def test_only_an_owner_changes_access(world: World, change: Change) -> None:
    world.person("priya", role=Role.READER, on=PAYMENTS)
    bo = world.person("bo", role=Role.EDITOR, on=PAYMENTS)
    mallory = world.person("mallory", role=Role.OWNER, on="Sales")
    before = world.grants()

    with pytest.raises(Forbidden):
        change(bo, world, PAYMENTS, "priya")
    with pytest.raises(NotFound):
        change(mallory, world, PAYMENTS, "priya")

    assert world.grants() == before
    assert world.acl_version(PAYMENTS) == 2


@changes
def test_a_refused_caller_never_takes_the_lock_that_saves_need(world: World, change: Change) -> None:
    bo = world.person("bo", role=Role.EDITOR, on=PAYMENTS)
    world.person("priya", role=Role.READER, on=PAYMENTS)
    world.folder(PAYMENTS)

    with patch.object(acl, "writer_queue", side_effect=AssertionError), pytest.raises(Forbidden):
        change(bo, world, PAYMENTS, "priya")


@changes
def test_an_owner_of_a_child_changes_nothing_above_it(world: World, change: Change) -> None:
    world.person("priya", role=Role.READER, on=PAYMENTS)
    ada = world.person("ada", role=Role.OWNER, on=CHECKOUT)

    with pytest.raises(NotFound):
        change(ada, world, PAYMENTS, "priya")


def test_an_owner_changes_access_below_their_folder_too(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    world.person("priya")

    give_reader(ada, world, CHECKOUT, "priya")
    take_away(ada, world, CHECKOUT, "priya")

    assert world.acl_version(CHECKOUT) == 2


@changes
@pytest.mark.parametrize(
    ("capability", "kind", "scopes"),
    [
        (Capability.READ, ConnectionKind.EXTERNAL, None),
        (Capability.WRITE, ConnectionKind.MANAGED, None),
        (Capability.WRITE, ConnectionKind.EXTERNAL, {PAYMENTS: Role.EDITOR}),
    ],
)
def test_a_narrowed_connection_of_an_owner_changes_no_access(
    world: World,
    change: Change,
    capability: Capability,
    kind: ConnectionKind,
    scopes: dict[str, Role] | None,
) -> None:
    world.person("ada", role=Role.OWNER, on=PAYMENTS)
    world.person("priya", role=Role.EDITOR, on=PAYMENTS)
    token = world.token("ada", capability=capability, kind=kind, scopes=scopes)

    with pytest.raises(Forbidden):
        change(world.through(token), world, PAYMENTS, "priya")

    assert world.acl_version(PAYMENTS) == 2


# Versions, and all or nothing


@changes
@pytest.mark.parametrize("stale", [0, 1, 3])
def test_a_stale_version_changes_nothing_and_tells_the_current_one(
    world: World, change: Change, stale: int
) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    world.person("priya", role=Role.EDITOR, on=PAYMENTS)
    before = world.grants()

    with pytest.raises(AccessVersionConflict) as refused:
        change(ada, world, PAYMENTS, "priya", expected_acl_version=stale)

    assert refused.value.details == {"current_acl_version": 2}
    assert world.grants() == before
    assert world.acl_version(PAYMENTS) == 2


@changes
def test_a_change_that_cannot_be_audited_does_not_happen(world: World, change: Change) -> None:
    world.person("priya", role=Role.EDITOR, on=PAYMENTS)
    before = world.grants()

    with patch.object(audit, "record", side_effect=OSError("disk full")), pytest.raises(OSError):
        change(world.system, world, PAYMENTS, "priya")

    assert world.grants() == before
    assert world.acl_version(PAYMENTS) == 1


@changes
@pytest.mark.django_db(transaction=True)
def test_a_database_that_takes_no_changes_is_an_unavailable_storage(world: World, change: Change) -> None:
    world.person("priya", role=Role.EDITOR, on=PAYMENTS)
    before = world.grants()

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        try:
            with pytest.raises(StorageUnavailable):
                change(world.system, world, PAYMENTS, "priya")
        finally:
            cursor.execute("PRAGMA query_only = OFF")

    assert world.grants() == before
    assert world.acl_version(PAYMENTS) == 1


@changes
def test_access_is_changed_only_under_the_writer_lock(world: World, change: Change) -> None:
    world.person("priya", role=Role.EDITOR, on=PAYMENTS)
    world.folder(PAYMENTS)
    held_at_changes = []

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(("INSERT", "UPDATE", "DELETE")):
            held_at_changes.append(list(locks._held.ranks))
        return execute(sql, *rest)

    with connection.execute_wrapper(watch):
        change(world.system, world, PAYMENTS, "priya")

    assert held_at_changes
    assert all(ranks == [locks.Rank.WRITER] for ranks in held_at_changes)


@pytest.mark.django_db(transaction=True)
def test_of_two_changes_of_one_version_one_wins(world: World) -> None:
    priya = world.person("priya")
    payments = world.folder(PAYMENTS)
    start = threading.Barrier(2)
    outcomes: list[tuple[str, int]] = []

    def grant(role: Role) -> None:
        start.wait()
        try:
            granted = grant_role(world.system, payments, priya.identity_id, role, expected_acl_version=0)
            outcomes.append(("granted", granted.acl_version))
        except AccessVersionConflict as conflict:
            outcomes.append(("refused", conflict.details["current_acl_version"]))
        finally:
            connections.close_all()

    for _ in range(10):
        threads = [threading.Thread(target=grant, args=(role,)) for role in (Role.READER, Role.EDITOR)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(outcomes) == [("granted", 1), ("refused", 1)]
        assert len(world.grants()) == 1
        outcomes.clear()
        FolderGrant.objects.all().delete()
        Folder.objects.all().delete()


@pytest.mark.django_db(transaction=True)
def test_an_owner_who_loses_access_while_they_wait_changes_nothing(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    priya = world.person("priya")
    payments = world.folder(PAYMENTS)
    refused: list[object] = []

    def grant() -> None:
        try:
            grant_role(ada, payments, priya.identity_id, Role.OWNER)
        except NotFound as error:
            refused.append(error)
        finally:
            connections.close_all()

    queue = writer_queue(world.organization_id)
    waiting = threading.Thread(target=grant)
    with queue.hold():
        waiting.start()
        while len(queue._turns) < 2 and waiting.is_alive():
            waiting.join(0.01)
        FolderGrant.objects.filter(user_id=ada.identity_id).delete()
    waiting.join()

    assert len(refused) == 1
    assert world.grants() == set()


def test_a_folder_is_granted_when_a_grant_reaches_it(world: World) -> None:
    world.person("root", is_admin=True)
    world.person("ada", role=Role.READER, on=PAYMENTS)

    assert has_grants(world.folder(CHECKOUT))
    assert has_grants(world.folder(PAYMENTS))
    assert not has_grants(world.folder("Engineering"))
    assert not has_grants(world.folder("Sales"))
