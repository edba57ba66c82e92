"""The Access pages: what an Owner sees and changes, and what others do not."""

import re
from typing import Any

from django.test import Client

from access.models import AuditEvent
from core.types import Role
from tests.web.conftest import Visit
from tests.world import World

WHERE = "/access/Engineering/Payments/"


def owner_of_payments(world: World, visit: Visit) -> Client:
    world.person("ada", role=Role.OWNER, on="Engineering/Payments")
    world.person("priya")
    return visit("ada")


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def change(client: Client, role: str, *, who: str = "priya", version: int, step: str = "confirm") -> Any:
    return client.post(WHERE, {"username": who, "role": role, "acl_version": version, "step": step})


def test_an_owner_sees_who_has_what_and_from_where(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    world.grant("priya", Role.EDITOR, "Engineering/Payments")
    world.service_account("deploy-bot", role=Role.READER, on="Engineering")
    world.grant("ada", Role.READER, "Engineering")

    page = ada.get(WHERE)

    assert "priya" in text_of(page)
    assert "(service account)" in text_of(page)
    assert 'href="/access/Engineering/"' in page.content.decode()


def test_direct_grants_stand_alone_when_asked_for(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    world.service_account("deploy-bot", role=Role.READER, on="Engineering")

    assert "deploy-bot" in text_of(ada.get(WHERE))
    assert "deploy-bot" not in text_of(ada.get(WHERE, {"view": "direct"}))


def test_a_granting_folder_that_the_owner_cannot_read_is_not_named(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    world.service_account("deploy-bot", role=Role.READER, on="Engineering")

    page = ada.get(WHERE)

    assert "a folder above" in text_of(page)
    assert 'href="/access/Engineering/"' not in page.content.decode().split("<main")[1].split("</nav>", 1)[1]


def test_a_reader_sees_their_own_role_and_nobody_elses(world: World, visit: Visit) -> None:
    owner_of_payments(world, visit)
    world.grant("priya", Role.READER, "Engineering/Payments")

    page = visit("priya").get(WHERE)

    assert page.status_code == 200
    assert "Your access: Reader" in text_of(page)
    assert "ada" not in text_of(page)


def test_hidden_missing_and_label_are_one_answer(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    world.folder("Secret")

    answers = [ada.get(f"/access/{path}/") for path in ("Secret", "Nothing", "Engineering", "Sec//ret")]

    assert {answer.status_code for answer in answers} == {404}
    assert len({re.sub(r'value="[^"]{30,}"', "", answer.content.decode()) for answer in answers}) == 1
    posts = [
        ada.post(f"/access/{path}/", {"username": "ada", "role": "owner"}) for path in ("Secret", "Nothing")
    ]
    assert {answer.status_code for answer in posts} == {404}


def test_the_root_is_a_page_for_everybody(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)

    assert "Choose a folder" in text_of(ada.get("/access/"))
    assert ada.post("/access/", {"username": "ada", "role": "owner", "acl_version": 0}).status_code == 404


def test_a_change_is_shown_before_it_is_made(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    version = world.acl_version("Engineering/Payments")

    shown = change(ada, "editor", version=version, step="")

    assert "Make priya Editor" in text_of(shown)
    assert "No Access" in text_of(shown)
    assert world.acl_version("Engineering/Payments") == version

    done = change(ada, "editor", version=version)

    assert done.status_code == 302
    assert "priya is Editor here now." in text_of(ada.get(WHERE))
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.actor_username, event.through, event.after) == (
        "grant",
        "ada",
        "session",
        "editor",
    )


def test_a_role_is_taken_away(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    world.grant("priya", Role.EDITOR, "Engineering/Payments")
    world.grant("priya", Role.READER, "Engineering")
    version = world.acl_version("Engineering/Payments")

    shown = change(ada, "", version=version, step="")
    assert "Take the role of priya away" in text_of(shown)
    assert "After Reader" in text_of(shown)

    change(ada, "", version=version)
    assert "priya is Reader here now." in text_of(ada.get(WHERE))


def test_a_change_that_others_overtook_is_not_made(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    version = world.acl_version("Engineering/Payments")
    world.service_account("deploy-bot", role=Role.READER, on="Engineering/Payments")
    grants = world.grants()

    answer = change(ada, "owner", version=version)

    assert answer.status_code == 400
    assert "Somebody else changed the access" in text_of(answer)
    assert world.grants() == grants


def test_what_makes_no_sense_is_said(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    version = world.acl_version("Engineering/Payments")
    grants = world.grants()

    for given, sentence in (
        ({"who": "nobody"}, "no person or service account named"),
        ({"who": "ada", "role": "owner"}, "ada is Owner here already."),
        ({"role": ""}, "priya has no role of their own here"),
        ({"role": "king"}, "Say who, which role"),
    ):
        answer = change(ada, **{"role": "editor", "version": version, **given})  # type: ignore[arg-type]
        assert answer.status_code == 400
        assert sentence in text_of(answer)

    world.disable("priya")
    assert "disabled" in text_of(change(ada, "editor", version=version))
    assert world.grants() == grants


def test_only_owners_change_anything(world: World, visit: Visit) -> None:
    owner_of_payments(world, visit)
    world.grant("priya", Role.EDITOR, "Engineering/Payments")
    version = world.acl_version("Engineering/Payments")
    grants = world.grants()

    for who in ("priya", "nobody"):
        assert change(visit("priya"), "owner", who=who, version=version).status_code == 403

    assert world.grants() == grants


def test_ones_own_role_is_not_given_away_unawares(world: World, visit: Visit) -> None:
    ada = owner_of_payments(world, visit)
    version = world.acl_version("Engineering/Payments")

    assert "will not be able to undo" in text_of(change(ada, "reader", who="ada", version=version, step=""))


def test_a_form_from_elsewhere_changes_nothing(world: World, visit: Visit) -> None:
    owner_of_payments(world, visit)
    forged = Client(enforce_csrf_checks=True)
    forged.cookies = visit("ada").cookies
    grants = world.grants()

    answer = change(forged, "owner", version=world.acl_version("Engineering/Payments"))

    assert answer.status_code == 403
    assert world.grants() == grants
