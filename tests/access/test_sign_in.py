import re
from collections.abc import Iterator
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth import authenticate, get_user
from django.db import IntegrityError, connection, transaction
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from access.models import Identity
from access.principals import principal_of_session
from access.services.set_active import enable_identity
from access.sign_in import PeopleBackend
from core.errors import Unauthenticated
from tests.hashers import QuickArgon2
from tests.world import PASSWORD, World


def sign_in(username: str, password: str) -> Any:
    return authenticate(RequestFactory().post("/login/"), username=username, password=password)


@pytest.mark.parametrize("username", ["ada", "Ada", "ADA"])
def test_a_person_signs_in_with_their_password_whatever_the_case_of_the_name(
    world: World, username: str
) -> None:
    world.person("ada")

    assert sign_in(username, PASSWORD) == world.identity("ada")


@pytest.mark.parametrize(
    ("username", "password"),
    [("ada", PASSWORD.upper()), ("ada", ""), ("bo", PASSWORD), ("", PASSWORD), ("ada ", PASSWORD)],
)
def test_nobody_signs_in_with_a_wrong_name_or_password(world: World, username: str, password: str) -> None:
    world.person("ada")

    assert sign_in(username, password) is None


def test_a_disabled_person_does_not_sign_in_until_they_are_enabled(world: World) -> None:
    ada = world.person("ada")

    world.disable("ada")
    assert sign_in("ada", PASSWORD) is None

    enable_identity(world.system, ada.identity_id)
    assert sign_in("ada", PASSWORD) == world.identity("ada")


def test_disabling_a_person_ends_their_session(world: World) -> None:
    world.person("ada")
    client = Client()
    client.force_login(world.identity("ada"))
    request = RequestFactory().get("/")
    request.session = client.session
    assert get_user(request) == world.identity("ada")

    world.disable("ada")

    assert not get_user(request).is_authenticated


def test_a_service_account_cannot_have_a_password(world: World) -> None:
    world.service_account("deploy-bot")
    bot = world.identity("deploy-bot")

    assert not bot.has_usable_password()
    bot.set_password(PASSWORD)
    with pytest.raises(IntegrityError), transaction.atomic():
        bot.save()


@pytest.fixture
def bot_with_password(world: World) -> Iterator[Identity]:
    """What the database itself refuses: a service account with a password that fits."""
    world.service_account("deploy-bot")
    bot = world.identity("deploy-bot")
    bot.set_password(PASSWORD)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        bot.save()
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
    yield bot
    bot.set_unusable_password()
    bot.save()


def test_a_service_account_does_not_sign_in_even_with_a_password(bot_with_password: Identity) -> None:
    assert bot_with_password.check_password(PASSWORD)

    assert sign_in("deploy-bot", PASSWORD) is None
    assert PeopleBackend().get_user(bot_with_password.id) is None


def test_a_service_account_has_no_session(world: World) -> None:
    world.service_account("deploy-bot")

    with pytest.raises(Unauthenticated):
        principal_of_session(world.identity("deploy-bot"))


def test_every_refused_sign_in_costs_the_same_queries_and_one_hash(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.person("ada")
    world.person("bo")
    world.disable("bo")
    world.service_account("deploy-bot")
    hashes = []

    def counted(name: str) -> None:
        original = getattr(QuickArgon2, name)

        def count(self: QuickArgon2, *arguments: Any) -> Any:
            hashes.append(name)
            return original(self, *arguments)

        monkeypatch.setattr(QuickArgon2, name, count)

    counted("encode")
    counted("verify")

    costs = {}
    for username, password in (
        ("ada", "wrong"),
        ("nobody", "wrong"),
        ("deploy-bot", "wrong"),
        ("bo", "wrong"),
        ("bo", PASSWORD),
    ):
        AccessAttempt.objects.all().delete()
        hashes.clear()
        with CaptureQueriesContext(connection) as queries:
            assert sign_in(username, password) is None
        kinds = [re.split(" WHERE | VALUES | SET |SAVEPOINT ", query["sql"])[0] for query in queries]
        costs[username, password] = (len(hashes), kinds)

    assert {hashed for hashed, _ in costs.values()} == {1}
    assert len({tuple(kinds) for _, kinds in costs.values()}) == 1


def test_passwords_are_kept_as_argon2_hashes(world: World) -> None:
    world.person("ada")

    assert world.identity("ada").password.startswith("argon2$argon2id$")
