import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from django.db import connections

from access import writer
from access.authorizer import sight_of
from access.models import AuditEvent, Connection
from access.principals import Principal
from access.services.issue_token import issue_token
from access.services.revoke_token import find_unrevoked_tokens, revoke_token
from access.services.rotate_token import rotate_token
from access.services.set_active import disable_identity
from core.errors import Forbidden, InvalidArgument, LimitExceeded, NotFound, Unauthenticated
from core.types import Capability, ConnectionKind, FolderRef, Role
from kb.store.stores import store_of
from tests.world import World

PAYMENTS = "Engineering/Payments"
CHECKOUT = "Engineering/Payments/Checkout"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def issue(
    principal: Principal, identity_id: str, *scopes: tuple[FolderRef, Role], name: str = "laptop"
) -> Connection:
    return issue_token(
        principal,
        identity_id,
        name=name,
        capability=Capability.WRITE,
        folder_scopes=scopes or None,
    ).connection


# Issuing


def test_a_person_issues_a_token_for_themself(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=PAYMENTS)

    connection = issue(ada, ada.identity_id, (world.folder(CHECKOUT), Role.READER))

    assert connection.identity.username == "ada"
    assert connection.created_by == "ada"
    assert connection.folder_scopes == [{"folder_id": world.folder(CHECKOUT).id, "max_role": "reader"}]


def test_an_administrator_issues_a_token_for_anybody(world: World) -> None:
    root = world.person("root", is_admin=True)
    world.service_account("deploy-bot")

    assert issue(root, world.identity("deploy-bot").id).created_by == "root"


def test_nobody_else_issues_a_token(world: World) -> None:
    mallory = world.person("mallory", role=Role.OWNER)
    ada = world.person("ada")

    with pytest.raises(Forbidden):
        issue(mallory, ada.identity_id)

    assert not Connection.objects.exists()


def test_no_connection_issues_or_revokes_a_token_not_even_an_administrators(world: World) -> None:
    world.person("root", is_admin=True)
    token = world.token("root")
    root = world.through(token)

    with pytest.raises(Forbidden):
        issue(root, root.identity_id)
    with pytest.raises(Forbidden):
        revoke_token(root, world.connection(token).id)

    assert Connection.objects.filter(revoked_at=None).count() == 1


def test_a_disabled_person_issues_no_token_and_gets_none(world: World) -> None:
    ada = world.person("ada")
    world.disable("ada")

    with pytest.raises(Forbidden):
        issue(ada, ada.identity_id)
    with pytest.raises(InvalidArgument):
        issue(world.system, ada.identity_id)


@pytest.mark.parametrize("cap", [Role.EDITOR, Role.OWNER])
def test_a_cap_is_at_most_the_role_that_the_identity_has_now(world: World, cap: Role) -> None:
    ada = world.person("ada", role=Role.READER, on=PAYMENTS)

    with pytest.raises(InvalidArgument) as refused:
        issue(world.system, ada.identity_id, (world.folder(CHECKOUT), cap))

    assert refused.value.details["field"] == "folder_scopes"
    assert not Connection.objects.exists()


def test_a_cap_is_never_owner(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER)

    with pytest.raises(InvalidArgument):
        issue(world.system, ada.identity_id, (world.folder(PAYMENTS), Role.OWNER))


def test_a_cap_on_a_folder_that_the_identity_cannot_read_is_refused(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=CHECKOUT)

    with pytest.raises(InvalidArgument):
        issue(world.system, ada.identity_id, (world.folder(PAYMENTS), Role.READER))


def test_a_folder_that_the_issuer_cannot_read_is_not_found(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=CHECKOUT)

    with pytest.raises(NotFound):
        issue(ada, ada.identity_id, (world.folder(PAYMENTS), Role.READER))


def test_a_folder_stands_once_in_a_list_of_caps(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR)
    payments = world.folder(PAYMENTS)

    with pytest.raises(InvalidArgument):
        issue(world.system, ada.identity_id, (payments, Role.READER), (payments, Role.EDITOR))


def test_a_list_of_caps_has_100_folders_at_most(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR)
    root = world.folder("")
    folders = [
        FolderRef(f"fld_{number}", f"Folder {number}", (root.id, f"fld_{number}")) for number in range(101)
    ]

    with pytest.raises(LimitExceeded):
        issue(world.system, ada.identity_id, *((folder, Role.READER) for folder in folders))
    issue(world.system, ada.identity_id, *((folder, Role.READER) for folder in folders[:100]))


def test_an_empty_list_of_caps_gives_no_content(world: World) -> None:
    world.person("ada", role=Role.OWNER)
    token = world.token("ada", scopes={})

    sight = sight_of(world.through(token))

    assert sight.role_on(world.folder("")) is None
    assert not world.connection(token).content_access


@pytest.mark.parametrize("days", [0, -1])
def test_a_token_lasts_a_day_at_least(world: World, days: int) -> None:
    world.person("ada")

    with pytest.raises(InvalidArgument):
        world.token("ada", expires_in_days=days)


def test_a_token_lasts_ten_years_at_most(world: World) -> None:
    world.person("ada")

    world.token("ada", expires_in_days=3_650)
    with pytest.raises(LimitExceeded):
        world.token("ada", expires_in_days=10**12)


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "a" * 121])
def test_a_token_has_a_name_of_one_line(world: World, name: str) -> None:
    world.person("ada")

    with pytest.raises((InvalidArgument, LimitExceeded)) as refused:
        world.token("ada", name=name)

    assert refused.value.details["field"] == "name"


# Rotating


def test_a_rotated_token_works_beside_its_successor_until_the_overlap_ends(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR)
    with time_machine.travel(NOON, tick=False) as time:
        old = world.token(
            "ada", capability=Capability.READ, kind=ConnectionKind.MANAGED, scopes={"": Role.READER}
        )

        new = rotate_token(ada, world.connection(old).id, overlap_hours=2)

        time.shift(timedelta(hours=1, minutes=59))
        assert world.through(old).identity_id == world.through(new.token).identity_id == ada.identity_id
        time.shift(timedelta(minutes=1))
        with pytest.raises(Unauthenticated):
            world.through(old)
        time.shift(timedelta(days=3_000))
        narrowed = world.through(new.token).connection
    assert narrowed is not None
    assert (narrowed.name, narrowed.capability, narrowed.kind) == ("laptop", "read", "managed")
    assert narrowed.folder_scopes == ((world.folder("").id, Role.READER),)
    assert new.token != old
    assert world.connection(old).replaced_by == new.connection


def test_a_successor_lasts_as_long_as_the_old_one_was_meant_to(world: World) -> None:
    world.person("ada")
    with time_machine.travel(NOON, tick=False) as time:
        old = world.connection(world.token("ada", expires_in_days=30))
        time.shift(timedelta(days=29, hours=12))

        new = rotate_token(world.system, old.id).connection

    old.refresh_from_db()
    assert new.expires_at == NOON + timedelta(days=59, hours=12)
    # An overlap lengthens nothing.
    assert old.expires_at == NOON + timedelta(days=30)


def test_an_expired_token_can_be_renewed(world: World) -> None:
    ada = world.person("ada")
    with time_machine.travel(NOON, tick=False) as time:
        old = world.connection(world.token("ada", expires_in_days=30))
        time.shift(timedelta(days=40))

        new = rotate_token(ada, old.id)

        assert world.through(new.token).identity_id == ada.identity_id
        old.refresh_from_db()
        assert old.expires_at == NOON + timedelta(days=30)


def test_without_an_overlap_the_old_token_is_revoked(world: World) -> None:
    world.person("ada")
    old = world.token("ada")

    rotate_token(world.system, world.connection(old).id, overlap_hours=0)

    assert world.connection(old).revoked_at is not None
    with pytest.raises(Unauthenticated):
        world.through(old)


def test_what_is_revoked_or_replaced_or_of_a_disabled_account_is_not_rotated(world: World) -> None:
    world.person("ada")
    revoked = world.connection(world.token("ada"))
    revoke_token(world.system, revoked.id)
    replaced = world.connection(world.token("ada"))
    rotate_token(world.system, replaced.id)
    world.person("bo")
    of_bo = world.connection(world.token("bo"))
    world.disable("bo")
    before = Connection.objects.count()

    for connection in (revoked, replaced, of_bo):
        with pytest.raises(InvalidArgument):
            rotate_token(world.system, connection.id)

    assert Connection.objects.count() == before


@pytest.mark.parametrize(
    ("hours", "refusal"), [(-1, InvalidArgument), (721, LimitExceeded), (10**12, LimitExceeded)]
)
def test_an_overlap_has_bounds(world: World, hours: int, refusal: type[Exception]) -> None:
    world.person("ada")
    old = world.connection(world.token("ada"))

    with pytest.raises(refusal):
        rotate_token(world.system, old.id, overlap_hours=hours)

    assert Connection.objects.get() == old


def test_nobody_rotates_anothers_token_and_no_connection_rotates_any(world: World) -> None:
    mallory = world.person("mallory", role=Role.OWNER)
    root = world.person("root", is_admin=True)
    world.person("ada")
    connection = world.connection(world.token("ada"))

    with pytest.raises(NotFound) as hidden:
        rotate_token(mallory, connection.id)
    with pytest.raises(NotFound) as missing:
        rotate_token(mallory, "con_nothing")
    with pytest.raises(Forbidden):
        rotate_token(world.through(world.token("root")), connection.id)
    assert hidden.value.as_dict() == missing.value.as_dict()
    connection.refresh_from_db()
    assert connection.expires_at is None

    assert rotate_token(root, connection.id).connection.created_by == "root"


def test_a_rotation_is_one_event_without_the_token(world: World) -> None:
    ada = world.person("ada")
    old = world.connection(world.token("ada"))

    new = rotate_token(ada, old.id)

    event = AuditEvent.objects.latest("id")
    assert (event.action, event.token_id, event.subject_username) == ("rotate_token", old.id, "ada")
    assert event.before == old.shown_token
    assert event.after.startswith(new.connection.shown_token)
    assert new.token not in event.after


# Revoking


def test_a_person_revokes_their_own_token_and_sees_no_other(world: World) -> None:
    ada = world.person("ada")
    mallory = world.person("mallory", role=Role.OWNER)
    connection = world.connection(world.token("ada"))

    with pytest.raises(NotFound) as hidden:
        revoke_token(mallory, connection.id)
    with pytest.raises(NotFound) as missing:
        revoke_token(mallory, "con_nothing")
    assert hidden.value.as_dict() == missing.value.as_dict()
    assert Connection.objects.get().revoked_at is None

    assert revoke_token(ada, connection.id).revoked_at is not None


def test_revoking_twice_keeps_the_first_time(world: World) -> None:
    world.person("ada")
    connection = world.connection(world.token("ada"))

    first = revoke_token(world.system, connection.id).revoked_at
    second = revoke_token(world.system, connection.id).revoked_at

    assert first == second


def test_tokens_are_found_by_name_by_the_beginning_of_their_text_and_whole(world: World) -> None:
    world.person("ada")
    token = world.token("ada", name="laptop")
    world.token("ada", name="desk")
    connection = world.connection(token)

    for text in ("laptop", token[4:12], token[:12], token[:20], token):
        assert list(find_unrevoked_tokens(world.system, text)) == [connection]
    for text in ("lap", token[:11], "brn_", ""):
        assert not find_unrevoked_tokens(world.system, text)

    revoke_token(world.system, connection.id)
    assert not find_unrevoked_tokens(world.system, "laptop")


def test_only_administrators_look_for_tokens(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER)

    with pytest.raises(Forbidden):
        find_unrevoked_tokens(ada, "laptop")


@pytest.mark.parametrize("what", ["token", "account"])
def test_access_ends_even_while_the_store_is_out_of_reach(world: World, data_dir: Path, what: str) -> None:
    ada = world.person("ada", role=Role.EDITOR)
    root = world.folder("")
    token = world.token("ada")
    principal = world.through(token)
    writer.close_all()
    shutil.move(data_dir / "orgs", data_dir / "gone")

    if what == "token":
        revoke_token(world.system, world.connection(token).id)
    else:
        disable_identity(world.system, ada.identity_id)

    assert sight_of(principal).role_on(root) is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("what", ["token", "account"])
def test_no_save_lands_once_the_caller_is_told_that_access_ended(world: World, what: str) -> None:
    world.person("ada", role=Role.EDITOR)
    token = world.token("ada")
    ada = world.through(token)
    root = world.folder("")
    queue = writer.writer_queue(world.organization_id)
    happened: list[str] = []

    def end_access() -> None:
        if what == "token":
            revoke_token(world.system, world.connection(token).id)
        else:
            disable_identity(world.system, ada.identity_id)
        happened.append("told")
        connections.close_all()

    ending = threading.Thread(target=end_access)
    with store_of(world.organization_id).transaction():
        # A save that was judged in time and has the lock.
        sight_of(ada).require(Role.EDITOR, root)
        ending.start()
        while ending.is_alive() and len(queue._turns) < 2:
            ending.join(0.01)
        assert sight_of(ada).role_on(root) is None
        happened.append("saved")
    ending.join()

    assert happened == ["saved", "told"]
