"""Why somebody has a role: every reason that counts, and none that the caller may not see."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.principals import Principal
from access.services.explain_access import explain_access
from core.errors import Forbidden, NotFound
from core.types import Role
from tests.world import World

ENGINEERING = "Engineering"
PAYMENTS = "Engineering/Payments"
CHECKOUT = "Engineering/Payments/Checkout"


def because(world: World, asker: Principal, path: str, identity_id: str | None = None) -> list[Any]:
    told = explain_access(asker, world.folder(path), identity_id).as_dict()
    return [
        told["role"],
        *((reason["via"], reason["folder_path"], reason["role"]) for reason in told["because"]),
    ]


def test_every_grant_on_the_way_is_a_reason_the_nearest_first(world: World) -> None:
    priya = world.person("priya", role=Role.EDITOR, on=ENGINEERING)
    world.grant("priya", Role.READER, CHECKOUT)
    world.grant("priya", Role.OWNER, "Elsewhere")

    assert because(world, priya, CHECKOUT) == [
        "editor",
        ("grant", CHECKOUT, "reader"),
        ("grant", ENGINEERING, "editor"),
    ]


def test_the_answer_says_whom_it_is_about_and_nothing_that_was_not_asked(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)

    assert explain_access(ada, world.folder(PAYMENTS)).as_dict() == {
        "identity": {
            "identity_id": ada.identity_id,
            "name": "ada",
            "username": "ada",
            "kind": "person",
            "active": True,
        },
        "role": "owner",
        "because": [{"via": "grant", "folder_path": PAYMENTS, "role": "owner"}],
        "would_be": None,
    }


def test_caps_of_ones_own_connection_count_and_are_reasons(world: World) -> None:
    world.person("ada", role=Role.OWNER, on=PAYMENTS)
    capped = world.through(world.token("ada", scopes={PAYMENTS: Role.READER}))

    assert because(world, capped, CHECKOUT) == [
        "reader",
        ("grant", PAYMENTS, "owner"),
        ("cap", PAYMENTS, "reader"),
    ]


def test_of_another_the_identity_counts_and_not_a_connection(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    bot = world.service_account("deploy-bot", role=Role.EDITOR, on=PAYMENTS)
    world.token("deploy-bot", scopes={PAYMENTS: Role.READER})

    assert because(world, ada, PAYMENTS, bot.identity_id) == ["editor", ("grant", PAYMENTS, "editor")]


def test_an_administrator_is_owner_everywhere_and_that_is_the_reason(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=CHECKOUT)
    root = world.person("root", is_admin=True)
    expected = ["owner", ("administrator", "", "owner")]

    assert because(world, root, CHECKOUT) == expected
    assert because(world, ada, CHECKOUT, root.identity_id) == expected


def test_a_read_only_account_is_capped_from_the_root_on(world: World) -> None:
    bo = world.person("bo", role=Role.EDITOR, on=PAYMENTS, is_read_only=True)

    assert because(world, bo, PAYMENTS) == ["reader", ("grant", PAYMENTS, "editor"), ("cap", "", "reader")]


def test_nothing_gives_a_disabled_account_a_role(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    bo = world.person("bo", role=Role.EDITOR, on=PAYMENTS)
    world.disable("bo")

    told = explain_access(ada, world.folder(PAYMENTS), bo.identity_id, role=Role.OWNER).as_dict()

    assert (told["role"], told["because"], told["would_be"]) == (None, [], None)
    assert told["identity"]["active"] is False


def test_reasons_above_what_the_caller_reads_are_left_out_and_said_to_be(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=CHECKOUT)
    priya = world.person("priya", role=Role.EDITOR, on=ENGINEERING)
    world.grant("priya", Role.READER, CHECKOUT)
    bo = world.person("bo")

    told = explain_access(ada, world.folder(CHECKOUT), priya.identity_id).as_dict()

    assert told["role"] == "editor"
    assert told["because"] == [{"via": "grant", "folder_path": CHECKOUT, "role": "reader"}]
    assert told["inherited_from_above"] is True
    assert "Payments" not in str({**told, "because": []})
    assert "inherited_from_above" not in explain_access(ada, world.folder(CHECKOUT), bo.identity_id).as_dict()


def test_a_grant_above_ones_own_cap_is_not_told(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=ENGINEERING)
    capped = world.through(world.token("ada", scopes={CHECKOUT: Role.EDITOR}))

    told = explain_access(capped, world.folder(CHECKOUT)).as_dict()

    assert told["because"] == [{"via": "cap", "folder_path": CHECKOUT, "role": "editor"}]
    assert (told["role"], told["inherited_from_above"]) == ("editor", True)


@pytest.mark.parametrize(
    ("role", "would_be"), [(Role.READER, "editor"), (Role.EDITOR, "editor"), (Role.OWNER, "owner")]
)
def test_a_grant_would_replace_the_direct_one_and_leave_the_inherited(
    world: World, role: Role, would_be: str
) -> None:
    root = world.person("root", is_admin=True)
    priya = world.person("priya", role=Role.EDITOR, on=ENGINEERING)
    world.grant("priya", Role.OWNER, PAYMENTS)

    told = explain_access(root, world.folder(PAYMENTS), priya.identity_id, role=role).as_dict()

    assert (told["role"], told["would_be"]) == ("owner", would_be)


def test_what_would_be_stays_within_account_and_caps(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    bo = world.person("bo", is_read_only=True)
    capped = world.through(world.token("ada", scopes={PAYMENTS: Role.EDITOR}))
    payments = world.folder(PAYMENTS)

    assert explain_access(ada, payments, bo.identity_id, role=Role.OWNER).would_be is Role.READER
    assert explain_access(capped, payments, role=Role.OWNER).would_be is Role.EDITOR


def test_asking_changes_nothing(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    before = world.grants()

    explain_access(ada, world.folder(PAYMENTS), ada.identity_id, role=Role.READER)

    assert world.grants() == before


def test_who_may_ask_about_whom(world: World) -> None:
    world.person("ada", role=Role.OWNER, on=PAYMENTS)
    priya = world.person("priya", role=Role.EDITOR, on=PAYMENTS)
    mallory = world.person("mallory")
    payments = world.folder(PAYMENTS)

    assert explain_access(priya, payments, priya.identity_id).role is Role.EDITOR
    for identity_id in (mallory.identity_id, "idn_nobody"):
        with pytest.raises(Forbidden):
            explain_access(priya, payments, identity_id)
        with pytest.raises(NotFound):
            explain_access(mallory, payments, identity_id)
    with pytest.raises(NotFound):
        explain_access(world.system, payments, "idn_nobody")


# Warnings


def warned(world: World, asker: Principal, path: str, identity_id: str, role: Role) -> list[str]:
    told = explain_access(asker, world.folder(path), identity_id, role=role).as_dict()
    for warning in told.get("warnings", []):
        assert warning["message"].endswith(".")
    return [warning["kind"] for warning in told.get("warnings", [])]


def test_the_last_owner_who_would_step_down_is_warned_twice(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)

    assert warned(world, ada, PAYMENTS, ada.identity_id, Role.EDITOR) == ["last_owner", "self_lockout"]


def test_an_administrator_is_not_locked_out_and_is_told_of_the_last_owner(world: World) -> None:
    root = world.person("root", is_admin=True, role=Role.OWNER, on=PAYMENTS)

    assert warned(world, root, PAYMENTS, root.identity_id, Role.READER) == ["last_owner"]


def test_with_another_owner_only_oneself_is_locked_out(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    bo = world.person("bo", role=Role.OWNER, on=ENGINEERING)

    assert warned(world, ada, PAYMENTS, ada.identity_id, Role.EDITOR) == ["self_lockout"]
    assert warned(world, bo, PAYMENTS, ada.identity_id, Role.EDITOR) == []


def test_who_stays_owner_by_inheritance_is_not_warned(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=ENGINEERING)
    world.grant("ada", Role.OWNER, PAYMENTS)

    assert warned(world, ada, PAYMENTS, ada.identity_id, Role.READER) == []


@pytest.mark.parametrize("cannot", ["disabled", "read-only"])
def test_an_owner_who_cannot_act_does_not_count(world: World, cannot: str) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    bo = world.person("bo", role=Role.OWNER, on=PAYMENTS, is_read_only=cannot == "read-only")
    if cannot == "disabled":
        world.disable("bo")

    assert warned(world, ada, PAYMENTS, ada.identity_id, Role.READER) == ["last_owner", "self_lockout"]
    assert warned(world, ada, PAYMENTS, bo.identity_id, Role.READER) == []


def test_a_grant_that_takes_no_ownership_away_warns_of_nothing(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
    bo = world.person("bo", role=Role.EDITOR, on=PAYMENTS)

    assert warned(world, ada, PAYMENTS, ada.identity_id, Role.OWNER) == []
    assert warned(world, ada, PAYMENTS, bo.identity_id, Role.READER) == []
    # Of his own role, and of a folder that nobody owns.
    assert warned(world, bo, PAYMENTS, bo.identity_id, Role.READER) == []
    assert warned(world, world.system, "Unowned", bo.identity_id, Role.READER) == []


@pytest.mark.parametrize("depth", [1, 12])
def test_the_number_of_queries_does_not_grow_with_the_depth(world: World, depth: int) -> None:
    root = world.person("root", is_admin=True)
    priya = world.person("priya")
    path = "/".join(f"L{level}" for level in range(depth))
    folder = world.folder(path)
    for level in range(depth):
        world.grant("priya", Role.OWNER, "/".join(path.split("/")[: level + 1]))

    with CaptureQueriesContext(connection) as queries:
        explain_access(root, folder, priya.identity_id, role=Role.READER)

    # Who asks, whom it is about, what they may do, and the Owners for the warnings.
    assert len(queries) == 4
