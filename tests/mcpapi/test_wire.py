"""What goes over the wire, in both eras: statuses, headers, JSON-RPC bodies."""

import json
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from core.types import Capability, Role
from mcpapi import catalog, introduction, modern
from mcpapi.envelope import UnknownTool
from mcpapi.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from tests.mcpapi.agent import HANDSHAKE_VERSION, Agent, Era, Reply
from tests.world import World

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def error_of(reply: Reply) -> tuple[int, int]:
    body = reply.json
    assert body["jsonrpc"] == "2.0"
    return reply.status, body["error"]["code"]


# Who asks.


@pytest.mark.parametrize(
    "credential",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer brn_",
        "Bearer brn_" + "a" * 43,
        "Bearer nonsense",
        "Bearer brn_ä",
        "Basic YWRhOnB3",
        "{token}",
        "Bearer {token} x",
        "Bearer {token}x",
        "Bearer {token},Bearer {token}",
    ],
)
def test_without_a_valid_credential_nothing_is_read(ada: Agent, credential: str | None) -> None:
    headers = ada.headers("tools/list", {})
    del headers["Authorization"]
    if credential is not None:
        headers["Authorization"] = credential.format(token=ada.token)

    for method in ("POST", "GET", "DELETE", "PUT", "OPTIONS"):
        reply = ada.send(b"{ no JSON", headers, method=method)

        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.json["error"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_written_as_one_likes(ada: Agent, scheme: str) -> None:
    assert ada.request("tools/list", Authorization=f"{scheme} {ada.token}").status == 200


def test_a_revoked_expired_or_disabled_credential_is_none(world: World, ada: Agent) -> None:
    assert ada.request("tools/list").status == 200

    world.disable("ada")

    assert ada.request("tools/list").status == 401


def test_cookies_are_never_looked_at(world: World, era: Era) -> None:
    world.person("root", is_admin=True)
    browser = Client()
    browser.force_login(world.identity("root"))
    agent = Agent(None, era)
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())

    assert agent.request("tools/list", Cookie=cookies).status == 401


def test_a_listing_asks_the_database_once(
    ada: Agent, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ada.tools()

    with django_assert_num_queries(1):
        ada.tools()


# Where from, and in which spelling.


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_both_spellings_are_the_endpoint_itself(ada: Agent, path: str) -> None:
    ada.path = path
    assert ada.request("tools/list").status == 200

    ada.token = None
    assert ada.request("tools/list").status == 401


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_nothing_redirects_even_behind_a_proxy_that_speaks_https(
    ada: Agent, settings: Settings, path: str
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    ada.path = path

    assert ada.request("tools/list", X_Forwarded_Proto="https").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ],
)
def test_while_oauth_is_off_nothing_answers_at_its_addresses(db: None, path: str) -> None:
    reply = Client().get(path, headers={"Accept": "text/html,*/*"})

    assert reply.status_code == 404
    assert reply.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize("own", [settings.PUBLIC_URL, "http://testserver:8123", "https://localhost"])
def test_a_page_of_our_own_may_ask(ada: Agent, settings: Settings, own: str) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    host = own.partition("://")[2]
    given = {"Origin": own} if own == settings.PUBLIC_URL else {"Origin": own, "Host": host}

    reply = ada.request("tools/list", None, **given)

    # Not a loopback name, so only the public address counts.
    assert reply.status == (403 if host.startswith("testserver") else 200)


@pytest.mark.parametrize("spelled", ["https://Brain.example", "https://brain.example:443"])
def test_the_public_address_may_be_written_with_its_port(
    ada: Agent, settings: Settings, spelled: str
) -> None:
    settings.PUBLIC_URL = spelled

    assert ada.request("tools/list", Origin="https://brain.example").status == 200
    assert ada.request("tools/list", Origin="https://brain.example:8443").status == 403
    assert ada.request("tools/list", Origin="http://brain.example").status == 403


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://127.0.0.1:1",
        "http://localhost.evil.example:8000",
        "null",
        "",
        "http://[",
        "file://",
        "http://127.0.0.1:8000.evil.example",
        settings.PUBLIC_URL + "/",
        settings.PUBLIC_URL.replace("http://", "https://"),
        settings.PUBLIC_URL.replace("http://", "http://user@"),
    ],
)
def test_a_page_of_another_site_may_not(ada: Agent, origin: str) -> None:
    reply = ada.request("tools/list", Origin=origin)

    assert error_of(reply) == (403, INVALID_REQUEST)


# How it is asked.


@pytest.mark.parametrize("accept", ["text/event-stream", "*/*", "application/json", None])
def test_only_post_is_taken(ada: Agent, accept: str | None) -> None:
    headers = ada.headers("tools/list", {})
    del headers["Accept"]
    if accept is not None:
        headers["Accept"] = accept

    for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"):
        reply = ada.send(b"", headers, method=method)

        assert reply.status == 405
        assert reply.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/json", "text/event-stream", "text/html", "nonsense", ""]
)
def test_whatever_is_accepted_the_answer_is_json(ada: Agent, accept: str | None) -> None:
    headers = ada.headers("tools/list", {})
    del headers["Accept"]
    if accept is not None:
        headers["Accept"] = accept

    reply = ada.send(json.dumps(ada.message("tools/list", {})).encode(), headers)

    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
    ],
)
def test_only_json_is_read(ada: Agent, content_type: str, status: int) -> None:
    assert ada.request("tools/list", Content_Type=content_type).status == status


def test_no_session_is_ever_opened_and_a_stale_one_is_ignored(ada: Agent) -> None:
    replies = [
        ada.request(
            "initialize",
            {
                "protocolVersion": HANDSHAKE_VERSION,
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        ),
        ada.request("tools/list", Mcp_Session_Id="0123456789abcdef"),
        ada.request("tools/call", {"name": "browse_knowledgebase", "arguments": {"action": "folders"}}),
    ]

    assert all("mcp-session-id" not in reply.headers for reply in replies)
    assert all("set-cookie" not in reply.headers for reply in replies)
    assert replies[1].status == replies[2].status == 200


# What is asked.


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"jsonrpc":NaN}', b"[" * 20_000])
def test_what_is_no_json_is_a_parse_error(ada: Agent, body: bytes) -> None:
    reply = ada.send(body, ada.headers("tools/list", {}))

    assert error_of(reply) == (400, PARSE_ERROR)
    assert reply.json["id"] is None


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        b"7",
        json.dumps([LIST, LIST]).encode(),
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"a","cursor":"b"}}',
    ],
)
def test_what_is_no_message_is_an_invalid_request(ada: Agent, body: bytes) -> None:
    assert error_of(ada.send(body, ada.headers("tools/list", {}))) == (400, INVALID_REQUEST)


def test_a_notification_is_accepted_without_a_body(ada: Agent) -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()

    reply = ada.send(body, ada.headers("notifications/initialized", {}))

    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize(
    "method", ["nothing", "tools/\ud800", "prompts/list", "resources/list", "logging/setLevel"]
)
def test_an_unknown_method_is_told_so(ada: Agent, era: Era, method: str) -> None:
    headers = ada.headers("x", {})
    if era == "modern" and method.isascii():
        headers["Mcp-Method"] = method
    params: dict[str, Any] = {"level": "info"} if method == "logging/setLevel" else {}

    reply = ada.send(json.dumps(ada.message(method, params)).encode(), headers)

    expected = {"handshake": (200, METHOD_NOT_FOUND), "modern": (404, METHOD_NOT_FOUND)}[era]
    assert error_of(reply) == (
        expected if method.isascii() or era == "handshake" else (400, modern.HEADER_MISMATCH)
    )


@pytest.mark.parametrize(
    "params", [{}, {"name": 7}, {"name": None}, {"name": "read_knowledgebase", "arguments": [1]}]
)
def test_a_call_that_is_none_is_a_protocol_error(ada: Agent, era: Era, params: dict[str, Any]) -> None:
    reply = ada.request("tools/call", params)

    # A name that is no text can never be the one in the header.
    code = modern.HEADER_MISMATCH if era == "modern" and params.get("name") == 7 else INVALID_PARAMS
    assert error_of(reply) == ({"handshake": 200, "modern": 400}[era], code)


def test_a_list_has_one_page(ada: Agent, era: Era) -> None:
    reply = ada.request("tools/list", {"cursor": "x"})

    assert error_of(reply) == ({"handshake": 200, "modern": 400}[era], INVALID_PARAMS)


def test_unknown_and_hidden_tools_are_one_answer(world: World, era: Era) -> None:
    world.person("priya", role=Role.READER)
    agent = Agent(world.token("priya", capability=Capability.READ), era)

    replies = []
    for name in (
        "update_knowledgebase",
        "no_such_tool",
        "Read_knowledgebase",
        "",
        "backup_knowledgebase",
        "\u00e4",
    ):
        message = agent.message("tools/call", {"name": name, "arguments": {"action": "create"}}) | {"id": 1}
        headers = agent.headers("tools/call", {})
        if era == "modern":
            headers["Mcp-Name"] = name if name.isascii() else "=?base64?w6Q=?="
        replies.append(agent.send(json.dumps(message).encode(), headers))

    assert len({(reply.status, reply.body) for reply in replies}) == 1
    assert replies[0].json["error"] == {"code": INVALID_PARAMS, "message": UnknownTool.sentence}


def test_ids_of_every_kind_come_back(ada: Agent) -> None:
    for request_id in ("", "a", "ä😀", 0, -1, 2**70):
        body = json.dumps({**ada.message("tools/list", {}), "id": request_id}).encode()

        assert ada.send(body, ada.headers("tools/list", {})).json["id"] == request_id


# The handshake.


@pytest.mark.parametrize("asked", modern.HANDSHAKE_VERSIONS)
def test_a_handshake_settles_on_the_version_that_was_asked(world: World, asked: str) -> None:
    world.person("ada")
    agent = Agent(world.token("ada"), "handshake")

    reply = agent.request(
        "initialize",
        {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    )

    result = reply.json["result"]
    assert result["protocolVersion"] == asked
    assert result["serverInfo"] == {"name": "brain", "version": introduction.VERSION}
    assert result["instructions"] == introduction.INSTRUCTIONS
    assert set(result["capabilities"]) == {"experimental", "tools"}


def test_a_handshake_for_an_unknown_version_settles_on_the_newest(world: World) -> None:
    world.person("ada")
    agent = Agent(world.token("ada"), "handshake")
    params = {
        "protocolVersion": "1999-01-01",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }

    assert agent.request("initialize", params).json["result"]["protocolVersion"] == HANDSHAKE_VERSION


def test_a_handshake_that_is_none_is_refused(world: World) -> None:
    world.person("ada")
    agent = Agent(world.token("ada"), "handshake")

    assert error_of(agent.request("initialize", {"protocolVersion": []})) == (200, INVALID_PARAMS)


def test_a_ping_of_the_older_revisions_is_answered(world: World) -> None:
    world.person("ada")

    assert Agent(world.token("ada"), "handshake").request("ping").json["result"] == {}


def test_every_handshake_version_may_stand_in_the_header_or_none(world: World) -> None:
    world.person("ada")
    agent = Agent(world.token("ada"), "handshake")

    for version in modern.HANDSHAKE_VERSIONS:
        assert agent.request("tools/list", MCP_Protocol_Version=version).status == 200
    headers = agent.headers("tools/list", {})
    del headers["MCP-Protocol-Version"]
    assert agent.send(json.dumps(LIST).encode(), headers).status == 200


def test_a_version_that_nobody_knows_is_told_which_is_known(world: World) -> None:
    world.person("ada")
    agent = Agent(world.token("ada"), "handshake")
    meta = {modern.CAPABILITIES_KEY: {}, modern.VERSION_KEY: "2099-01-01"}
    body = json.dumps({**LIST, "params": {"_meta": meta}}).encode()
    headers = agent.headers("tools/list", {})
    headers |= {"MCP-Protocol-Version": "2099-01-01", "Mcp-Method": "tools/list"}

    reply = agent.send(body, headers)

    assert error_of(reply) == (400, modern.UNSUPPORTED_VERSION)
    assert reply.json["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


def test_both_eras_show_the_same_tools(world: World) -> None:
    world.person("ada")
    token = world.token("ada")

    handshake, present = (Agent(token, era).tools() for era in ("handshake", "modern"))

    assert handshake == present == json.loads(json.dumps(catalog.listing(world.through(token))))
