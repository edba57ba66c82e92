"""People at the viewer: signing in, finding their way, reading, with mouse, keyboard and without scripts."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.live import LiveBrain
from tests.world import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.server]

CHECKOUT = "/files/Engineering/Payments/Checkout/"
DEPLOY = f"{CHECKOUT}deployment.md"


def _heading(page: Page) -> str:
    return page.locator("h1").inner_text()


@pytest.mark.parametrize("scripts", [True, False])
def test_from_signing_in_to_reading_to_signing_out(window: Open, scripts: bool) -> None:
    ada = window(scripts=scripts)
    page = ada.open(f"{CHECKOUT}?from=a%20mail")
    page.fill("#username", "ada")
    page.fill("#password", "wrong")
    page.press("#password", "Enter")
    expect(page.get_by_role("alert")).to_contain_text("do not fit together")

    page.fill("#password", PASSWORD)
    page.press("#password", "Enter")
    assert (page.url, _heading(page)) == (f"{ada.url}{CHECKOUT}?from=a%20mail", "Checkout")

    page.get_by_role("main").get_by_role("link", name="Deployment and rollback").click()
    assert (page.url, _heading(page)) == (ada.url + DEPLOY, "Deployment and rollback")
    page.get_by_role("link", name="design notes").click()
    assert page.url == f"{ada.url}{CHECKOUT}design%20doc.md"
    page.go_back()
    page.get_by_role("link", name="Source").click()
    expect(page.locator("#L1")).to_have_text("# Deployment and rollback\n")

    page.get_by_role("navigation", name="Folders").get_by_role("link", name="Rollbacks").click()
    expect(page.get_by_text("There is nothing in this folder yet.")).to_be_visible()
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Payments").click()
    assert page.url == f"{ada.url}/files/Engineering/Payments/"

    page.get_by_role("button", name="account menu").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.url == f"{ada.url}/files/Engineering/Payments/"

    page.get_by_role("button", name="account menu").click()
    page.get_by_role("button", name="Sign out").click()
    assert page.url == f"{ada.url}/login/"
    ada.open(DEPLOY)
    assert page.url.startswith(f"{ada.url}/login/?next=")


def test_someone_with_one_folder_sees_the_way_to_it_and_nothing_beside(window: Open) -> None:
    priya = window("priya")
    page = priya.page
    seen = []
    for step in ("Engineering", "Payments", "Checkout"):
        seen.append(page.get_by_role("navigation", name="Folders").inner_text().split("\n"))
        page.get_by_role("main").get_by_role("link", name=step).click()
    tree = page.get_by_role("navigation", name="Folders")

    assert [[name.strip() for name in names if name.strip()] for names in seen] == [
        ["All files", "Engineering"],
        ["All files", "Engineering", "Payments"],
        ["All files", "Engineering", "Payments", "Checkout"],
    ]
    expect(tree.locator(".label > a")).to_have_text(["Engineering", "Payments"])
    expect(tree.get_by_role("link", name="Checkout")).to_have_attribute("aria-current", "page")
    assert "Billing" not in page.content()


def test_hidden_and_missing_are_one_page(window: Open) -> None:
    priya = window("priya")
    pages = []
    for path in ("Engineering/Billing/invoices.md", "Engineering/Billing/nothing.md", "Nowhere/"):
        page = priya.open(f"/files/{path}")
        pages.append(re.sub(r'value="[A-Za-z0-9]{64}"', "", page.content()))

    assert pages[0] == pages[1] == pages[2]
    assert "Not found, or not shared with you" in pages[0]


def test_what_an_agent_saves_is_there_at_the_next_look(window: Open, live_brain: LiveBrain) -> None:
    live_brain.seed([{"person": "fresh", "role": "reader", "on": "Fresh"}, {"folder": "Fresh/Inbox"}])
    page = window("fresh").open("/files/Fresh/Inbox/")
    expect(page.get_by_text("There is nothing in this folder yet.")).to_be_visible()

    live_brain.seed([{"entry": "Fresh/Inbox/first.md", "title": "First", "content": "Hello.\n"}])
    page.reload()
    page.get_by_role("main").get_by_role("link", name="First").click()

    expect(page.locator(".markdown")).to_have_text("Hello.")


def test_a_link_to_a_heading_leads_there_and_nothing_covers_it(window: Open) -> None:
    page = window("priya").open(DEPLOY)
    outline = page.get_by_role("navigation", name="On this page")
    expect(outline.get_by_role("link")).to_have_text(
        ["Before you deploy", "Deploy", "When the canary is red", "Rollback"]
    )

    outline.get_by_role("link", name="When the canary is red").click()

    heading = page.get_by_role("heading", name="When the canary is red")
    box, top = heading.bounding_box(), page.locator("header.top").bounding_box()
    assert box is not None
    assert top is not None
    assert top["y"] + top["height"] <= box["y"] < 200


def test_a_chosen_theme_wins_over_the_system(window: Open) -> None:
    priya = window("priya", theme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = priya.page.evaluate(background)

    priya.page.get_by_role("button", name="account menu").click()
    priya.page.get_by_role("button", name="Light").click()

    assert dark == "rgb(22, 25, 29)"
    assert priya.page.evaluate(background) == "rgb(253, 252, 250)"
    assert window(theme="light").open("/login/").evaluate(background) == "rgb(253, 252, 250)"


def test_on_a_phone_the_tree_is_a_drawer(window: Open) -> None:
    page = window("priya", width=390, height=844).open(DEPLOY)
    tree = page.get_by_role("navigation", name="Folders")
    expect(tree).to_be_hidden()

    page.get_by_role("button", name="Folders").click()
    expect(tree).to_be_visible()
    page.keyboard.press("Escape")
    expect(tree).to_be_hidden()

    page.get_by_role("button", name="Folders").click()
    page.get_by_role("button", name="Close").click()
    expect(tree).to_be_hidden()

    page.get_by_role("button", name="Folders").click()
    tree.get_by_role("link", name="Rollbacks").click()
    assert page.url.endswith("/Checkout/Rollbacks/")
    expect(page.get_by_role("navigation", name="Folders")).to_be_hidden()


def test_on_paper_there_is_the_text_and_where_it_comes_from(window: Open) -> None:
    page = window("priya").open(DEPLOY)
    page.emulate_media(media="print")

    for chrome in ("header.top", "nav.tree", "nav.crumbs", "nav.views", ".about"):
        expect(page.locator(chrome)).to_be_hidden()
    expect(page.get_by_role("heading", name="Deployment and rollback")).to_be_visible()
    expect(page.locator("footer.print-only")).to_contain_text("Engineering/Payments/Checkout/deployment.md")
    address = page.evaluate("getComputedStyle(document.querySelector('a.image'), '::after').content")
    assert "https://charts.example/budget.png" in address


def test_the_first_page_is_light(window: Open) -> None:
    priya = window()
    sizes: list[int] = []
    priya.page.on("response", lambda response: sizes.append(len(response.body())))
    priya.sign_in("priya")

    assert sum(sizes) < 100_000
