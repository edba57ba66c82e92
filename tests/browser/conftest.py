"""Real Chromium at a real server. Every page that a test opens is watched: see ``Window``."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from tests.live import LiveBrain, live_brain
from tests.world import PASSWORD

__all__ = ["live_brain"]

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
REFUSED_PAGE = re.compile(r"Failed to load resource: the server responded with a status of 40[04] ")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Window:
    """A browser window of one person, and what happened in it that must not happen."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        context.on("request", self._note)

    def open(self, path: str) -> Page:
        """The page at this address of the server."""
        self.page.goto(self.url + path)
        return self.page

    def sign_in(self, username: str) -> None:
        page = self.open("/login/")
        page.fill("#username", username)
        page.fill("#password", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_url("**/files/")

    def violations(self) -> list[str]:
        """What axe finds in the page as it is now, each with the places."""
        # Evaluated, not added as a script: the page's policy would rightly refuse that.
        if self.page.evaluate("!window.axe"):
            self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
        return [
            f"{violation['id']}: {[node['target'] for node in violation['nodes']]}"
            for violation in found["violations"]
        ]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return max(0, width)

    def _hear(self, message: ConsoleMessage) -> None:
        # That a page is a 404 or 400 is Chromium's own remark; whether it should be one is the test's matter.
        if not REFUSED_PAGE.match(message.text):
            self.complaints.append(f"console: {message.text}")

    def _note(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.complaints.append(f"request to elsewhere: {request.url}")


Open = Callable[..., Window]


# Not for the whole run: while Playwright is at work, Django takes this thread for an asynchronous one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def window(browser: Browser, live_brain: LiveBrain) -> Iterator[Open]:
    """Open a window, signed in where a name is given. At the end none of them has anything to complain about."""
    opened: list[Window] = []

    def open_window(
        username: str | None = None,
        *,
        width: int = 1280,
        height: int = 800,
        theme: str = "light",
        scripts: bool = True,
    ) -> Window:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            java_script_enabled=scripts,
        )
        window = Window(context, live_brain.url)
        opened.append(window)
        if username is not None:
            window.sign_in(username)
        return window

    yield open_window
    complaints = [complaint for window in opened for complaint in window.complaints]
    for window in opened:
        window.context.close()
    assert complaints == []
