"""Guessing passwords: after five wrong ones for a name from one address, nobody is listened to for a while."""

import io
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from axes.models import AccessAttempt
from django.core.management import call_command
from django.test import Client, RequestFactory
from pytest_django import Settings

from access.models import AuditEvent
from access.services.unlock_sign_in import unlock_sign_in
from access.sign_in import address_of
from access.tasks import drop_past_sign_ins
from core.errors import Forbidden
from tests.hashers import QuickArgon2
from tests.world import PASSWORD, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def sign_in(username: str, password: str, *, at: str = "192.0.2.1", **headers: str) -> Any:
    form = {"username": username, "password": password, "next": "/files/Eng/"}
    return Client(REMOTE_ADDR=at, headers=headers).post("/login/", form)


def is_in(response: Any) -> bool:
    return response.status_code == 302 and "brain_session" in response.cookies


def miss(username: str, times: int, **where: str) -> list[int]:
    return [sign_in(username, "wrong", **where).status_code for _ in range(times)]


@pytest.fixture
def ada(world: World) -> World:
    world.person("ada")
    world.person("bo")
    return world


def test_after_five_wrong_passwords_the_right_one_is_refused_for_a_quarter_of_an_hour(ada: World) -> None:
    with time_machine.travel(NOON, tick=False) as time:
        assert miss("ada", 5) == [200, 200, 200, 200, 429]
        time.shift(timedelta(minutes=5))

        refused = sign_in("ada", PASSWORD)

        assert refused.status_code == 429
        assert refused["Retry-After"] == "600"
        assert "Wait 10 minutes" in refused.content.decode()
        assert 'value="/files/Eng/"' in refused.content.decode()
        # Trying again too early makes it no longer.
        time.shift(timedelta(minutes=10, seconds=1))
        assert is_in(sign_in("ada", PASSWORD))


def test_a_name_that_nobody_has_gets_the_same_answers(ada: World) -> None:
    def pages(username: str) -> list[tuple[int, str, Any]]:
        with time_machine.travel(NOON, tick=False):
            answers = [sign_in(username, password) for password in ["wrong"] * 6 + [PASSWORD]]
        return [(answer.status_code, _alike(answer), answer.get("Retry-After")) for answer in answers]

    ada.disable("bo")
    ada.service_account("deploy-bot")

    known, *others = [pages(username) for username in ("ada", "nobody", "bo", "deploy-bot")]

    assert [status for status, _, _ in known] == [200] * 4 + [429] * 3
    assert all(other == known for other in others)


def test_no_password_is_looked_at_during_a_pause(ada: World, monkeypatch: pytest.MonkeyPatch) -> None:
    miss("ada", 5)
    looked: list[str] = []
    monkeypatch.setattr(QuickArgon2, "verify", lambda *args: looked.append("verify"))
    monkeypatch.setattr(QuickArgon2, "encode", lambda *args: looked.append("encode"))

    assert sign_in("ada", PASSWORD).status_code == 429
    assert looked == []


def test_a_spelling_of_the_name_has_no_tries_of_its_own(ada: World) -> None:
    statuses = [sign_in(name, "wrong").status_code for name in ("ada", "Ada", "aDa", "ADA", " ada")]

    assert statuses[-1] == 429
    assert sign_in("adA", PASSWORD).status_code == 429


def test_others_and_other_addresses_are_not_paused(ada: World) -> None:
    miss("ada", 6)

    assert is_in(sign_in("bo", PASSWORD))
    assert is_in(sign_in("ada", PASSWORD, at="192.0.2.2"))


def test_addresses_of_one_ipv6_network_count_together(ada: World) -> None:
    for number in range(5):
        sign_in("ada", "wrong", at=f"2001:db8:0:1::{number}")

    assert sign_in("ada", PASSWORD, at="2001:db8:0:1:ffff::1").status_code == 429
    assert is_in(sign_in("ada", PASSWORD, at="2001:db8:0:2::1"))


def test_another_browser_at_the_same_address_is_paused_too(ada: World) -> None:
    for number in range(5):
        sign_in("ada", "wrong", **{"User-Agent": f"browser {number}"})

    assert sign_in("ada", PASSWORD, **{"User-Agent": "another"}).status_code == 429


def test_signing_in_forgets_the_wrong_ones_before_it(ada: World) -> None:
    for _ in range(3):
        assert miss("ada", 4) == [200] * 4
        assert is_in(sign_in("ada", PASSWORD))


@pytest.mark.parametrize(
    ("proxies", "remote", "forwarded", "address"),
    [
        (0, "192.0.2.1", "", "192.0.2.1"),
        (0, "192.0.2.1", "203.0.113.9", "192.0.2.1"),
        (1, "10.0.0.1", "203.0.113.9", "203.0.113.9"),
        (1, "10.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"),
        (2, "10.0.0.1", "198.51.100.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        (2, "10.0.0.1", "203.0.113.9", "203.0.113.9"),
        (1, "10.0.0.1", "", "10.0.0.1"),
        (1, "10.0.0.1", "unknown", None),
        (0, "", "", None),
        (0, "2001:db8::1:2:3:4", "", "2001:db8::"),
        (0, "::ffff:192.0.2.1", "", "192.0.2.1"),
    ],
)
def test_an_address_is_taken_from_where_only_our_proxies_write(
    settings: Settings, proxies: int, remote: str, forwarded: str, address: str | None
) -> None:
    settings.PROXY_COUNT = proxies

    request = RequestFactory().get("/login/", REMOTE_ADDR=remote, headers={"X-Forwarded-For": forwarded})

    assert address_of(request) == address


def test_what_is_kept_of_a_wrong_sign_in_has_no_password_and_is_swept(ada: World) -> None:
    with time_machine.travel(NOON, tick=False) as time:
        sign_in("ada", "my other password")
        kept = AccessAttempt.objects.values().get()
        time.shift(timedelta(minutes=14))
        assert drop_past_sign_ins() == 0
        time.shift(timedelta(minutes=2))
        assert drop_past_sign_ins() == 1

    assert "my other password" not in str(kept)
    assert "/files/Eng/" not in str(kept)
    assert not AccessAttempt.objects.exists()


def test_unlock_ends_the_pause_and_is_audited(ada: World) -> None:
    miss("ada", 5)
    miss("ada", 5, at="192.0.2.2")
    said = io.StringIO()

    call_command("unlock", "Ada", stderr=said)

    assert "may try again" in said.getvalue()
    assert is_in(sign_in("ada", PASSWORD))
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.subject_username, event.through) == ("unlock", "ada", "shell")
    call_command("unlock", "nobody", stderr=said)
    assert "No wrong passwords" in said.getvalue()
    assert AuditEvent.objects.latest("id") == event


def test_only_administrators_unlock(ada: World) -> None:
    miss("ada", 5)

    with pytest.raises(Forbidden):
        unlock_sign_in(ada.person("mallory"), "ada")

    assert sign_in("ada", PASSWORD).status_code == 429
    assert unlock_sign_in(ada.person("root", is_admin=True), "ada") == 1


def _alike(answer: Any) -> str:
    # Without the name that was typed and the form's own token.
    return re.sub(r'value="[\w-]*"', "", answer.content.decode())
