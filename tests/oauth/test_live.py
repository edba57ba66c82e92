"""The official MCP client, unmodified, and a person in a real browser, at a real server."""

import json
import secrets
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import AXE, RULES, browser
from tests.live import WORLD, LiveBrain
from tests.mcpapi.clients import FOLDER, modern_python
from tests.oauth.program import Program
from tests.server import RunningBrain, manage, running_brain
from tests.world import PASSWORD

__all__ = ["browser"]

pytestmark = [pytest.mark.browser, pytest.mark.clients, pytest.mark.server]

READ = {"action": "read", "path": "Engineering/Payments/Checkout/deployment.md"}
MAKE = {"action": "create_folder", "folder_path": "Engineering/Payments", "request_id": "r"}


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBrain]:
    """A server with OAuth on, and the people of the stories."""
    data_dir = tmp_path_factory.mktemp("oauth") / "data"
    with running_brain(data_dir, BRAIN_OAUTH="1") as server:
        brain = LiveBrain(server, data_dir)
        brain.seed(WORLD)
        yield brain


class Official:
    """The client as a process: it tells which address to open, and at the end what it saw."""

    def __init__(
        self, brain: RunningBrain, calls: list[tuple[str, dict[str, Any]]], scope: str | None = None
    ) -> None:
        command = [str(modern_python()), str(FOLDER / "python_oauth.py"), f"{brain.url}/mcp"]
        self.process = subprocess.Popen(
            [*command, scope] if scope else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(calls))
        self.process.stdin.close()

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        return line

    def seen(self) -> dict[str, Any]:
        seen: dict[str, Any] = json.loads(self.line())
        assert self.process.wait(60) == 0
        return seen


@pytest.fixture
def official(brain: LiveBrain) -> Iterator[Any]:
    """Start the client; ended with the test."""
    started: list[Official] = []

    def start(*calls: tuple[str, dict[str, Any]], scope: str | None = None) -> Official:
        started.append(Official(brain.server, list(calls), scope))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        for stream in (one.process.stdout, one.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture(params=[True, False], ids=["with scripts", "without scripts"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A window whose console has to stay silent."""
    context = browser.new_context(java_script_enabled=request.param)
    page = context.new_page()
    complaints: list[str] = []
    # The address too: a client's own little server has no icon to give, and may be gone by then.
    page.on("console", lambda message: complaints.append(f"{message.text} {message.location['url']}"))
    yield page
    context.close()
    assert [complaint for complaint in complaints if "favicon" not in complaint] == []


def sign_in(page: Page, username: str) -> None:
    page.fill("#username", username)
    page.fill("#password", PASSWORD)
    page.click("button[type=submit]")


def test_the_official_client_connects_reads_and_writes(brain: LiveBrain, official: Any, page: Page) -> None:
    name = secrets.token_hex(4)
    client = official(
        ("read_knowledgebase", READ), ("update_knowledgebase", {**MAKE, "name": name, "request_id": name})
    )
    page.goto(client.line())
    sign_in(page, "ada")
    assert "The official client" in page.inner_text("main")
    page.click("text=Let it in")
    page.wait_for_url("**/callback?**")

    seen = client.seen()
    assert seen["version"] == "2026-07-28"
    assert seen["scope"] == "knowledgebase:read knowledgebase:write"
    assert (seen["auth_method"], seen["has_refresh_token"]) == ("none", True)
    assert "update_knowledgebase" in seen["tools"]
    read, made = seen["results"]
    assert read["entry"]["title"] == "Deployment and rollback"
    assert made["folder"]["name"] == name


def test_a_client_that_may_only_read_steps_up_when_it_wants_to_write(
    brain: LiveBrain, official: Any, browser: Browser
) -> None:
    client = official(("update_knowledgebase", {**MAKE, "name": "Stepped up"}), scope="knowledgebase:read")
    context = browser.new_context()
    page = context.new_page()
    page.goto(client.line())
    sign_in(page, "ada")
    page.check("input[value=read]")
    page.click("text=Let it in")
    page.wait_for_url("**/callback?**")

    page.goto(client.line())
    page.check("input[value=write]")
    page.click("text=Let it in")
    page.wait_for_url("**/callback?**")

    (made,) = client.seen()["results"]
    context.close()
    assert made["folder"]["name"] == "Stepped up"


def test_a_token_of_the_header_works_as_before(brain: LiveBrain) -> None:
    token = manage(
        brain.data_dir, "create_token", "ada", "--name", "t", "--capability", "read"
    ).stdout.strip()

    run = subprocess.run(
        [str(modern_python()), str(FOLDER / "python_modern.py"), f"{brain.url}/mcp", token],
        input=json.dumps([("read_knowledgebase", READ)]),
        capture_output=True,
        text=True,
    )

    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["results"][0]["isError"] is False


def address(brain: LiveBrain) -> str:
    """Where a registered client sends its person."""
    body = json.dumps(
        {"client_name": "Claude Code", "redirect_uris": ["http://127.0.0.1:1/callback"]}
    ).encode()
    request = urllib.request.Request(
        f"{brain.url}/oauth/register/", body, {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request) as answer:
        client_id = json.load(answer)["client_id"]
    return brain.url + Program(client_id, "http://127.0.0.1:1/callback").address(resource=f"{brain.url}/mcp")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 320), ("dark", 320)])
def test_axe_finds_nothing_on_the_pages_that_ask_and_refuse(
    brain: LiveBrain, browser: Browser, theme: Any, width: int
) -> None:
    asked = address(brain)
    context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(asked)
    sign_in(page, "ada")
    found = {"asks": violations(page)}
    page.click("summary")
    page.check("text=Only in these folders")
    found["folders"] = violations(page)
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    page.click("text=Let it in")
    found["again"] = violations(page)
    page.goto(asked.replace("S256", "plain"))
    found["refuses"] = violations(page)
    context.close()

    assert found == {"asks": [], "folders": [], "again": [], "refuses": []}
    assert overflow <= 0


def violations(page: Page) -> list[str]:
    if page.evaluate("!window.axe"):
        page.evaluate(Path(AXE).read_text("utf-8"))
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    return [f"{one['id']}: {[node['target'] for node in one['nodes']]}" for one in found["violations"]]
