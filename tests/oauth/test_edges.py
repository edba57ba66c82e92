"""While it is off there is nothing; while it is on clients find everything; and who may register what, how often."""

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import time_machine
from django.test import Client
from oauth2_provider.models import AccessToken, Application, RefreshToken
from pytest_django import Settings

from access import credentials, tasks
from access.credentials import authenticate_header
from access.models import AuthorizationCode, Connection
from access.services.end_connection import end_connection
from access.services.rotate_token import rotate_token
from core import clock, limits
from core.errors import InvalidArgument, Unauthenticated
from core.types import Capability, Role
from tests.mcpapi.agent import ERAS, Agent, Era
from tests.oauth.program import ALL, READ, RESOURCE, Program, connect, consent, register, registered, told
from tests.world import World

pytestmark = pytest.mark.django_db

PATHS = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/oauth/authorize/",
    "/oauth/token/",
    "/oauth/revoke/",
    "/oauth/register/",
]
METADATA = "/.well-known/oauth-protected-resource/mcp"


# Off


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["get", "post", "options", "head"])
def test_while_off_nothing_is_there(world: World, path: str, method: str) -> None:
    answer = getattr(Client(headers={"accept": "text/html"}), method)(path)

    assert answer.status_code == 404


def test_while_off_the_challenge_names_no_metadata(world: World) -> None:
    for token in (None, "brn_" + "A" * 43, "something"):
        refused = Agent(token).request("tools/list")
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")


def test_a_token_given_while_on_is_none_while_off(
    priya: Client, program: Program, settings: Settings
) -> None:
    token = connect(priya, program)["access_token"]
    settings.OAUTH = False

    assert Agent(token).request("tools/list").status == 401


# What clients find out


def test_a_client_finds_its_way_from_the_challenge_to_every_endpoint(on: None, world: World) -> None:
    challenge = Agent(None).request("tools/list").headers["www-authenticate"]
    assert challenge == f'Bearer scope="{ALL}", resource_metadata="http://127.0.0.1:8000{METADATA}"'

    browser = Client()
    resource = browser.get(METADATA).json()
    server = browser.get("/.well-known/oauth-authorization-server").json()

    assert resource == browser.get("/.well-known/oauth-protected-resource").json()
    assert resource["resource"] == RESOURCE
    assert resource["authorization_servers"] == [server["issuer"]] == ["http://127.0.0.1:8000"]
    assert resource["scopes_supported"] == server["scopes_supported"] == ALL.split()
    assert resource["bearer_methods_supported"] == ["header"]
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["response_types_supported"] == ["code"]
    assert server["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert server["token_endpoint_auth_methods_supported"] == ["none"]
    assert server["authorization_response_iss_parameter_supported"] is True
    assert server["client_id_metadata_document_supported"] is False
    assert "introspection_endpoint" not in server
    for endpoint in ("authorization", "token", "registration", "revocation"):
        path = urlsplit(server[f"{endpoint}_endpoint"]).path
        assert browser.post(path).status_code in (400, 401), endpoint


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource/other",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/oauth/introspect/",
        "/oauth/applications/",
        "/oauth/device-authorization/",
        "/oauth/register/some-client/",
    ],
)
def test_while_on_nothing_more_is_there(on: None, world: World, path: str) -> None:
    assert Client().get(path).status_code == Client().post(path).status_code == 404


@pytest.mark.parametrize("token", ["brn_" + "A" * 43, "x", "\u00e9", "a b"])
def test_a_bad_token_is_told_to_be_bad(on: None, world: World, token: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        authenticate_header(f"Bearer {token}")

    assert refused.value.challenge.startswith('Bearer error="invalid_token", scope=')


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "brn_x"])
def test_without_a_token_the_challenge_tells_of_no_error(on: None, world: World, header: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        authenticate_header(header)

    assert "error" not in refused.value.challenge


# Tokens at the agents' door


@pytest.mark.parametrize(
    "resource", [[], ["https://other.example/mcp"], [RESOURCE, "https://other.example/mcp"]]
)
def test_a_token_for_nothing_or_for_others_is_good_nowhere(
    priya: Client, program: Program, resource: list[str]
) -> None:
    token = connect(priya, program)["access_token"]
    AccessToken.objects.update(resource=resource)

    refused = Agent(token).request("tools/list")

    assert refused.status == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


def test_the_json_api_takes_the_same_tokens_and_gives_the_same_challenge(
    priya: Client, program: Program
) -> None:
    token = connect(priya, program)["access_token"]
    path = "/api/v1/folders/"

    let_in = Client(headers={"authorization": f"Bearer {token}"}).get(path)
    refused = [Client().get(path), Client(headers={"authorization": "Bearer x"}).get(path)]

    assert let_in.status_code == 200
    assert [answer.status_code for answer in refused] == [401, 401]
    assert all("resource_metadata=" in answer["WWW-Authenticate"] for answer in refused)


def test_a_refresh_token_or_code_is_no_access_token(priya: Client, program: Program) -> None:
    code = told(consent(priya, program))["code"]
    refresh_token = program.redeem(code).json()["refresh_token"]

    assert [Agent(secret).request("tools/list").status for secret in (code, refresh_token)] == [401, 401]


def test_the_holder_of_an_oauth_token_is_found_in_one_query(
    priya: Client, program: Program, world: World, django_assert_num_queries: Any
) -> None:
    token = connect(priya, program)["access_token"]
    authenticate_header(f"Bearer {token}")

    with django_assert_num_queries(1):
        holder = authenticate_header(f"bearer {token}")

    assert holder.username == "priya"
    assert holder.connection is not None
    assert holder.connection.is_oauth
    assert holder.connection.id == Connection.objects.get().id


@pytest.mark.parametrize("era", ERAS)
def test_writing_without_the_scope_is_a_challenge_to_step_up(
    priya: Client, program: Program, era: Era
) -> None:
    agent = Agent(connect(priya, program, capability="read")["access_token"], era)
    call = {"action": "create_folder", "folder_path": "Eng/Payments", "name": "New", "request_id": "1"}

    refused = agent.request("tools/call", {"name": "update_knowledgebase", "arguments": call})

    assert refused.status == 403
    assert refused.headers["www-authenticate"] == (
        f'Bearer error="insufficient_scope", scope="{ALL}", resource_metadata="http://127.0.0.1:8000{METADATA}"'
    )
    assert refused.json["error"]["code"] == "FORBIDDEN"


@pytest.mark.parametrize("era", ERAS)
def test_what_no_scope_would_give_is_no_matter_of_scope(priya: Client, program: Program, era: Era) -> None:
    agent = Agent(connect(priya, program, capability="read")["access_token"], era)

    unknown = agent.request("tools/call", {"name": "no_such_tool", "arguments": {"action": "create"}})
    nonsense = agent.request(
        "tools/call", {"name": "update_knowledgebase", "arguments": {"action": ["create"]}}
    )

    assert [unknown.json["error"]["code"], nonsense.json["error"]["code"]] == [-32602, -32602]


@pytest.mark.parametrize("era", ERAS)
def test_a_token_of_the_header_that_only_reads_does_not_see_the_tool(
    on: None, world: World, era: Era
) -> None:
    world.person("ada", role=Role.EDITOR, on="Eng")
    agent = Agent(world.token("ada", capability=Capability.READ), era)

    refused = agent.request(
        "tools/call", {"name": "update_knowledgebase", "arguments": {"action": "create_folder"}}
    )

    assert refused.json["error"]["code"] == -32602


def test_writing_above_the_persons_role_is_forbidden_as_ever(priya: Client, program: Program) -> None:
    agent = Agent(connect(priya, program)["access_token"])

    refused = agent.call(
        "update_knowledgebase", action="create_folder", folder_path="Eng/Billing", name="New", request_id="1"
    )

    assert refused["error"]["code"] == "FORBIDDEN"


def test_the_tokens_of_a_client_are_not_rotated_by_hand(
    priya: Client, program: Program, world: World
) -> None:
    connect(priya, program)

    with pytest.raises(InvalidArgument):
        rotate_token(world.system, Connection.objects.get().id)


# Registering


def test_a_client_registers_with_little_and_is_told_what_it_got(on: None, world: World) -> None:
    answer = register(client_name=None, token_endpoint_auth_method=None, scope=READ, contacts=["a@b.example"])

    assert answer.status_code == 201
    told = answer.json()
    assert told.pop("client_id")
    assert told.pop("client_id_issued_at")
    assert told == {
        "client_name": "A client without a name",
        "redirect_uris": ["http://127.0.0.1:4711/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": ALL,
    }


def test_a_client_that_wants_a_secret_is_told_that_it_has_none(on: None, world: World) -> None:
    answer = register(token_endpoint_auth_method="client_secret_post").json()

    assert answer["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in answer


GOOD = [
    "https://agents.example/callback",
    "https://agents.example:8443/callback?kept=1",
    "http://127.0.0.1/callback",
    "http://localhost:1234/callback",
    "http://[::1]:1234/callback",
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "com.example.agent:/callback",
]
BAD = [
    "http://agents.example/callback",
    "http://127.0.0.1.evil.example/callback",
    "http://127.0.0.1@evil.example/callback",
    "http://localhost.evil.example/",
    "https://user@agents.example/",
    "https://agents.example/#fragment",
    "https:///callback",
    "https:callback",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "java\tscript:alert(1)",
    "javascript://agents.example/%0aalert(1)",
    "data:text/html,hello",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://agents.example/1",
    "intent://x#Intent;end",
    "ftp://agents.example/",
    "//agents.example/",
    "/callback",
    "callback",
    "",
    "https://ägents.example/",
    "https://agents.example/a b",
    'https://agents.example/"><script>',
    "https://agents.example:99999/",
    "https://agents.example/" + "a" * 2000,
]


@pytest.mark.parametrize("uri", GOOD)
def test_addresses_that_a_client_may_be_answered_at(on: None, world: World, uri: str) -> None:
    assert register(redirect_uris=[uri]).status_code == 201


@pytest.mark.parametrize("uri", BAD)
def test_addresses_that_no_client_is_answered_at(on: None, world: World, uri: str) -> None:
    answer = register(redirect_uris=["https://agents.example/callback", uri])

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
    assert not Application.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uris": None},
        {"redirect_uris": []},
        {"redirect_uris": "https://agents.example/"},
        {"redirect_uris": [1]},
        {"redirect_uris": ["https://agents.example/"] * 11},
        {"client_name": 7},
        {"grant_types": ["client_credentials"]},
        {"grant_types": "authorization_code"},
        {"response_types": ["token"]},
        {"client_name": "x" * limits.REGISTRATION_MAX_BYTES},
    ],
)
def test_a_registration_that_makes_no_sense_is_refused(
    on: None, world: World, changes: dict[str, Any]
) -> None:
    assert register(**changes).status_code == 400
    assert not Application.objects.exists()


@pytest.mark.parametrize("body", ["", "[]", "{", "[" * 5000, '"x"', "\xff"])
def test_a_registration_that_is_no_object_is_refused(on: None, world: World, body: str) -> None:
    answer = Client().post("/oauth/register/", body.encode("latin-1"), content_type="application/json")

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")


def test_a_flood_of_registrations_is_stopped(on: None, world: World) -> None:
    for _ in range(limits.REGISTRATIONS_PER_HOUR_OF_ONE):
        registered()

    refused = register()

    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert refused.json()["error"]["code"] == "RATE_LIMITED"
    assert Application.objects.count() == limits.REGISTRATIONS_PER_HOUR_OF_ONE


def test_a_flood_from_many_addresses_is_stopped_too(on: None, world: World) -> None:
    body = json.dumps({"redirect_uris": ["https://agents.example/"]})
    browsers = [Client(REMOTE_ADDR=f"10.0.0.{n}") for n in range(limits.REGISTRATIONS_PER_HOUR + 1)]
    statuses = [
        browser.post("/oauth/register/", body, content_type="application/json").status_code
        for browser in browsers
    ]

    assert statuses == [201] * limits.REGISTRATIONS_PER_HOUR + [429]


# Sweeping


def test_the_sweep_forgets_what_is_of_no_use_and_keeps_the_rest(priya: Client, program: Program) -> None:
    tokens = connect(priya, program)
    registered(client_name="Nobody's")
    assert tasks.drop_expired_oauth() == 0

    with time_machine.travel(clock.now() + timedelta(days=2), tick=False):
        removed = tasks.drop_expired_oauth()
        assert removed == 2
        assert not AuthorizationCode.objects.exists()
        assert [client.name for client in Application.objects.all()] == ["Claude Code"]
        renewed = program.refresh(tokens["refresh_token"]).json()

    with time_machine.travel(clock.now() + timedelta(days=20), tick=False):
        tasks.drop_expired_oauth()
        # The one that was used is remembered, or its second use would not be noticed.
        assert program.refresh(tokens["refresh_token"]).status_code == 400
        assert program.refresh(renewed["refresh_token"]).status_code == 400
        assert Connection.objects.get().revoked_at is not None


def test_a_client_is_forgotten_long_after_its_last_connection(priya: Client, program: Program) -> None:
    connect(priya, program)
    end_connection(Connection.objects.get(), "the test says so")

    with time_machine.travel(clock.now() + timedelta(days=80), tick=False):
        tasks.drop_expired_oauth()
        assert Application.objects.count() == 1
        assert not AccessToken.objects.exists()
        assert not RefreshToken.objects.exists()
    with time_machine.travel(clock.now() + timedelta(days=91), tick=False):
        tasks.drop_expired_oauth()
        assert not Application.objects.exists()

    row = Connection.objects.get()
    assert (row.name, row.shown_token, row.client) == ("Claude Code", "OAuth, 127.0.0.1", None)


def test_hashes_of_the_library_and_ours_agree(priya: Client, program: Program) -> None:
    token = connect(priya, program)["access_token"]

    assert AccessToken.objects.get().token_checksum == credentials.hash_of(token)
    assert AccessToken.objects.get().token == ""


def test_no_log_holds_a_secret_however_much_is_logged(
    priya: Client, program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    code = told(consent(priya, program))["code"]
    tokens = program.redeem(code).json()
    program.redeem(code)
    renewed = program.refresh(tokens["refresh_token"]).json()

    assert "oauth/token/" in caplog.text
    for secret in (code, program.verifier, tokens["access_token"], tokens["refresh_token"], "a state & more"):
        assert secret not in caplog.text
    assert renewed == {"error": "invalid_grant"}
