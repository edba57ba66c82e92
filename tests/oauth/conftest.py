from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from access import throttle
from core.types import Role
from tests.oauth import urls
from tests.oauth.program import Program, registered
from tests.web.conftest import visit
from tests.world import World

__all__ = ["visit"]


@pytest.fixture(autouse=True)
def own_counts() -> Iterator[None]:
    """No test's registrations count for another."""
    throttle.use_row(None)
    yield
    throttle.use_row(None)


@pytest.fixture
def on(settings: Settings) -> None:
    """OAuth is on."""
    settings.OAUTH = True
    settings.ROOT_URLCONF = urls.__name__


@pytest.fixture
def priya(on: None, world: World, visit: object) -> Client:
    """The browser of Priya, who edits Eng/Payments and reads Eng/Billing."""
    world.person("priya", role=Role.EDITOR, on="Eng/Payments")
    world.grant("priya", Role.READER, "Eng/Billing")
    world.folder("Eng/Secret")
    world.entry("Eng/Payments/deploy.md", "# Deploy\n")
    assert callable(visit)
    browser = visit("priya")
    assert isinstance(browser, Client)
    return browser


@pytest.fixture
def program(on: None, world: World) -> Program:
    """A program that has registered."""
    return registered()
