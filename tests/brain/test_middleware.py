import json
import re
from typing import Any

import pytest
from django.test import Client, override_settings

from core import limits
from tests.brain.pages import SAID

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def pages(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.brain.pages"


@pytest.fixture
def client() -> Client:
    """A client that gets what a browser would, also where a view breaks."""
    return Client(raise_request_exception=False)


def post(client: Client, path: str, **headers: str) -> Any:
    # A body of the declared size need not be sent: it must be refused before it is read.
    return client.generic("POST", path, b"", "application/json", **headers)  # type: ignore[arg-type]


def test_hidden_missing_and_unknown_addresses_are_one_page(client: Client) -> None:
    hidden, missing, unknown = (client.get(path) for path in ("/hidden", "/missing", "/no/such/address"))

    assert hidden.status_code == missing.status_code == unknown.status_code == 404
    assert hidden.content == missing.content == unknown.content
    assert hidden.headers == missing.headers == unknown.headers
    assert b"merger" not in hidden.content


def test_programs_get_the_error_object_where_people_get_a_page(client: Client) -> None:
    hidden, unknown = client.get("/api/v1/hidden"), client.get("/.well-known/oauth-protected-resource")

    assert hidden.status_code == unknown.status_code == 404
    assert hidden.json() == unknown.json()
    assert hidden.json()["error"]["code"] == "NOT_FOUND"


def test_a_refused_credential_is_challenged(client: Client) -> None:
    response = client.get("/api/v1/who")

    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")


def test_a_refusal_that_may_pass_says_when_to_come_back(client: Client) -> None:
    response = client.get("/busy")

    assert (response.status_code, response["Retry-After"]) == (503, "3")


@pytest.mark.parametrize("path", ["/bug", "/api/v1/bug"])
def test_a_bug_shows_a_reference_that_the_log_has_and_nothing_else(
    client: Client, path: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    response = client.get(path)

    assert response.status_code == 500
    shown = response.content.decode()
    assert SAID not in shown
    assert "ValueError" not in shown
    (reference,) = re.findall(r"\b[0-9a-f]{16}\b", shown)
    (event,) = [record.msg for record in caplog.records if record.name == "brain.refusals"]
    assert isinstance(event, dict)
    assert event["reference"] == reference


def test_a_request_that_is_not_to_be_trusted_gets_no_page(client: Client) -> None:
    response = client.get("/suspicious")

    assert (response.status_code, response.content) == (400, b"Bad request.")


def test_denied_by_django_is_forbidden(client: Client) -> None:
    assert client.get("/denied").status_code == 403


def test_another_host_name_is_refused(client: Client) -> None:
    assert client.get("/fine", HTTP_HOST="evil.example").status_code == 400


@pytest.mark.parametrize(
    ("path", "size", "status"),
    [
        ("/fine", limits.BODY_MAX_BYTES, 200),
        ("/fine", limits.BODY_MAX_BYTES + 1, 413),
        ("/mcp", limits.BODY_MAX_BYTES + 1, 200),
        ("/mcp", limits.MCP_BODY_MAX_BYTES, 200),
        ("/mcp", limits.MCP_BODY_MAX_BYTES + 1, 413),
        ("/mcp/", limits.MCP_BODY_MAX_BYTES + 1, 413),
        ("/api/external/v1/mcp", limits.MCP_BODY_MAX_BYTES + 1, 413),
        ("/mcp/other", limits.BODY_MAX_BYTES + 1, 413),
    ],
)
def test_a_body_is_judged_by_its_declared_size(client: Client, path: str, size: int, status: int) -> None:
    with override_settings(MIDDLEWARE=["brain.middleware.BodyLimits"]):
        assert post(client, path, CONTENT_LENGTH=str(size)).status_code == status


def test_an_agent_is_told_as_json_rpc_that_its_body_is_too_large(client: Client) -> None:
    response = post(client, "/mcp", CONTENT_LENGTH=str(limits.MCP_BODY_MAX_BYTES + 1))

    assert response.status_code == 413
    assert json.loads(response.content) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "The body is larger than 67,108,864 bytes."},
    }
    assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/fine", "/mcp"])
def test_a_body_of_unknown_size_is_refused(client: Client, path: str) -> None:
    assert post(client, path, CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked").status_code == 411


@pytest.mark.parametrize("declared", ["-1", "+5", "1e3", "٥", "5, 5"])
def test_a_size_that_is_no_number_is_refused(client: Client, declared: str) -> None:
    assert post(client, "/fine", CONTENT_LENGTH=declared).status_code == 400


def test_every_answer_carries_the_headers_that_keep_a_browser_safe(client: Client) -> None:
    for path in ("/fine", "/hidden", "/bug", "/api/v1/hidden"):
        response = client.get(path)
        policy = dict(part.split(" ", 1) for part in response["Content-Security-Policy"].split("; "))
        assert policy == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "img-src": "'self'",
            "font-src": "'self'",
            "connect-src": "'self'",
            "form-action": "'self'",
            "base-uri": "'none'",
            "frame-ancestors": "'none'",
        }
        assert response["Cache-Control"] == "no-store"
        assert response["X-Frame-Options"] == "DENY"
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Referrer-Policy"] == "same-origin"


def test_a_view_may_say_that_its_answer_can_be_kept(client: Client) -> None:
    assert client.get("/cached")["Cache-Control"] == "max-age=60"


def test_a_forged_form_is_refused_with_a_sentence_about_forms() -> None:
    response = Client(enforce_csrf_checks=True).post("/fine", {"x": "y"})

    assert response.status_code == 403
    assert b"reload the page" in response.content


def test_one_event_a_request_names_the_route_and_not_the_address(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    client.get("/hidden?q=merger")
    client.get("/no/merger")

    events = [record.msg for record in caplog.records if record.name == "brain.middleware"]
    assert [(event["route"], event["status"]) for event in events if isinstance(event, dict)] == [
        ("hidden", 404),
        ("", 404),
    ]
    assert "merger" not in caplog.text
