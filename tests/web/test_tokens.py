"""The page of one's own connections: list, form, the one showing, rotating and revoking."""

import html
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext

from access import writer
from access.models import Connection
from access.services.list_tokens import list_tokens
from access.services.revoke_token import revoke_token
from access.services.rotate_token import rotate_token
from core.errors import NotFound
from core.types import Capability, ConnectionKind, Role
from kb.store import stores
from mcpapi.clients import recipes
from tests.mcpapi.agent import Agent
from tests.web.conftest import Visit
from tests.world import World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
TOKEN = re.compile(r"brn_[A-Za-z0-9_-]{43}")
CHECKOUT = "Engineering/Payments/Checkout"


@pytest.fixture
def acme(world: World) -> World:
    """Ada edits Payments, Root administers, deploy-bot reads Checkout."""
    world.person("ada", role=Role.EDITOR, on="Engineering/Payments")
    world.person("mallory")
    world.person("root", is_admin=True)
    world.folder(CHECKOUT)
    world.service_account("deploy-bot", role=Role.READER, on=CHECKOUT)
    return world


def form(**changes: Any) -> dict[str, Any]:
    return {
        "name": "Claude Code on the laptop",
        "capability": "write",
        "reach": "all",
        "expires": "90",
        "kind": "external",
        **changes,
    }


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def issue(client: Client, path: str = "/tokens/", **changes: Any) -> tuple[str, Any]:
    """The new token and the page that shows it."""
    answer = client.post(path, form(**changes))
    assert answer.status_code == 303, text_of(answer)
    page = client.get(answer["Location"])
    (token, *_) = TOKEN.findall(page.content.decode())
    return token, page


# Making one


def test_a_new_token_works_and_is_what_was_asked_for(acme: World, visit: Visit) -> None:
    with time_machine.travel(NOON, tick=False):
        token, _ = issue(
            visit("ada"),
            capability="read",
            reach="some",
            folder=[CHECKOUT, "", "engineering/payments/"],
            role=["editor", "reader", "reader"],
            kind="managed",
            expires="30",
        )

    row = acme.connection(token)
    assert (row.name, row.capability, row.kind) == ("Claude Code on the laptop", "read", "managed")
    assert row.folder_scopes == [
        {"folder_id": acme.folder(CHECKOUT).id, "max_role": "editor"},
        {"folder_id": acme.folder("Engineering/Payments").id, "max_role": "reader"},
    ]
    assert row.expires_at == NOON + timedelta(days=30)
    assert (row.identity.username, row.created_by) == ("ada", "ada")
    assert Agent(token).inspect(folder_path=CHECKOUT)["role"] == "editor"


@pytest.mark.parametrize(("reach", "scopes"), [("all", None), ("none", [])])
def test_a_token_reaches_all_or_nothing_where_that_is_chosen(
    acme: World, visit: Visit, reach: str, scopes: Any
) -> None:
    token, _ = issue(visit("ada"), reach=reach, expires="")

    assert acme.connection(token).folder_scopes == scopes
    assert acme.connection(token).expires_at is None


def test_a_token_is_shown_once_and_is_kept_nowhere(acme: World, visit: Visit) -> None:
    ada = visit("ada")
    sent = ada.post("/tokens/", form())
    kept = "".join(session.get_decoded().get("shown_once", "") for session in Session.objects.all())
    first, second = ada.get(sent["Location"]), ada.get(sent["Location"])

    (token, *_) = TOKEN.findall(first.content.decode())
    assert first["Cache-Control"] == "no-store"
    assert "shown already" in text_of(second)
    assert not TOKEN.search(second.content.decode())
    assert kept
    assert token not in kept + sent["Location"] + sent.content.decode()
    assert token not in text_of(ada.get("/tokens/"))
    assert not any(session.get_decoded().get("shown_once") for session in Session.objects.all())


def test_the_key_to_a_token_opens_nothing_in_another_session(acme: World, visit: Visit) -> None:
    ada, again = visit("ada"), visit("ada")
    sent = ada.post("/tokens/", form())

    assert "shown already" in text_of(again.get(sent["Location"]))
    assert "shown already" in text_of(ada.get("/tokens/shown/nonsense/"))
    # A wrong key uses nothing up.
    assert TOKEN.search(text_of(ada.get(sent["Location"])))


def test_a_token_that_nobody_looked_at_is_gone_after_ten_minutes(acme: World, visit: Visit) -> None:
    ada = visit("ada")
    with time_machine.travel(NOON, tick=False) as time:
        # A session of that day.
        ada = visit("ada")
        sent = ada.post("/tokens/", form())
        time.shift(timedelta(minutes=11))

        assert "shown already" in text_of(ada.get(sent["Location"]))


def test_the_new_token_comes_with_lines_to_paste_that_have_the_real_address(
    acme: World, visit: Visit, settings: Any
) -> None:
    settings.PUBLIC_URL = "https://brain.example"
    token, page = issue(visit("ada"))

    shown = text_of(page)
    for recipe in recipes("https://brain.example/mcp", token):
        assert recipe.text in shown
        assert "https://brain.example/mcp" in recipe.text
    assert (
        f'claude mcp add --transport http brain https://brain.example/mcp --header "Authorization: Bearer {token}"'
        in shown
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": ""}, "name"),
        ({"name": "a" * 121}, "At most 120 characters"),
        ({"capability": "everything"}, "whether the token may change"),
        ({"kind": "other"}, "who holds the token"),
        ({"reach": "far"}, "what the token reaches"),
        ({"reach": "some"}, "at least one folder"),
        ({"reach": "some", "folder": ["Secret"], "role": ["reader"]}, "no folder “Secret”"),
        ({"reach": "some", "folder": ["../etc"], "role": ["reader"]}, "no folder “../etc”"),
        ({"reach": "some", "folder": [CHECKOUT], "role": ["owner"]}, "reader or editor"),
        ({"reach": "some", "folder": [CHECKOUT, CHECKOUT], "role": ["reader", "editor"]}, "twice"),
        ({"folder": [CHECKOUT], "role": ["reader"]}, "only these folders"),
        ({"expires": "0"}, "at least one day"),
        ({"expires": "99999"}, "At most 3,650 days"),
        ({"expires": "-1"}, "how long"),
    ],
)
def test_what_cannot_be_is_said_at_the_form_which_keeps_what_was_typed(
    acme: World, visit: Visit, changes: dict[str, Any], problem: str
) -> None:
    acme.folder("Secret")
    before = Connection.objects.count()

    answer = visit("ada").post("/tokens/", form(**changes))

    assert answer.status_code == 400
    (said,) = re.findall(r'role="alert">([^<]*)', text_of(answer))
    assert problem.lower() in said.lower()
    assert changes.get("name", "Claude Code on the laptop") in text_of(answer)
    assert Connection.objects.count() == before


def test_a_cap_above_ones_own_role_is_refused(acme: World, visit: Visit) -> None:
    answer = visit("root").post(
        "/tokens/?identity=deploy-bot", form(reach="some", folder=[CHECKOUT], role=["editor"])
    )

    assert answer.status_code == 400
    assert "deploy-bot is reader" in text_of(answer)


def test_more_folders_can_be_asked_for_without_losing_what_was_typed(acme: World, visit: Visit) -> None:
    answer = visit("ada").post(
        "/tokens/", form(reach="some", folder=[CHECKOUT, "", ""], role=["editor"] * 3, more="1")
    )

    page = text_of(answer)
    assert page.count('name="folder"') == 6
    assert f'value="{CHECKOUT}"' in page
    assert not Connection.objects.filter(identity__username="ada").exists()


def test_a_form_without_its_proof_makes_nothing(acme: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(acme.identity("ada"))
    connection = acme.connection(acme.token("ada"))

    for path in ("/tokens/", f"/tokens/{connection.id}/rotate/", f"/tokens/{connection.id}/revoke/"):
        assert client.post(path, form()).status_code == 403
    assert Connection.objects.get(identity__username="ada") == connection
    connection.refresh_from_db()
    assert connection.revoked_at is None


# The list


def test_the_list_says_what_each_token_is_and_whether_it_works(acme: World, visit: Visit) -> None:
    ada = acme.person("bo", role=Role.EDITOR, on="Engineering")
    with time_machine.travel(NOON, tick=False) as time:
        used = acme.token("bo", name="used", capability=Capability.READ, kind=ConnectionKind.MANAGED)
        acme.token("bo", name="short", expires_in_days=1)
        replaced = acme.connection(acme.token("bo", name="old"))
        revoked = acme.connection(acme.token("bo", name="stolen"))
        acme.through(used)
        time.shift(timedelta(days=2))
        rotate_token(ada, replaced.id)
        revoke_token(ada, revoked.id)
        page = re.sub(r"<[^>]+>|\s+", " ", text_of(visit("bo").get("/tokens/")))

    page = re.sub(r"\s+", " ", page)
    assert re.search(
        r"used brn_\S+…\S+ Works read managed used 2 days ago does not expire made 2 days ago by system", page
    )
    assert re.search(r"old brn_\S+ Replaced read and write never used ends tomorrow", page)
    assert re.search(r"short brn_\S+ Expired .* expired yesterday", page)
    assert re.search(r"stolen brn_\S+ Revoked", page)
    assert page.index("Expired and revoked ( 2 )".replace("( 2 )", "(2)")) > page.index("Replaced")


def test_a_cap_that_is_more_than_the_present_role_is_struck(acme: World, visit: Visit) -> None:
    acme.token("ada", scopes={CHECKOUT: Role.EDITOR, "Engineering/Payments": Role.EDITOR})
    acme.revoke("ada", "Engineering/Payments")
    acme.grant("ada", Role.READER, CHECKOUT)

    page = re.sub(r"\s+", " ", text_of(visit("ada").get("/tokens/")))

    assert f"{CHECKOUT} <s>Editor</s> <span>Reader now</span>" in page
    # Ada sees Payments no more, and is not told its name.
    assert "a folder that you cannot see</span> <s>Editor</s> <span>no access now</span>" in page


def test_who_has_no_token_is_told_how_to_begin(acme: World, visit: Visit) -> None:
    page = text_of(visit("mallory").get("/tokens/"))

    assert "You have none yet" in page
    assert "Make the token" in page


def test_a_list_that_fails_does_not_take_the_form_away(acme: World, visit: Visit, data_dir: Path) -> None:
    ada = visit("ada")
    acme.token("ada", scopes={CHECKOUT: Role.READER})
    stores.close_all()
    writer.close_all()
    shutil.move(data_dir / "orgs", data_dir / "gone")

    page = text_of(ada.get("/tokens/"))
    assert "list cannot be shown" in page
    token, _ = issue(ada)

    shutil.move(data_dir / "gone", data_dir / "orgs")
    assert "error" not in Agent(token).browse(action="folders")


def test_the_list_costs_the_same_queries_however_long_it_is(acme: World, visit: Visit) -> None:
    ada = visit("ada")
    acme.token("ada", scopes={CHECKOUT: Role.READER})
    ada.get("/tokens/")
    with CaptureQueriesContext(database) as few:
        ada.get("/tokens/")
    for number in range(10):
        acme.token(
            "ada", name=f"n{number}", scopes={CHECKOUT: Role.READER, "Engineering/Payments": Role.READER}
        )

    with CaptureQueriesContext(database) as many:
        ada.get("/tokens/")

    assert len(many) == len(few)


# Others' tokens


def test_an_administrator_makes_tokens_for_others_on_the_same_page(acme: World, visit: Visit) -> None:
    root = visit("root")
    assert "service account" in text_of(root.get("/tokens/?identity=deploy-bot"))

    token, page = issue(root, "/tokens/?identity=Deploy-Bot")

    row = acme.connection(token)
    assert (row.identity.username, row.created_by) == ("deploy-bot", "root")
    assert "/tokens/?identity=deploy-bot" in text_of(page)


def test_others_tokens_are_nobodys_to_anybody_else(acme: World, visit: Visit) -> None:
    ada = visit("ada")
    of_root = acme.connection(acme.token("root"))

    hidden, missing = ada.get("/tokens/?identity=root"), ada.get("/tokens/?identity=nobody")
    assert hidden.status_code == missing.status_code == 404
    assert _alike(hidden) == _alike(missing)
    for deed in ("rotate", "revoke"):
        hidden, missing = (ada.get(f"/tokens/{one}/{deed}/") for one in (of_root.id, "con_nothing"))
        assert hidden.status_code == missing.status_code == 404
        assert _alike(hidden) == _alike(missing)
        assert ada.post(f"/tokens/{of_root.id}/{deed}/", {"overlap": "0"}).status_code == 404
    assert ada.post("/tokens/?identity=root", form()).status_code == 404
    of_root.refresh_from_db()
    assert (of_root.revoked_at, of_root.replaced_by) == (None, None)
    assert Connection.objects.filter(identity__username="root").count() == 1


def test_a_token_lists_no_tokens(acme: World) -> None:
    root = acme.through(acme.token("root"))

    with pytest.raises(NotFound):
        list_tokens(root, root.identity_id)


def test_a_disabled_account_gets_no_form(acme: World, visit: Visit) -> None:
    acme.disable("deploy-bot")

    page = text_of(visit("root").get("/tokens/?identity=deploy-bot"))

    assert "disabled" in page
    assert "Make the token" not in page
    assert "Rotate<" not in page


def test_strangers_sign_in_first(acme: World) -> None:
    for path in ("/tokens/", "/tokens/shown/x/", "/tokens/con_x/rotate/", "/tokens/con_x/revoke/"):
        assert Client().get(path)["Location"].startswith("/login/?next=/tokens/")


# Rotating and revoking


def test_rotating_shows_the_successor_once_and_keeps_the_old_one_for_the_overlap(
    acme: World, visit: Visit
) -> None:
    ada = visit("ada")
    old = acme.token("ada")
    path = f"/tokens/{acme.connection(old).id}/rotate/"
    assert '<option value="24" selected>for a day' in text_of(ada.get(path))

    sent = ada.post(path, {"overlap": "1"})
    page = text_of(ada.get(sent["Location"]))

    assert sent.status_code == 303
    (new, *_) = TOKEN.findall(page)
    assert ">in 1 hour<" in page
    assert acme.through(new).identity_id == acme.through(old).identity_id
    assert "successor already" in text_of(ada.get(path))
    assert ada.post(path, {"overlap": "1"}).status_code == 400


@pytest.mark.parametrize("overlap", ["-1", "721", "", "1e3", "99999999999"])
def test_an_overlap_that_cannot_be_changes_nothing(acme: World, visit: Visit, overlap: str) -> None:
    connection = acme.connection(acme.token("ada"))

    answer = visit("ada").post(f"/tokens/{connection.id}/rotate/", {"overlap": overlap})

    assert answer.status_code == 400
    connection.refresh_from_db()
    assert connection.replaced_by is None


def test_revoking_asks_first_and_then_bites_at_once(acme: World, visit: Visit) -> None:
    ada = visit("ada")
    token = acme.token("ada")
    path = f"/tokens/{acme.connection(token).id}/revoke/"

    assert "ends at once and for good" in text_of(ada.get(path))
    assert acme.connection(token).revoked_at is None
    answer = ada.post(path)

    assert answer["Location"] == "/tokens/"
    assert Agent(token).request("tools/list").status == 401
    assert "revoked already" in text_of(ada.get(path))


def _alike(answer: Any) -> str:
    return re.sub(r'value="[A-Za-z0-9]{64}"', "", answer.content.decode())
