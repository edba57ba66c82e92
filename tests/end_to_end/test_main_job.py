"""The main job, as docs/tutorial/first-hour.md leads through it: a handbook that an agent keeps and people read."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.live import Visitor
from tests.mcpapi.clients import inspect, python_handshake, python_modern
from tests.server import ROOT, RunningBrain, manage, running_brain

pytestmark = [pytest.mark.server, pytest.mark.clients]

HANDBOOK = ROOT / "tests" / "data" / "handbook"
PAGE = "Handbook/Engineering/Incidents.md"
ADDRESS = "/files/Handbook/Engineering/Incidents.md"
PASSWORD = "tea-and-coffee-and-cups"


@dataclass
class Shop:
    """A server that was just started for the first time, and the shell beside it."""

    brain: RunningBrain
    data_dir: Path

    @property
    def mcp(self) -> str:
        return f"{self.brain.url}/mcp"

    def manage(self, *arguments: str, stdin: str = "") -> str:
        done = manage(self.data_dir, *arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def inspector(self, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """What the Inspector's command line is answered."""
        called: subprocess.CompletedProcess[str] = inspect(
            "modern",
            self.mcp,
            token,
            "--method",
            "tools/call",
            "--tool-name",
            tool,
            "--tool-args-json",
            json.dumps(arguments),
        )
        assert called.returncode in (0, 5), called.stderr
        answer: dict[str, Any] = json.loads(called.stdout)["result"]["structuredContent"]
        return answer


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    data_dir = tmp_path_factory.mktemp("first-hour") / "data"
    with running_brain(data_dir) as brain:
        yield Shop(brain, data_dir)


def test_an_agent_keeps_a_handbook_and_people_read_it_the_moment_it_is_saved(shop: Shop) -> None:
    # Import: first a look, then all of it.
    looked = shop.manage("import_markdown", str(HANDBOOK), "--into", "Handbook", "--dry-run")
    assert looked.startswith("Would import 16 entries")
    admin = Visitor(shop.brain.url)
    assert admin.sign_in("admin", shop.brain.password).url.endswith("/files/")
    assert admin.get(ADDRESS).status == 404
    shop.manage("import_markdown", str(HANDBOOK), "--into", "Handbook")
    assert admin.get(ADDRESS).status == 200

    # An account for the agent, narrowed to the handbook; a colleague who may read one part of it.
    shop.manage("create_service_account", "handbook-bot", "--name", "Handbook bot")
    shop.manage("grant", "handbook-bot", "Handbook", "editor")
    token = shop.manage(
        "create_token",
        "handbook-bot",
        "--name",
        "first-hour",
        "--capability",
        "write",
        "--scope",
        "Handbook=editor",
    )
    shop.manage("create_user", "priya", "--password-stdin", stdin=PASSWORD + "\n")
    shop.manage("grant", "priya", "Handbook/Engineering", "reader")

    # The official client looks around and reads.
    listed, read = python_handshake(
        shop.mcp,
        token,
        [
            ("browse_knowledgebase", {"action": "entries", "folder_path": "Handbook", "recursive": True}),
            ("read_knowledgebase", {"action": "read", "path": PAGE}),
        ],
    ).answers
    pages = {entry["path"].removeprefix("Handbook/") for entry in listed.structured["entries"]}
    # Beside them stands the sample knowledge of the first start.
    assert pages >= {str(path.relative_to(HANDBOOK)) for path in HANDBOOK.rglob("*.md")}
    assert read.structured["content"] == (HANDBOOK / "Engineering" / "Incidents.md").read_text("utf-8")
    titles = {entry["path"]: entry["title"] for entry in listed.structured["entries"]}
    assert titles[PAGE] == "Incidents"
    before = admin.get(ADDRESS)
    assert "Every incident gets a written review." not in before.text

    # It replaces the page with the version it read.
    text = read.structured["content"] + "\nEvery incident gets a written review.\n"
    (changed,) = python_modern(
        shop.mcp,
        token,
        [
            (
                "update_knowledgebase",
                {
                    "action": "update",
                    "request_id": "written-review-1",
                    "path": PAGE,
                    "expected_version": read.structured["version"],
                    "content": text,
                    "reason": "Root asked for it.",
                },
            )
        ],
    ).answers
    assert changed.structured["changed"] is True
    assert changed.structured["entry"]["updated_by"]["name"] == "Handbook bot"

    # The next look of anybody who may read it shows the change: both in the browser, and through the Inspector.
    assert "Every incident gets a written review." in admin.get(ADDRESS).text
    priya = Visitor(shop.brain.url)
    assert priya.sign_in("priya", PASSWORD).url.endswith("/files/")
    page = priya.get(ADDRESS)
    assert page.status == 200
    assert "Every incident gets a written review." in page.text
    assert "Handbook bot" in page.text
    again = shop.inspector(token, "read_knowledgebase", action="read", path=PAGE)
    assert again["content"] == text
    assert again["version"] == changed.structured["entry"]["version"]

    # Who may not, does not: Priya the rest of the handbook, the agent the rest of Brain.
    assert priya.get("/files/Handbook/People/Expenses.md").status == 404
    hidden, missing = (
        shop.inspector(token, "browse_knowledgebase", action="entries", folder_path=folder)
        for folder in ("Engineering", "Nowhere")
    )
    assert hidden == missing
    assert hidden["error"]["code"] == "NOT_FOUND"

    # A second writer of the version that was read first is told, and overwrites nothing.
    late = shop.inspector(
        token,
        "update_knowledgebase",
        action="update",
        request_id="late-1",
        path=PAGE,
        expected_version=read.structured["version"],
        content="# Nothing\n",
    )
    assert late["error"]["code"] == "VERSION_CONFLICT"
    assert "Every incident gets a written review." in admin.get(ADDRESS).text

    # Withdrawn, the token ends with its next call.
    shop.manage("revoke_token", "first-hour")
    refused = inspect("modern", shop.mcp, token, "--method", "tools/list")
    assert refused.returncode != 0
    assert "Incidents" not in refused.stdout
