from collections.abc import Callable

import pytest
from django.test import Client

from tests.world import PASSWORD, World

Visit = Callable[[str], Client]


@pytest.fixture
def visit(world: World) -> Visit:
    """A browser in which this person has signed in."""

    def sign_in(username: str) -> Client:
        client = Client()
        answer = client.post("/login/", {"username": username, "password": PASSWORD})
        assert answer.status_code == 302, answer.content
        return client

    return sign_in
