import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import pytest
import time_machine
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access import credentials
from access.services.revoke_token import revoke_token
from access.services.set_active import enable_identity
from core import clock
from core.errors import Unauthenticated
from core.types import Capability, IdentityKind, Role
from tests.world import World

UNKNOWN = "brn_" + "A" * 43


def writes(queries: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]


@pytest.fixture
def used(world: World) -> str:
    """Ada's token, whose use was noted just now."""
    world.person("ada")
    token = world.token("ada")
    world.through(token)
    return token


def test_a_token_is_its_prefix_and_43_random_characters() -> None:
    tokens = {credentials.new_token().text for _ in range(100)}

    assert len(tokens) == 100
    assert all(credentials.TOKEN.fullmatch(token) for token in tokens)


def test_a_token_resolves_to_its_identity_and_what_narrows_it(world: World) -> None:
    world.service_account("deploy-bot", role=Role.EDITOR, on="Eng")
    token = world.token("deploy-bot", name="ci", capability=Capability.READ, scopes={"Eng": Role.READER})

    bot = world.through(token)

    assert (bot.username, bot.kind) == ("deploy-bot", IdentityKind.SERVICE_ACCOUNT)
    assert bot.organization_id == world.organization_id
    assert bot.connection is not None
    assert bot.connection.name == "ci"
    assert bot.connection.capability is Capability.READ
    assert bot.connection.folder_scopes == ((world.folder("Eng").id, Role.READER),)


def test_nothing_in_the_database_holds_a_token(used: str) -> None:
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
            assert used[4:] not in repr(cursor.fetchall())


def test_a_token_costs_one_query(used: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        credentials.authenticate_token(used)

    assert len(queries) == 1


def malformed(world: World, token: str) -> str:
    return token[:-1]


def without_prefix(world: World, token: str) -> str:
    return token[4:]


def with_something_behind_it(world: World, token: str) -> str:
    return token + "\n"


def unknown(world: World, token: str) -> str:
    return UNKNOWN


def in_other_case(world: World, token: str) -> str:
    return "brn_" + token[4:].swapcase()


def revoked(world: World, token: str) -> str:
    revoke_token(world.system, world.connection(token).id)
    return token


def of_a_disabled_person(world: World, token: str) -> str:
    world.disable("ada")
    return token


def expired(world: World, token: str) -> str:
    row = world.connection(token)
    row.expires_at = clock.now()
    row.save()
    return token


@pytest.mark.parametrize(
    "spoil",
    [
        malformed,
        without_prefix,
        with_something_behind_it,
        unknown,
        in_other_case,
        revoked,
        of_a_disabled_person,
        expired,
    ],
)
def test_every_token_that_is_not_good_fails_alike(
    world: World, used: str, spoil: Callable[[World, str], str]
) -> None:
    spoiled = spoil(world, used)

    with pytest.raises(Unauthenticated) as refused:
        credentials.authenticate_token(spoiled)

    assert refused.value.as_dict() == Unauthenticated().as_dict()


@pytest.mark.parametrize("spoil", [malformed, without_prefix, with_something_behind_it])
def test_what_cannot_be_a_token_asks_no_database(
    world: World, used: str, spoil: Callable[[World, str], str]
) -> None:
    with CaptureQueriesContext(connection) as queries, pytest.raises(Unauthenticated):
        credentials.authenticate_token(spoil(world, used))

    assert len(queries) == 0


@pytest.mark.parametrize("spoil", [unknown, revoked, of_a_disabled_person, expired])
def test_a_refused_token_costs_the_same_query_as_a_good_one(
    world: World, used: str, spoil: Callable[[World, str], str]
) -> None:
    spoiled = spoil(world, used)

    with CaptureQueriesContext(connection) as queries, pytest.raises(Unauthenticated):
        credentials.authenticate_token(spoiled)

    assert len(queries) == 1


def test_a_token_works_again_when_its_account_is_enabled(world: World, used: str) -> None:
    world.disable("ada")

    enable_identity(world.system, world.identity("ada").id)

    assert world.through(used).username == "ada"


def test_a_token_is_good_until_the_moment_it_expires(world: World) -> None:
    world.person("ada")
    token = world.token("ada", expires_in_days=30)
    end = world.connection(token).expires_at
    assert end is not None

    with time_machine.travel(end - timedelta(seconds=1), tick=False):
        credentials.authenticate_token(token)
    with time_machine.travel(end, tick=False), pytest.raises(Unauthenticated):
        credentials.authenticate_token(token)


# Last used


def test_the_first_use_of_a_token_is_noted(world: World) -> None:
    world.person("ada")
    token = world.token("ada")
    assert world.connection(token).last_used_at is None

    with time_machine.travel("2026-11-30T09:15:00Z", tick=False):
        world.through(token)

        assert world.connection(token).last_used_at == clock.now()


def test_the_use_of_a_token_is_noted_once_an_hour_at_most(world: World) -> None:
    world.person("ada")
    with time_machine.travel("2026-11-30T09:15:00Z", tick=False) as time:
        token = world.token("ada")
        world.through(token)

        time.shift(timedelta(minutes=59))
        with CaptureQueriesContext(connection) as within_the_hour:
            world.through(token)
        time.shift(timedelta(minutes=1))
        with CaptureQueriesContext(connection) as after_it:
            world.through(token)

        assert writes(within_the_hour) == []
        assert len(writes(after_it)) == 1
        assert world.connection(token).last_used_at == clock.now()


def test_a_refused_token_notes_no_use(world: World) -> None:
    world.person("ada")
    token = world.token("ada")
    world.disable("ada")

    with pytest.raises(Unauthenticated):
        world.through(token)

    assert world.connection(token).last_used_at is None


@pytest.fixture
def somebody_else_writing(world: World) -> Iterator[None]:
    """Another connection that holds SQLite's one writer, for the length of the test."""
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        yield
        other.rollback()


def busy_timeout() -> int:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_busy_database_neither_fails_nor_delays_a_call(
    world: World, request: pytest.FixtureRequest
) -> None:
    world.person("ada")
    token = world.token("ada")
    patience = busy_timeout()
    request.getfixturevalue("somebody_else_writing")

    with CaptureQueriesContext(connection) as queries:
        principal = world.through(token)

    assert principal.username == "ada"
    assert world.connection(token).last_used_at is None
    statements = [query["sql"] for query in queries]
    assert statements.index("PRAGMA busy_timeout = 0") < statements.index("BEGIN IMMEDIATE")
    assert busy_timeout() == patience > 0


@pytest.mark.django_db(transaction=True)
def test_a_read_only_database_does_not_fail_a_call(world: World) -> None:
    world.person("ada")
    token = world.token("ada")

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        try:
            principal = world.through(token)
        finally:
            cursor.execute("PRAGMA query_only = OFF")

    assert principal.username == "ada"
    assert world.connection(token).last_used_at is None
