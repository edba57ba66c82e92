"""Light or dark, chosen once and right from the first paint."""

import pytest
from django.test import Client

from tests.web.conftest import Visit
from tests.world import World


@pytest.fixture
def ada(world: World, visit: Visit) -> Client:
    world.person("ada")
    return visit("ada")


def _page(client: Client) -> str:
    return client.get("/files/").content.decode()


def test_the_system_decides_until_somebody_does(ada: Client) -> None:
    assert '<html lang="en">' in _page(ada)

    for theme in ("dark", "light"):
        ada.post("/theme/", {"theme": theme})
        assert f'<html lang="en" data-theme="{theme}">' in _page(ada)
        assert f'value="{theme}" aria-pressed="true"' in _page(ada)
        assert (
            f'<html lang="en" data-theme="{theme}">'
            in Client(headers={"cookie": f"brain_theme={theme}"}).get("/login/").content.decode()
        )

    ada.post("/theme/", {"theme": ""})
    assert '<html lang="en">' in _page(ada)


def test_a_made_up_theme_is_none(ada: Client) -> None:
    ada.cookies["brain_theme"] = 'x" onload="y'
    assert '<html lang="en">' in _page(ada)

    ada.post("/theme/", {"theme": "pink"})
    assert '<html lang="en">' in _page(ada)


def test_choosing_leads_back_to_the_page_it_was_done_on(ada: Client) -> None:
    answer = ada.post("/theme/", {"theme": "dark"}, headers={"referer": "http://testserver/files/a%20b.md"})

    assert (answer.status_code, answer["Location"]) == (302, "http://testserver/files/a%20b.md")
    cookie = ada.cookies["brain_theme"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")


@pytest.mark.parametrize("before", ["", "https://evil.example/", "//evil.example/", "javascript:x"])
def test_nobody_is_led_elsewhere(ada: Client, before: str) -> None:
    assert ada.post("/theme/", {"theme": "dark"}, headers={"referer": before})["Location"] == "/files/"


def test_choosing_takes_a_form(ada: Client) -> None:
    assert ada.get("/theme/").status_code == 405
