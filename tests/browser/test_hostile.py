"""Hostile entries in a real browser: text is shown, nothing runs, nobody else is asked for anything."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.live import LiveBrain
from tests.rendering.payloads import PAYLOADS, SCRIPT

pytestmark = [pytest.mark.browser, pytest.mark.server]

MARKUP = f"\"><script>{SCRIPT}</script><img src=x onerror={SCRIPT}><svg onload={SCRIPT}>'"


@pytest.fixture(scope="module")
def hostile(live_brain: LiveBrain) -> list[str]:
    """Addresses of pages that hold markup in every field, and each payload."""
    live_brain.seed([{"person": "victim", "name": MARKUP[:120], "role": "editor", "on": "Hostile"}])
    live_brain.seed(
        [
            {
                "entry": f"Hostile/p{number}.md",
                "title": MARKUP,
                "description": MARKUP,
                "tags": [MARKUP[:64], "javascript:"],
                "by": "victim",
                "content": f"# {payload}\n\n{payload}\n\n## {MARKUP}\n\nStill here.\n",
            }
            for number, payload in enumerate(PAYLOADS)
            if not any(control in payload for control in "\x0c\x01")
        ]
    )
    return [
        "/files/",
        "/files/Hostile/",
        *(f"/files/Hostile/p{number}.md" for number in range(len(PAYLOADS))),
    ]


def test_no_script_runs_and_no_request_leaves(window: Open, hostile: list[str]) -> None:
    victim = window("victim")
    for path in hostile:
        page = victim.open(path)
        if page.title().startswith("Not found"):
            continue  # a payload that the store refuses
        assert page.evaluate("window.harmed === undefined"), path
        assert page.locator("main :is(script, svg:not(.icon), iframe, form, style)").count() == 0
        assert page.locator("main img").count() == 0

    # And where somebody clicks on what is there, in one of the richest.
    page = victim.open(hostile[2])
    expect(page.locator("h1")).to_have_text(MARKUP)
    page.get_by_role("link", name="Source").click()
    expect(page.locator("pre.source")).to_contain_text("Still here.")
    assert page.evaluate("window.harmed === undefined")


def test_names_in_breadcrumbs_and_outline_are_text(window: Open, hostile: list[str]) -> None:
    page = window("victim").open(hostile[2])

    expect(page.get_by_role("navigation", name="On this page").get_by_role("link").last).to_contain_text("'")
    expect(page.locator(".tags li").first).to_have_text(MARKUP[:64])
    expect(page.locator(".lead")).to_have_text(MARKUP)
    page.locator(".account-opener").click()
    expect(page.locator(".account .who")).to_contain_text(MARKUP[:100])
