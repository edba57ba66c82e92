"""From nothing to a tool's answer, and every step of it refused where it is not in order."""

import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.db import connection as database
from django.test import Client

from access.models import AuditEvent, AuthorizationCode, Connection
from access.services.revoke_token import revoke_token
from core import clock
from core.types import Capability, Role
from tests.mcpapi.agent import Agent
from tests.oauth.program import ALL, READ, RESOURCE, Program, connect, consent, links, registered, told
from tests.world import World

pytestmark = pytest.mark.django_db


def is_let_in(token: str) -> bool:
    return Agent(token).request("tools/list").status == 200


def test_a_client_comes_from_consent_to_a_tools_answer(priya: Client, program: Program, world: World) -> None:
    heard = told(consent(priya, program))
    assert (heard["state"], heard["iss"]) == ("a state & more", "http://127.0.0.1:8000")
    tokens = program.redeem(heard["code"])

    assert tokens.status_code == 200
    assert tokens["Cache-Control"] == "no-store"
    assert tokens.json()["token_type"] == "Bearer"
    assert (tokens.json()["scope"], tokens.json()["expires_in"]) == (ALL, 3600)
    agent = Agent(tokens.json()["access_token"])
    assert (
        agent.call("read_knowledgebase", action="read", path="Eng/Payments/deploy.md")["content"]
        == "# Deploy\n"
    )
    made = agent.call(
        "update_knowledgebase", action="create_folder", folder_path="Eng/Payments", name="New", request_id="1"
    )
    assert made["folder"]["path"] == "Eng/Payments/New"
    missing = agent.call("read_knowledgebase", action="read", path="Eng/Secret/deploy.md")
    assert missing["error"]["code"] == "NOT_FOUND"


def test_an_authorization_is_one_connection_like_any_other(
    priya: Client, program: Program, world: World
) -> None:
    tokens = connect(priya, program)
    Agent(tokens["access_token"]).request("tools/list")

    (row,) = Connection.objects.all()
    assert row.is_oauth
    assert (row.name, row.shown_token, row.identity.username) == ("Claude Code", "OAuth, 127.0.0.1", "priya")
    assert (row.capability, row.kind, row.folder_scopes) == ("write", "external", None)
    assert row.last_used_at is not None
    assert row.expires_at is not None
    assert row.expires_at > clock.now() + timedelta(days=30)
    event = AuditEvent.objects.get(action="allow_client")
    assert (event.actor_username, event.through, event.token_id) == ("priya", "session", row.id)
    assert event.after == "write, external, 127.0.0.1"


def test_nothing_in_the_database_holds_a_secret(priya: Client, program: Program) -> None:
    code = told(consent(priya, program))["code"]
    held = _everything()
    tokens = program.redeem(code).json()
    held += _everything()

    for secret in (code, tokens["access_token"], tokens["refresh_token"], program.verifier):
        assert secret not in held
    assert hashlib.sha256(tokens["access_token"].encode()).hexdigest() in held


def _everything() -> str:
    found = []
    with database.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
            found += [repr(row) for row in cursor.fetchall()]
    return "\n".join(found)


# The page that asks


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "nobody"},
        {"client_id": None},
        {"redirect_uri": "http://127.0.0.1:4711/elsewhere"},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": "http://localhost:4711/callback"},
        {"redirect_uri": "http://127.0.0.1:4711/callback?more=1"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": ["http://127.0.0.1:4711/callback", "https://evil.example/"]},
        {"state": ["one", "two"]},
        {"state": "x" * 3000},
    ],
)
def test_a_wrong_client_or_address_gets_a_page_and_leads_nowhere(
    priya: Client, program: Program, changes: dict[str, Any]
) -> None:
    page = priya.get(program.address(**changes))

    assert page.status_code == 400
    assert "Location" not in page
    assert "evil.example" not in page.content.decode()
    assert all(link.startswith(("/", "#")) for link in links(page))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
    ({"resource": None}, "invalid_target"),
    ({"resource": ""}, "invalid_target"),
    ({"resource": "https://other.example/mcp"}, "invalid_target"),
    ({"resource": RESOURCE + "/other"}, "invalid_target"),
    ({"resource": RESOURCE + "?x=1"}, "invalid_target"),
    ({"resource": "http://127.0.0.1:8001/mcp"}, "invalid_target"),
    ({"resource": [RESOURCE, "https://other.example/mcp"]}, "invalid_target"),
    ({"scope": "knowledgebase:read everything"}, "invalid_scope"),
    ({"response_type": "token"}, "un"),
    ({"response_type": None}, "invalid_request"),
    ({"response_mode": "fragment"}, "invalid_request"),
]


@pytest.mark.parametrize(("changes", "error"), WRONG)
def test_a_request_that_is_not_in_order_is_told_and_nothing_leaves_by_itself(
    priya: Client, program: Program, changes: dict[str, Any], error: str
) -> None:
    page = priya.get(program.address(**changes))
    answer = priya.post(
        program.address(**changes), {"decision": "allow", "capability": "write", "where": "everywhere"}
    )

    for refused in (page, answer):
        assert refused.status_code == 400
        assert "Location" not in refused
        (back,) = [link for link in links(refused) if link.startswith("http")]
        assert back.startswith(f"{program.redirect_uri}?error={error}")
        assert "iss=http%3A%2F%2F127.0.0.1%3A8000" in back
    assert not AuthorizationCode.objects.exists()


@pytest.mark.parametrize("spelling", [RESOURCE, RESOURCE + "/", "HTTP://127.0.0.1:8000/mcp"])
def test_each_spelling_of_the_resource_is_the_resource(
    priya: Client, program: Program, spelling: str
) -> None:
    code = told(consent(priya, program, address=program.address(resource=spelling)))["code"]
    tokens = program.redeem(code, resource=spelling).json()

    assert is_let_in(tokens["access_token"])


def test_the_port_of_a_loopback_address_is_free(priya: Client) -> None:
    for registered_at, asked in (
        ("http://127.0.0.1/callback", "http://127.0.0.1:51234/callback"),
        ("http://localhost:1/callback", "http://localhost:51234/callback"),
        ("http://[::1]/callback", "http://[::1]:51234/callback"),
    ):
        program = registered(redirect_uris=[registered_at])
        program.redirect_uri = asked
        answer = consent(priya, program)
        assert answer["Location"].startswith(asked + "?")
        assert program.redeem(told(answer)["code"]).status_code == 200


def test_whoever_is_not_signed_in_signs_in_first(on: None, world: World, program: Program) -> None:
    world.person("ada")
    stranger = Client()

    sent = stranger.get(program.address())
    back = stranger.post(sent["Location"], {"username": "ada", "password": "correct horse battery staple"})

    assert sent.status_code == 302
    assert sent["Location"].startswith("/login/?next=/oauth/authorize/%3F")
    assert back["Location"] == program.address()


def test_the_answer_needs_the_proof_that_the_form_is_ours(
    priya: Client, program: Program, world: World
) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = priya.cookies

    answer = strict.post(
        program.address(), {"decision": "allow", "capability": "write", "where": "everywhere"}
    )

    assert answer.status_code == 403
    assert b"<html" in answer.content
    assert not AuthorizationCode.objects.exists()


def test_refusing_tells_the_client_and_leaves_nothing(priya: Client, program: Program) -> None:
    heard = told(consent(priya, program, decision="deny"))

    assert heard == {"error": "access_denied", "state": "a state & more", "iss": "http://127.0.0.1:8000"}
    assert not AuthorizationCode.objects.exists()


def test_the_page_says_who_asks_and_its_form_may_lead_to_that_client_alone(
    priya: Client, world: World
) -> None:
    program = registered(
        client_name="Eve\u202e<b>\n\nBrain team", redirect_uris=["https://agents.example:8443/back"]
    )

    page = priya.get(program.address())

    text = page.content.decode()
    assert "Let this client into Acme?" in text
    assert "Eve &lt;b&gt; Brain team" in text
    assert "agents.example" in text
    assert "form-action 'self' https://agents.example:8443;" in page["Content-Security-Policy"] + ";"
    assert "Eng/Payments" in text
    assert "Secret" not in text
    assert page["X-Frame-Options"] == "DENY"
    assert page["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("uri", "source"),
    [
        ("http://[::1]:4711/callback", "http:"),
        ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor:"),
        ("com.example.agent:/callback", "com.example.agent:"),
    ],
)
def test_addresses_that_a_policy_cannot_name_are_named_by_their_scheme(
    priya: Client, uri: str, source: str
) -> None:
    program = registered(redirect_uris=[uri])

    page = priya.get(program.address())
    answer = consent(priya, program)

    assert f"form-action 'self' {source};" in page["Content-Security-Policy"] + ";"
    assert answer["Location"].startswith(uri + "?")


def test_the_person_may_allow_less(priya: Client, program: Program, world: World) -> None:
    folder, other = world.folder("Eng/Payments"), world.folder("Eng/Billing")

    tokens = connect(
        priya, program, capability="read", where="folders", folder=[folder.id], other_folders="Eng/Billing/\n"
    )

    assert tokens["scope"] == READ
    (row,) = Connection.objects.all()
    assert row.capability == Capability.READ
    assert row.folder_scopes == [
        {"folder_id": folder.id, "max_role": "reader"},
        {"folder_id": other.id, "max_role": "reader"},
    ]


def test_a_chosen_folder_caps_at_what_the_person_has_there(
    priya: Client, program: Program, world: World
) -> None:
    world.grant("priya", Role.READER, "Other")
    ids = [world.folder("Eng/Payments").id, world.folder("Eng/Billing").id]

    tokens = connect(priya, program, where="folders", folder=ids)

    (row,) = Connection.objects.all()
    assert row.folder_scopes is not None
    assert [scope["max_role"] for scope in row.folder_scopes] == ["editor", "reader"]
    listed = Agent(tokens["access_token"]).call("browse_knowledgebase", action="folders", recursive=True)
    assert "Other" not in [folder["path"] for folder in listed["folders"]]


@pytest.mark.parametrize(
    "answers",
    [
        {"where": "folders"},
        {"where": "folders", "other_folders": "Eng/Secret"},
        {"where": "folders", "other_folders": "Eng/Missing"},
        {"where": "folders", "folder": ["fld_nothing"]},
        {"where": "folders", "other_folders": "a\x00b"},
        {"where": "folders", "other_folders": "\n".join(f"a{n}" for n in range(101))},
        {"where": ""},
        {"where": "everywhere", "other_folders": "Eng/Payments"},
        {"capability": "owner"},
        {"capability": ""},
    ],
)
def test_an_answer_that_makes_no_sense_asks_again(
    priya: Client, program: Program, answers: dict[str, Any]
) -> None:
    answer = consent(priya, program, **answers)

    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not AuthorizationCode.objects.exists()


def test_a_hidden_folder_and_a_missing_one_get_the_same_page(
    priya: Client, program: Program, world: World
) -> None:
    hidden = world.folder("Eng/Secret")
    pages = [
        consent(priya, program, where="folders", **choice).content.decode()
        for choice in (
            {"other_folders": "Eng/Secret"},
            {"other_folders": "Eng/Absent"},
            {"folder": [hidden.id]},
            {"folder": ["fld_" + "a" * 26]},
        )
    ]

    by_path = [re.sub(r'value="\w{64}"|Secret|Absent', "", page) for page in pages[:2]]
    by_id = [re.sub(r'value="\w{64}"', "", page) for page in pages[2:]]
    assert by_path[0] == by_path[1]
    assert by_id[0] == by_id[1]


def test_no_form_gives_more_than_the_client_asked(priya: Client, program: Program) -> None:
    answer = consent(priya, program, address=program.address(scope=READ), capability="write")

    assert answer.status_code == 400
    assert not AuthorizationCode.objects.exists()


def test_without_a_scope_a_client_reads(priya: Client, program: Program) -> None:
    code = told(consent(priya, program, address=program.address(scope=None), capability="read"))["code"]

    assert program.redeem(code).json()["scope"] == READ


# The code


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": None}, "invalid_request"),
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:4712/callback"}, "invalid_request"),
        ({"resource": None}, "invalid_target"),
        ({"resource": ""}, "invalid_target"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": [RESOURCE, "https://other.example/mcp"]}, "invalid_target"),
        ({"code": "guessed"}, "invalid_grant"),
        ({"code": None}, "invalid_request"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"grant_type": "password", "username": "priya", "password": "x"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": "urn:ietf:params:oauth:grant-type:device_code"}, "unsupported_grant_type"),
        ({"grant_type": None}, "unsupported_grant_type"),
    ],
)
def test_a_code_is_redeemed_in_one_way_alone(
    priya: Client, program: Program, changes: dict[str, Any], error: str
) -> None:
    code = told(consent(priya, program))["code"]

    refused = program.redeem(code, **changes)

    assert refused.status_code in (400, 401)
    assert refused.json()["error"] == error
    assert not Connection.objects.exists()
    # The rightful client is not harmed.
    assert program.redeem(code).status_code == 200


def test_a_parameter_that_is_named_like_our_own_facts_is_no_fact(
    priya: Client, program: Program, world: World
) -> None:
    secret = world.folder("Eng/Secret").id
    address = program.address(folders=secret, consent="x", connection="y", user="root", scopes="z")
    code = told(consent(priya, program, address=address, capability="read"))["code"]

    tokens = program.redeem(code, consent="x", connection="y", user="root", folders=secret, scopes=ALL).json()
    again = program.refresh(
        tokens["refresh_token"], connection="y", refresh_token_instance="z", scopes=ALL
    ).json()

    assert again["scope"] == READ
    (row,) = Connection.objects.all()
    assert (row.identity.username, row.capability, row.folder_scopes) == ("priya", "read", None)


def test_a_code_shown_twice_ends_what_was_made_of_it(priya: Client, program: Program) -> None:
    code = told(consent(priya, program))["code"]
    tokens = program.redeem(code).json()

    replayed = program.redeem(code)

    assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    assert not is_let_in(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).status_code == 400
    (row,) = Connection.objects.all()
    assert row.revoked_at is not None
    event = AuditEvent.objects.get(action="revoke_token")
    assert (event.through, event.through_id, event.after) == ("connection", row.id, "its code was used twice")


def test_another_clients_code_is_no_code_and_harms_nobody(priya: Client, program: Program) -> None:
    code = told(consent(priya, program))["code"]
    thief = registered()
    thief.verifier = program.verifier

    assert thief.redeem(code).json()["error"] == "invalid_grant"
    tokens = program.redeem(code).json()
    assert thief.redeem(code).json()["error"] == "invalid_grant"
    assert is_let_in(tokens["access_token"])


def test_a_code_lasts_a_minute(priya: Client, program: Program) -> None:
    code = told(consent(priya, program))["code"]

    with time_machine.travel(clock.now() + timedelta(seconds=61), tick=False):
        assert program.redeem(code).json()["error"] == "invalid_grant"


def test_a_code_of_a_disabled_person_is_no_code(priya: Client, program: Program, world: World) -> None:
    code = told(consent(priya, program))["code"]
    world.disable("priya")

    assert program.redeem(code).json()["error"] == "invalid_grant"


# Renewing


def test_a_client_renews_its_tokens_and_the_old_ones_are_gone(priya: Client, program: Program) -> None:
    first = connect(priya, program)

    second = program.refresh(first["refresh_token"]).json()

    assert second["scope"] == ALL
    assert second["refresh_token"] != first["refresh_token"]
    assert is_let_in(second["access_token"])
    assert not is_let_in(first["access_token"])
    assert Connection.objects.count() == 1


def test_a_refresh_token_shown_twice_ends_the_connection(priya: Client, program: Program) -> None:
    first = connect(priya, program)
    second = program.refresh(first["refresh_token"]).json()

    replayed = program.refresh(first["refresh_token"])

    assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    assert not is_let_in(second["access_token"])
    assert program.refresh(second["refresh_token"]).status_code == 400
    (row,) = Connection.objects.all()
    assert row.revoked_at is not None
    assert AuditEvent.objects.get(action="revoke_token").after == "a refresh token was used twice"


def test_renewing_never_gives_more_than_was_allowed(priya: Client, program: Program) -> None:
    tokens = connect(priya, program, capability="read")

    refused = program.refresh(tokens["refresh_token"], scope=ALL)

    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_scope")
    assert is_let_in(tokens["access_token"])


def test_a_renewal_with_less_reads_only_and_the_next_may_have_all_again(
    priya: Client, program: Program
) -> None:
    tokens = connect(priya, program)

    less = program.refresh(tokens["refresh_token"], scope=READ).json()
    agent = Agent(less["access_token"])
    names = [tool["name"] for tool in agent.request("tools/list").json["result"]["tools"]]

    assert less["scope"] == READ
    assert "update_knowledgebase" not in names
    assert program.refresh(less["refresh_token"]).json()["scope"] == ALL


@pytest.mark.parametrize("resource", ["https://other.example/mcp", ""])
def test_renewing_for_another_resource_is_refused(priya: Client, program: Program, resource: str) -> None:
    tokens = connect(priya, program)

    assert program.refresh(tokens["refresh_token"], resource=resource).json()["error"] == "invalid_target"
    assert program.refresh(tokens["refresh_token"], resource=None).status_code == 200


def test_another_clients_refresh_token_is_none(priya: Client, program: Program) -> None:
    tokens = connect(priya, program)

    assert registered().refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert program.refresh(tokens["refresh_token"]).status_code == 200


def test_tokens_end_by_themselves(priya: Client, program: Program) -> None:
    tokens = connect(priya, program)

    with time_machine.travel(clock.now() + timedelta(hours=1, seconds=1), tick=False):
        assert not is_let_in(tokens["access_token"])
        tokens = program.refresh(tokens["refresh_token"]).json()
        assert is_let_in(tokens["access_token"])
        with time_machine.travel(clock.now() + timedelta(days=30, hours=1, seconds=1), tick=False):
            assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


# The end


def test_revoking_the_connection_ends_all_its_tokens_at_once(
    priya: Client, program: Program, world: World
) -> None:
    tokens = connect(priya, program)
    (row,) = Connection.objects.all()

    revoke_token(world.system, row.id)

    assert not is_let_in(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_the_person_sees_and_ends_the_connection_on_their_page(priya: Client, program: Program) -> None:
    tokens = connect(priya, program)
    (row,) = Connection.objects.all()

    page = priya.get("/tokens/").content.decode()
    answer = priya.post(f"/tokens/{row.id}/revoke/")

    assert "Claude Code" in page
    assert "OAuth, 127.0.0.1" in page
    assert f"/tokens/{row.id}/rotate/" not in page
    assert answer.status_code == 302
    assert not is_let_in(tokens["access_token"])


def test_disabling_the_person_ends_their_clients_at_once(
    priya: Client, program: Program, world: World
) -> None:
    tokens = connect(priya, program)

    world.disable("priya")

    assert not is_let_in(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
@pytest.mark.parametrize("hint", ["access_token", "refresh_token", "other", None])
def test_a_client_gives_either_token_back_and_both_are_gone(
    priya: Client, program: Program, which: str, hint: str | None
) -> None:
    tokens = connect(priya, program)

    answer = program.give_back(tokens[which], token_type_hint=hint)

    assert answer.status_code == 200
    assert not is_let_in(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).status_code == 400
    (row,) = Connection.objects.all()
    assert row.revoked_at is not None


def test_no_client_gives_anothers_token_back(priya: Client, program: Program) -> None:
    tokens = connect(priya, program)

    answers = [registered().give_back(tokens["access_token"]), program.give_back("nothing")]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert is_let_in(tokens["access_token"])
