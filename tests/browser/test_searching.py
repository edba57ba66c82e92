"""People looking for something: from the field in the header to the heading and the line."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.live import LiveBrain

pytestmark = [pytest.mark.browser, pytest.mark.server]

DEPLOY = "/files/Engineering/Payments/Checkout/deployment.md"


@pytest.mark.parametrize("scripts", [True, False])
def test_from_the_header_to_the_heading_and_the_line(window: Open, scripts: bool) -> None:
    ada = window("ada", scripts=scripts)
    page = ada.page
    page.get_by_role("banner").get_by_role("searchbox").fill("health check")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{ada.url}/search/?q=health+check")
    expect(page.locator("mark").first).to_have_text("health check")
    expect(page).to_have_title("health check · Search · Brain")

    page.get_by_role("link", name="Deploy", exact=True).first.click()
    assert page.url == f"{ada.url}{DEPLOY}#md-deploy"
    _is_below_the_header(page, "h2#md-deploy, h3#md-deploy")

    page.go_back()
    page.get_by_role("link", name="line 22").click()
    assert page.url == f"{ada.url}{DEPLOY}?view=source#L22"
    _is_below_the_header(page, "#L22")
    expect(page.locator("#L22")).to_contain_text("health check")


def _is_below_the_header(page: Page, selector: str) -> None:
    place, top = page.locator(selector).bounding_box(), page.locator("header.top").bounding_box()
    height = page.viewport_size
    assert place is not None
    assert top is not None
    assert height is not None
    assert top["y"] + top["height"] <= place["y"] < height["height"]


def test_the_filters_narrow_and_stay_in_the_address(window: Open) -> None:
    ada = window("ada")
    page = ada.open("/files/Engineering/Payments/Checkout/")
    page.get_by_role("link", name="Search in this folder").click()
    expect(page.get_by_label("Text to look for")).to_be_focused()

    page.keyboard.type("CHECKOUT")
    page.get_by_label("Type").select_option("Skill")
    page.get_by_label("Tags").fill("deployment, checkout")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("heading", level=3)).to_have_text(["Deployment and rollback Skill"])
    for part in ("folder=Engineering%2FPayments%2FCheckout", "type=skill", "tags=deployment%2C+checkout"):
        assert part in page.url

    page.get_by_label("Match case").check()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("heading", level=2)).to_contain_text("Nothing that you can read holds")
    page.get_by_role("link", name="Everywhere").click()
    expect(page.get_by_role("heading", level=3)).to_have_count(2)


def test_on_a_phone_the_header_leads_to_the_field(window: Open) -> None:
    page = window("priya", width=390, height=844).open(DEPLOY)
    expect(page.get_by_role("banner").get_by_role("searchbox")).to_be_hidden()

    page.get_by_role("banner").get_by_role("link", name="Search").click()

    expect(page.get_by_label("Text to look for")).to_be_focused()


def test_a_long_list_is_walked_through_by_more(window: Open, live_brain: LiveBrain) -> None:
    live_brain.seed(
        [
            {"person": "seeker", "role": "reader", "on": "Haystack"},
            *({"entry": f"Haystack/n{number:02}.md", "content": "a needle\n"} for number in range(52)),
        ]
    )
    page = window("seeker").open("/search/?q=needle")
    expect(page.get_by_role("heading", name="The first 50 entries")).to_be_visible()

    page.get_by_role("link", name="More", exact=True).click()
    expect(page.get_by_role("heading", name="2 further entries")).to_be_visible()
    later = page.url

    page.get_by_role("link", name="Back to the beginning").click()
    expect(page.get_by_role("heading", name="The first 50 entries")).to_be_visible()
    page.goto(re.sub(r"q=needle", "q=needl", later))
    expect(page.get_by_role("status")).to_contain_text("cannot be continued any more")
