"""The administrators' desk: it shows everything to them, nothing to others, and every change goes through a service."""

import csv
import io
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, reverse

from access.models import AuditEvent, Connection, FolderGrant, Identity
from brain.desk.shown import Shown
from brain.desk.site import desk
from core.types import Role
from tests.web.conftest import Visit
from tests.world import PASSWORD, World

LISTS = ("person", "serviceaccount", "connection", "foldergrant", "auditevent")


def address(name: str, *args: str | int) -> str:
    return reverse(f"admin:access_{name}", args=[quote(arg) for arg in args])


def every_address() -> list[str]:
    """All that the desk routes, each with a stand-in for an id."""
    routes = [pattern.pattern for pattern in _flat(desk.get_urls())]
    return sorted(
        {
            "/admin/" + str(route).replace("<path:object_id>", "x").replace("<int:content_type_id>", "1")
            for route in routes
            if "?P<" not in str(route)
        }
    )


def _flat(patterns: list[Any]) -> list[URLPattern]:
    found: list[URLPattern] = []
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            found.append(pattern)
        else:
            for below in _flat(pattern.url_patterns):
                joined = URLPattern(below.pattern, below.callback, below.default_args, below.name)
                joined.pattern = type(
                    "Joined", (), {"__str__": lambda s, a=pattern, b=below: f"{a.pattern}{b.pattern}"}
                )()
                found.append(joined)
    return found


@pytest.fixture
def root(world: World, visit: Visit) -> Client:
    """An administrator's browser."""
    world.person("root", is_admin=True)
    return visit("root")


def post(client: Client, where: str, **fields: object) -> Any:
    return client.post(where, fields)


def without_proof(answer: Any) -> str:
    """The page without the token that proves its forms to be ours."""
    return re.sub(r'(name="csrfmiddlewaretoken" value=")[^"]+', r"\1", answer.content.decode())


def test_the_desk_has_pages(root: Client) -> None:
    assert len(every_address()) > 20


@pytest.mark.parametrize("where", every_address())
def test_only_administrators_come_in(world: World, visit: Visit, where: str) -> None:
    world.person("ada", role=Role.OWNER)
    if where in ("/admin/login/", "/admin/logout/"):
        return

    stranger = Client().get(where)
    ada = visit("ada")
    refused = ada.get(where)
    refused_post = ada.post(where)

    assert stranger.status_code == 302
    assert stranger["Location"].startswith("/login/?next=/admin/")
    assert refused.status_code == refused_post.status_code == 403


def test_an_owner_of_everything_gets_the_same_answer_everywhere(world: World, visit: Visit) -> None:
    world.person("ada", role=Role.OWNER)
    priya = world.person("priya")
    ada = visit("ada")

    there = ada.get(address("person_change", priya.identity_id))
    nowhere = ada.get(address("person_change", "idn_nobody"))

    assert there.status_code == nowhere.status_code == 403
    assert without_proof(there) == without_proof(nowhere)


def test_there_is_one_way_in(world: World, root: Client) -> None:
    assert Client().get("/admin/login/")["Location"] == "/login/?next=/admin/"
    assert root.get("/admin/login/")["Location"] == "/admin/"
    assert root.get("/admin/logout/").status_code == 404
    for name in ("password_change/", "autocomplete/", "r/1/x/"):
        assert root.get(f"/admin/{name}").status_code == 404


def test_somebody_disabled_is_out_at_once(world: World, root: Client) -> None:
    assert root.get("/admin/").status_code == 200

    world.disable("root")

    assert root.get("/admin/").status_code == 302


def test_no_list_can_write_by_itself() -> None:
    assert len(desk._registry) == 6
    for shown in desk._registry.values():
        assert isinstance(shown, Shown)
        assert type(shown).has_add_permission is Shown.has_add_permission
        assert type(shown).has_change_permission is Shown.has_change_permission
        assert type(shown).has_delete_permission is Shown.has_delete_permission
        assert type(shown).save_model is admin.ModelAdmin.save_model
        assert not shown.actions
        assert not shown.inlines
        assert {url.name.rpartition("_")[2] for url in shown.get_urls() if url.name} <= {
            "changelist", "change", "export", *(deed.name for deed in shown.deeds)
        }  # fmt: skip


def test_a_posted_row_changes_nothing(world: World, root: Client) -> None:
    ada = world.person("ada", role=Role.READER)
    token = Connection.objects.get(token_hash=world.connection(world.token("ada")).token_hash)
    grant = FolderGrant.objects.get()
    event = AuditEvent.objects.latest("id")
    before = list(Identity.objects.order_by("id").values()), list(FolderGrant.objects.values())

    for name, key in (
        ("person", ada.identity_id),
        ("connection", token.pk),
        ("foldergrant", grant.pk),
        ("auditevent", event.pk),
        ("organization", world.organization_id),
    ):
        answer = post(
            root, address(f"{name}_change", key), name="evil", username="evil", is_admin="on", _save="Save"
        )
        assert answer.status_code == 403, name
        for deed in ("delete", "history", "add"):
            assert root.get(f"/admin/access/{name}/{quote(key)}/{deed}/").status_code in (302, 404)
            assert post(root, f"/admin/access/{name}/{quote(key)}/{deed}/", post="yes").status_code in (
                302,
                404,
            )
    for name in LISTS:
        assert (
            post(
                root, address(f"{name}_changelist"), action="delete_selected", _selected_action=1
            ).status_code
            < 500
        )

    assert before == (list(Identity.objects.order_by("id").values()), list(FolderGrant.objects.values()))
    assert AuditEvent.objects.latest("id") == event


def test_a_new_person_can_sign_in(world: World, root: Client, visit: Visit) -> None:
    answer = post(
        root,
        address("person_new"),
        username="priya",
        name="Priya Nair",
        email="",
        password=PASSWORD,
        again=PASSWORD,
    )

    assert answer.status_code == 302
    assert visit("priya").get("/files/").status_code == 200
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.actor_username, event.through) == ("create_person", "root", "session")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"username": "Priya"}, "a–z"),
        ({"username": "root"}, "has this name already"),
        ({"password": "short", "again": "short"}, "too short"),
        ({"again": "another"}, "The two passwords differ."),
        ({"email": "nonsense"}, "not an e-mail address"),
        ({"name": "a" * 121}, "At most 120"),
    ],
)
def test_what_does_not_fit_is_said_at_its_field(
    world: World, root: Client, fields: dict[str, str], sentence: str
) -> None:
    given = {"username": "priya", "name": "", "email": "", "password": PASSWORD, "again": PASSWORD, **fields}
    people = Identity.objects.count()

    answer = post(root, address("person_new"), **given)

    assert answer.status_code == 400
    assert sentence in answer.content.decode()
    assert PASSWORD not in answer.content.decode()
    assert Identity.objects.count() == people


def test_a_person_is_changed_through_the_service(world: World, root: Client) -> None:
    ada = world.person("ada")

    answer = post(
        root, address("person_edit", ada.identity_id), name="Ada Byron", email="", is_read_only="on"
    )

    assert answer.status_code == 302
    changed = world.identity("ada")
    assert (changed.name, changed.is_read_only) == ("Ada Byron", True)
    assert AuditEvent.objects.latest("id").action == "change_identity"


def test_the_last_administrator_cannot_be_taken_away(world: World, root: Client) -> None:
    me = world.identity("root")

    demoted = post(root, address("person_edit", me.id), name="root", email="")
    disabled = post(root, address("person_disable", me.id), typed="root")

    assert demoted.status_code == disabled.status_code == 400
    assert "last administrator" in demoted.content.decode()
    assert "last administrator" in disabled.content.decode()
    assert world.identity("root").is_staff


def test_an_account_is_disabled_by_typing_its_name_and_enabled_again(world: World, root: Client) -> None:
    bot = world.service_account("deploy-bot")

    wrong = post(root, address("serviceaccount_disable", bot.identity_id), typed="deploy")
    assert wrong.status_code == 400
    assert world.identity("deploy-bot").is_active

    post(root, address("serviceaccount_disable", bot.identity_id), typed="deploy-bot")
    assert not world.identity("deploy-bot").is_active
    assert root.get(address("serviceaccount_disable", bot.identity_id)).status_code == 404

    post(root, address("serviceaccount_enable", bot.identity_id))
    assert world.identity("deploy-bot").is_active


def test_a_new_password_ends_the_persons_sessions_and_not_the_administrators(
    world: World, root: Client, visit: Visit
) -> None:
    ada = world.person("ada")
    adas = visit("ada")
    new = "a better horse battery"

    post(root, address("person_password", ada.identity_id), password=new, again=new)
    assert adas.get("/files/").status_code == 302

    me = world.identity("root")
    post(root, address("person_password", me.id), password=new, again=new)
    assert root.get("/admin/").status_code == 200
    assert Client().post("/login/", {"username": "ada", "password": new}).status_code == 302


def test_lists_keep_to_their_kind(world: World, root: Client) -> None:
    bot = world.service_account("deploy-bot")
    ada = world.person("ada")

    assert root.get(address("person_change", bot.identity_id)).status_code == 404
    assert root.get(address("serviceaccount_change", ada.identity_id)).status_code == 404
    assert b"deploy-bot" not in root.get(address("person_changelist")).content


def test_a_service_accounts_folders_and_tokens_stand_on_its_page(world: World, root: Client) -> None:
    bot = world.service_account("deploy-bot", role=Role.EDITOR, on="Engineering/Payments")
    text = world.token("deploy-bot", name="ci", scopes={"Engineering/Payments": Role.READER})

    page = root.get(address("serviceaccount_change", bot.identity_id)).content.decode()

    assert "Engineering/Payments" in page
    assert 'href="/access/Engineering/Payments/"' in page
    assert "ci" in page
    assert text not in page
    assert world.connection(text).shown_token in page


def test_a_connection_is_revoked(world: World, root: Client) -> None:
    world.person("ada")
    row = world.connection(world.token("ada", scopes={}))

    page = root.get(address("connection_change", row.id)).content.decode()
    assert "No content at all." in page
    assert row.token_hash is not None
    assert row.token_hash not in page

    assert post(root, address("connection_revoke", row.id)).status_code == 302
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert root.get(address("connection_revoke", row.id)).status_code == 404


def test_connections_are_filtered_by_state(world: World, root: Client) -> None:
    world.person("ada")
    for name in ("kept", "gone"):
        world.token("ada", name=name)
    Connection.objects.filter(name="gone").update(revoked_at=world.identity("ada").created_at)

    active = root.get(address("connection_changelist"), {"state": "active"}).content.decode()

    assert "kept" in active
    assert "gone" not in active


def test_grants_name_their_folder_and_lead_to_its_form(world: World, root: Client) -> None:
    world.person("ada", role=Role.OWNER, on="Engineering/Payments")

    page = root.get(address("foldergrant_changelist")).content.decode()

    assert "Engineering/Payments" in page
    assert 'href="/access/Engineering/Payments/"' in page


@pytest.mark.parametrize("name", LISTS)
def test_a_list_asks_as_much_for_one_row_as_for_many(world: World, root: Client, name: str) -> None:
    def fill(first: int, last: int) -> None:
        for number in range(first, last):
            world.person(f"p{number}", role=Role.READER, on=f"F{number}")
            world.service_account(f"s{number}")

    fill(0, 2)
    where = address(f"{name}_changelist")
    root.get(where)
    with CaptureQueriesContext(connection) as few:
        assert root.get(where).status_code == 200
    fill(2, 12)
    with CaptureQueriesContext(connection) as many:
        assert root.get(where).status_code == 200

    assert len(many) == len(few) <= 8


@pytest.mark.parametrize("name", [*LISTS, "organization"])
def test_every_list_can_be_searched_and_opened(world: World, root: Client, name: str) -> None:
    world.person("ada", role=Role.READER, on="Engineering")
    world.service_account("deploy-bot")

    assert root.get(address(f"{name}_changelist"), {"q": "ada"}, follow=True).status_code == 200
    row = root.get(address(f"{name}_changelist"), follow=True)
    assert row.status_code == 200


def test_the_organization_says_how_it_does(world: World, root: Client) -> None:
    page = root.get(address("organization_changelist"), follow=True).content.decode()

    assert "Acme" in page
    assert "Yes: database, store and disk were tried just now." in page
    assert "No destination is set up" in page


def test_the_organization_says_why_it_is_not_ready(
    world: World, root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.store.content_store.FREE_BYTES_MIN", 2**62)

    page = root.get(address("organization_changelist"), follow=True).content.decode()

    assert "No: the disk is nearly full" in page
    assert Client().get("/readyz").content == b"unavailable"


def test_the_audit_is_exported_as_it_is_filtered(world: World, root: Client) -> None:
    world.person("ada", role=Role.EDITOR, on="Engineering/Payments")
    Identity.objects.filter(username="ada").update(name="ada")

    answer = root.get(address("auditevent_export"), {"action": "grant"})
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    lines = list(csv.DictReader(io.StringIO(text)))

    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert [(line["action"], line["folder_path"], line["after"]) for line in lines] == [
        ("grant", "Engineering/Payments", "editor")
    ]


def test_no_exported_cell_is_a_formula(world: World, root: Client) -> None:
    world.person("ada")
    world.token("ada", name="=HYPERLINK(1)")

    answer = root.get(address("auditevent_export"))
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]

    names = [line["token_name"] for line in csv.DictReader(io.StringIO(text))]
    assert "'=HYPERLINK(1)" in names
    assert "=HYPERLINK(1)" not in names


def test_what_people_are_called_is_never_markup(world: World, root: Client) -> None:
    ada = world.person("ada", role=Role.READER)
    Identity.objects.filter(username="ada").update(name="<script>alert(1)</script>")
    token = world.connection(world.token("ada", name="<img src=x>"))

    for where in (
        address("person_change", ada.identity_id),
        address("person_disable", ada.identity_id),
        address("connection_change", token.id),
        address("connection_revoke", token.id),
        *(address(f"{name}_changelist") for name in LISTS),
    ):
        page = root.get(where).content.decode()
        assert "<script>alert" not in page, where
        assert "<img src=x" not in page, where
