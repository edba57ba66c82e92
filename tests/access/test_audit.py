from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection, transaction
from django.forms.models import model_to_dict

from access.models import AuditEvent, Identity
from access.services.grant_role import grant_role
from access.services.issue_token import issue_token
from access.services.revoke_role import revoke_role
from access.services.revoke_token import revoke_token
from access.services.set_active import disable_identity, enable_identity
from core.errors import Forbidden, NotFound
from core.types import Capability, Role
from tests.world import PASSWORD, World

PAYMENTS = "Engineering/Payments"


def last_event() -> dict[str, object]:
    """The newest event without what is empty."""
    event = AuditEvent.objects.latest("id")
    leave_out = ("id", "at", "organization")
    return {name: value for name, value in model_to_dict(event).items() if value and name not in leave_out}


def raw(statement: str) -> Callable[[], object]:
    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return run


@pytest.mark.parametrize(
    "tamper",
    [
        lambda: AuditEvent.objects.update(actor_username="priya"),
        lambda: AuditEvent.objects.all().delete(),
        lambda: AuditEvent.objects.latest("id").delete(),
        lambda: AuditEvent.objects.latest("id").save(),
        raw("UPDATE access_auditevent SET after = 'owner'"),
        raw("DELETE FROM access_auditevent"),
        raw("REPLACE INTO access_auditevent SELECT * FROM access_auditevent"),
    ],
)
def test_the_database_refuses_to_change_or_remove_an_event(
    world: World, tamper: Callable[[], object]
) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    before = list(AuditEvent.objects.order_by("id").values())

    with pytest.raises(IntegrityError), transaction.atomic():
        tamper()

    assert list(AuditEvent.objects.order_by("id").values()) == before


def test_a_grant_tells_who_for_whom_where_and_what_it_was_before(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    priya = world.person("priya", role=Role.READER, on=PAYMENTS)
    payments = world.folder(PAYMENTS)

    grant_role(ada, payments, priya.identity_id, Role.EDITOR)

    assert last_event() == {
        "action": "grant",
        "actor_id": ada.identity_id,
        "actor_kind": "person",
        "actor_username": "ada",
        "actor_name": "ada",
        "through": "session",
        "subject_id": priya.identity_id,
        "subject_username": "priya",
        "folder_id": payments.id,
        "folder_path": PAYMENTS,
        "before": "reader",
        "after": "editor",
    }


def test_a_revocation_tells_what_was_taken_away(world: World) -> None:
    world.person("priya", role=Role.READER, on=PAYMENTS)

    world.revoke("priya", PAYMENTS)

    event = last_event()
    assert (event["action"], event["before"], event.get("after")) == ("revoke", "reader", None)
    assert (event["actor_username"], event["actor_kind"], event["through"]) == ("system", "system", "shell")


def test_what_goes_through_a_connection_names_it(world: World) -> None:
    world.person("ada", role=Role.OWNER, on=PAYMENTS)
    priya = world.person("priya")
    token = world.token("ada", name="editor plugin")

    grant_role(world.through(token), world.folder(PAYMENTS), priya.identity_id, Role.READER)

    event = last_event()
    assert event["through"] == "connection"
    assert event["through_id"] == world.connection(token).id
    assert event["through_name"] == "editor plugin"


def test_an_event_keeps_the_names_of_its_time(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    priya = world.person("priya")
    grant_role(ada, world.folder(PAYMENTS), priya.identity_id, Role.READER)

    Identity.objects.filter(username="ada").update(name="Somebody else")

    assert last_event()["actor_name"] == "ada"


def test_a_token_event_tells_what_the_token_may_do(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR, on=PAYMENTS)

    token = world.token(
        "ada", name="laptop", capability=Capability.READ, scopes={PAYMENTS: Role.READER}, expires_in_days=7
    )

    connection_ = world.connection(token)
    event = last_event()
    assert (event["action"], event["subject_id"]) == ("issue_token", ada.identity_id)
    assert (event["token_id"], event["token_name"]) == (connection_.id, "laptop")
    assert str(event["after"]).startswith("read, external, Engineering/Payments=reader, until 20")


def test_every_change_of_an_account_is_one_event(world: World) -> None:
    ada = world.person("ada")
    token = world.connection(world.token("ada"))
    before = AuditEvent.objects.count()

    revoke_token(world.system, token.id)
    revoke_token(world.system, token.id)
    disable_identity(world.system, ada.identity_id)
    disable_identity(world.system, ada.identity_id)
    enable_identity(world.system, ada.identity_id)
    enable_identity(world.system, ada.identity_id)

    events = AuditEvent.objects.order_by("id")[before:]
    assert [event.action for event in events] == ["revoke_token", "disable", "enable"]
    assert {event.subject_username for event in events} == {"ada"}


def test_an_attempt_that_is_refused_is_written_down_with_its_code(world: World) -> None:
    bo = world.person("bo", role=Role.EDITOR, on=PAYMENTS)
    mallory = world.person("mallory")
    payments = world.folder(PAYMENTS)

    with pytest.raises(Forbidden):
        grant_role(bo, payments, bo.identity_id, Role.OWNER)
    forbidden = last_event()
    with pytest.raises(NotFound):
        revoke_role(mallory, payments, bo.identity_id)
    not_found = last_event()
    with pytest.raises(Forbidden):
        issue_token(mallory, bo.identity_id, name="mine", capability=Capability.READ)
    token = last_event()

    assert (forbidden["actor_username"], forbidden["action"]) == ("bo", "grant")
    assert (forbidden["refusal"], forbidden["subject_username"]) == ("FORBIDDEN", "bo")
    assert forbidden["folder_path"] == PAYMENTS
    assert (not_found["actor_username"], not_found["refusal"]) == ("mallory", "NOT_FOUND")
    assert (token["action"], token["refusal"], token["subject_username"]) == (
        "issue_token",
        "FORBIDDEN",
        "bo",
    )


def test_the_audit_holds_neither_passwords_nor_tokens(world: World) -> None:
    world.person("ada")
    token = world.token("ada")
    revoke_token(world.system, world.connection(token).id)

    everything = repr(list(AuditEvent.objects.values()))

    assert PASSWORD not in everything
    assert token[4:] not in everything
