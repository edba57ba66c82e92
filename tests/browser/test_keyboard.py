"""By keyboard alone: everything can be reached, and one sees where one is."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.world import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.server]

DEPLOY = "/files/Engineering/Payments/Checkout/deployment.md"

FOCUSED = """async () => {
    // The browser scrolls to what has the focus before it paints the next time.
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const element = document.activeElement;
    const box = element.getClientRects()[0] || element.getBoundingClientRect();
    const style = getComputedStyle(element);
    const middle = document.elementFromPoint(box.x + Math.min(box.width, 40) / 2, box.y + Math.min(box.height, 20) / 2);
    return {
        name: element.getAttribute('aria-label') || element.textContent.trim().replace(/\\s+/g, ' ').slice(0, 40),
        outline: parseFloat(style.outlineWidth) >= 2 && style.outlineStyle === 'solid',
        seen: box.width > 0 && box.top >= 0 && box.bottom <= innerHeight + 2
            && (element.contains(middle) || middle.contains(element)),
        body: element === document.body,
    };
}"""


def _walk(page: Page) -> list[str]:
    """Press Tab until the page is left; everything on the way can be seen and shows that it has the focus."""
    names: list[str] = []
    while len(names) < 200:
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused["body"]:
            return names
        assert focused["outline"], f"{focused['name']}: nothing shows the focus"
        tall = page.evaluate("document.activeElement.offsetHeight > innerHeight - 80")
        assert focused["seen"] or tall, f"{focused['name']}: out of sight or covered"
        names.append(focused["name"])
    raise AssertionError("the page has no end")


def test_signing_in_and_reading_an_entry_by_keyboard(window: Open) -> None:
    stranger = window()
    page = stranger.open(DEPLOY)
    expect(page.locator("#username")).to_be_focused()
    page.keyboard.type("priya")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(stranger.url + DEPLOY)

    names = _walk(page)

    assert names[:7] == [
        "Skip to content",
        "Brain",
        "Files",
        "Access",
        "Search all files",
        "Search",
        "Priya: account menu",
    ]
    for name in (
        "All files",
        "Checkout",
        "Read",
        "Source",
        "Rollback",
        "Details",
        "deployment freeze",
        "Table",
    ):
        assert name in names, name
    assert len(names) < 40


def test_the_skip_link_leads_to_the_text(window: Open) -> None:
    page = window("priya").open(DEPLOY)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")

    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


@pytest.mark.parametrize("width", [1280, 320])
def test_every_page_can_be_walked_through(window: Open, width: int) -> None:
    root = window("root", width=width, height=700)
    pages = (
        "/files/",
        "/files/Engineering/Payments/Checkout/",
        DEPLOY,
        f"{DEPLOY}?view=source",
        "/search/?q=checkout",
        "/search/?q=not+there&case=1",
    )
    for path in pages:
        root.open(path)
        assert len(_walk(root.page)) > 4


def test_menu_and_drawer_open_and_close_by_keyboard(window: Open) -> None:
    page = window("priya", width=390).open(DEPLOY)
    for opener, panel in (("Folders", "#tree"), ("account menu", "#account")):
        button = page.get_by_role("button", name=opener)
        button.focus()
        page.keyboard.press("Enter")
        expect(page.locator(panel)).to_be_visible()
        page.keyboard.press("Tab")
        assert page.evaluate("panel => document.querySelector(panel).contains(document.activeElement)", panel)
        page.keyboard.press("Escape")
        expect(page.locator(panel)).to_be_hidden()
        expect(button).to_be_focused()
