"""Signing in and out: one door, one sentence for every error, and no way out of this origin."""

import re

import pytest
from django.test import Client

from access.models import Identity
from core.types import Role
from tests.web.conftest import Visit
from tests.world import PASSWORD, World

FORM_TOKEN = re.compile(rb'value="[A-Za-z0-9]{64}"')
GIVEN_NAME = re.compile(rb'(id="username"[^>]*?) value="[^"]*"')


@pytest.fixture(autouse=True)
def ada(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on="Engineering")


def _attempt(username: str, password: str) -> bytes:
    answer = Client().post("/login/", {"username": username, "password": password})
    assert answer.status_code == 200
    page = FORM_TOKEN.sub(b"", answer.content)
    return GIVEN_NAME.sub(rb"\1", page)


def test_whoever_has_name_and_password_is_in() -> None:
    client = Client()
    answer = client.post("/login/", {"username": "ada", "password": PASSWORD})

    assert (answer.status_code, answer["Location"]) == (302, "/files/")
    assert client.get("/files/").status_code == 200
    assert client.get("/login/")["Location"] == "/files/"


def test_every_other_attempt_looks_the_same(world: World) -> None:
    world.service_account("deploy-bot", role=Role.EDITOR, on="Engineering")
    world.person("bo")
    world.disable("bo")
    wrong = _attempt("ada", "wrong")

    assert b"do not fit together" in wrong
    assert _attempt("nobody", PASSWORD) == wrong
    assert _attempt("deploy-bot", PASSWORD) == wrong
    assert _attempt("deploy-bot", "") == wrong
    assert _attempt("bo", PASSWORD) == wrong
    assert _attempt("", "") == wrong
    assert _attempt("a" * 300, "x" * 5_000) == wrong


def test_a_page_that_needs_signing_in_comes_after_it() -> None:
    client = Client()
    asked = client.get("/files/Engineering/a%20b.md?view=source")
    assert (asked.status_code, asked["Location"]) == (
        302,
        "/login/?next=/files/Engineering/a%2520b.md%3Fview%3Dsource",
    )

    form = client.get(asked["Location"])
    field = re.search(rb'name="next" value="([^"]*)"', form.content)
    assert field is not None
    answer = client.post("/login/", {"username": "ada", "password": PASSWORD, "next": field[1].decode()})

    assert answer["Location"] == "/files/Engineering/a%20b.md?view=source"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "javascript:alert(1)",
        "http:evil.example",
    ],
)
def test_nobody_is_sent_elsewhere(elsewhere: str) -> None:
    answer = Client().post("/login/", {"username": "ada", "password": PASSWORD, "next": elsewhere})

    assert answer["Location"] == "/files/"


def test_a_disabled_person_is_out_at_the_next_page(world: World, visit: Visit) -> None:
    client = visit("ada")
    world.disable("ada")

    assert client.get("/files/")["Location"] == "/login/?next=/files/"


def test_a_session_of_a_service_account_is_none(world: World) -> None:
    world.service_account("deploy-bot")
    client = Client()
    client.force_login(Identity.objects.get(username="deploy-bot"))

    assert client.get("/files/")["Location"] == "/login/?next=/files/"


def test_signing_out_takes_a_form_and_ends_the_session(visit: Visit) -> None:
    client = visit("ada")

    assert client.get("/logout/").status_code == 405
    assert client.get("/files/").status_code == 200
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/files/")["Location"] == "/login/?next=/files/"


def test_the_session_gets_a_new_name_at_signing_in() -> None:
    client = Client()
    client.get("/login/")
    client.cookies["brain_session"] = "chosen-by-mallory"
    client.post("/login/", {"username": "ada", "password": PASSWORD})

    assert client.cookies["brain_session"].value != "chosen-by-mallory"
    assert client.cookies["brain_session"]["httponly"]


@pytest.mark.parametrize("address", ["/login/", "/logout/", "/theme/"])
def test_a_form_from_elsewhere_is_refused_with_a_page(address: str) -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post(address, {"username": "ada", "password": PASSWORD})

    assert answer.status_code == 403
    assert b"This form is too old" in answer.content
    assert "brain_session" not in answer.cookies


def test_a_refused_form_leaves_no_address_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    answer = Client(enforce_csrf_checks=True).post("/files/Secret/Codes.md")

    assert answer.status_code == 403
    assert "Codes" not in caplog.text
