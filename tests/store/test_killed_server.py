"""A real server whose workers are killed while agents save over MCP, people import from the shell, and somebody reads.

What was answered is there; what was not answered is there or not; nothing is half, doubled, or read as something else.
"""

import hashlib
import http.client
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.mcpapi.agent import ERAS, Agent
from tests.mcpapi.live import Live, live
from tests.server import PATIENCE_SECONDS, ROOT, environment

pytestmark = pytest.mark.server

Tried = Callable[[str, int], None]
WRITERS = 3
IMPORTED = ("one", "two", "three")
# What a client sees of a worker that dies under its call.
CUT_OFF = (OSError, http.client.HTTPException)


class Office:
    """Everybody who works while the workers of the server are killed, and what they were told."""

    def __init__(self, brain: Live, folder: Path) -> None:
        self.brain = brain
        self.folder = folder
        self.is_over = threading.Event()
        self.texts: dict[str, str] = {}
        self.winners: Counter[str] = Counter()
        self.contests = 0
        self.cut_off = 0
        self.reads = 0
        self.imports: dict[int, bool] = {}

    def agent(self, number: int) -> Agent:
        return self.brain.agent(self.brain.token("ada"), ERAS[number % 2])

    def insist(self, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The same call again and again, as the contract says, until it is answered."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = act()
            except CUT_OFF:
                self.cut_off += 1
            else:
                if not answer.get("error", {}).get("retryable"):
                    return answer
            time.sleep(0.02)
        raise AssertionError("a call was not answered")

    def write(self, number: int) -> None:
        """One entry of its own, saved again and again, and new ones beside it. Nobody else changes them."""
        agent, path = self.agent(number), f"Eng/w{number}.md"
        version, count = self.create(agent, path, f"{number}-0", "0\n"), 0
        while not self.is_over.is_set():
            count += 1
            text = f"{count}\n" * random.choice([1, 20, 2_000])
            answer = self.insist(
                lambda text=text, count=count, version=version: agent.update(  # type: ignore[misc]
                    action="update",
                    request_id=f"{number}-{count}",
                    path=path,
                    expected_version=version,
                    content=text,
                )
            )
            assert answer["changed"], answer
            version = answer["entry"]["version"]
            self.texts[path] = text
            if count % 3 == 0:
                self.create(agent, f"Eng/n{number}-{count}.md", f"{number}-n{count}", text)

    def create(self, agent: Agent, path: str, request: str, text: str) -> str:
        answer = self.insist(
            lambda: agent.update(
                action="create",
                request_id=request,
                folder_path="Eng",
                filename=path.rpartition("/")[2],
                type="note",
                title="T",
                content=text,
            )
        )
        self.texts[path] = text
        version: str = answer["entry"]["version"]
        return version

    def contend(self) -> None:
        """Two who update the same version at once."""
        agents = [self.agent(0), self.agent(1)]
        version = self.create(agents[0], "Eng/contested.md", "contested", "0\n")
        with ThreadPoolExecutor(2) as both:
            while not self.is_over.is_set():
                self.contests += 1

                def one(place: int, expected: str = version, round_: int = self.contests) -> dict[str, Any]:
                    return self.insist(
                        lambda: agents[place].update(
                            action="update",
                            request_id=f"contest-{round_}-{place}",
                            path="Eng/contested.md",
                            expected_version=expected,
                            content=f"{round_} by {place}\n",
                        )
                    )

                won = [answer for answer in both.map(one, (0, 1)) if "error" not in answer]
                self.winners[version] += len(won)
                assert won
                version = won[0]["entry"]["version"]
                self.texts["Eng/contested.md"] = self.insist(lambda: agents[0].read(path="Eng/contested.md"))[
                    "content"
                ]

    def read(self) -> None:
        """Everything there is, over and over: each text is the one its entry tells of, and none goes back."""
        agent, seen = self.agent(0), dict[str, int]()
        while not self.is_over.is_set():
            listed = self.insist(lambda: agent.browse(action="entries", folder_path="Eng", limit=20))
            for entry in listed["entries"]:
                found = self.insist(lambda entry=entry: agent.read(entry_id=entry["entry_id"]))  # type: ignore[misc]
                text: str = found["content"]
                assert hashlib.sha256(text.encode()).hexdigest() == found["entry"]["content_hash"]
                count = int(text.split(maxsplit=1)[0])
                assert count >= seen.get(entry["entry_id"], 0)
                seen[entry["entry_id"]] = count
                self.reads += 1

    def import_trees(self) -> None:
        """Imports from the shell; about half of them are killed."""
        source = self.folder / "tree"
        source.mkdir()
        for name in IMPORTED:
            (source / f"{name}.md").write_text(f"# {name}\n" * 500)
        number = 0
        while not self.is_over.is_set():
            number += 1
            command = subprocess.Popen(
                [sys.executable, "manage.py", "import_markdown", str(source), "--into", f"Imports/{number}"],
                cwd=ROOT,
                env=environment(self.brain.data_dir),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                command.wait(random.uniform(1, 8))
            except subprocess.TimeoutExpired:
                command.kill()
            self.imports[number] = command.wait(PATIENCE_SECONDS) == 0


def workers_of(brain: Live) -> list[int]:
    """The server's worker processes. Its first child keeps house."""
    master = brain.brain.process.pid
    children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    begun = {
        int(child): int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[19])
        for child in children
    }
    return sorted(begun, key=lambda pid: begun[pid])[1:]


def kill_workers(brain: Live, seconds: float) -> int:
    """SIGKILL one worker after the other, now and then all at once; how many."""
    kills = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(random.uniform(0.2, 1.5))
        workers = workers_of(brain)
        for worker in workers if kills % 5 == 4 else workers[:1]:
            os.kill(worker, signal.SIGKILL)
            kills += 1
    return kills


def entries_below(brain: Live, agent: Agent, folder: str) -> dict[str, str]:
    """Every entry there, with the hash of its text as it is read."""
    found: dict[str, str] = {}
    page: dict[str, Any] = {"next_cursor": ""}
    while page["next_cursor"] is not None:
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
        page = agent.browse(action="entries", folder_path=folder, recursive=True, limit=100, **cursor)
        for entry in page["entries"]:
            text = agent.read(entry_id=entry["entry_id"])["content"]
            found[entry["path"]] = hashlib.sha256(text.encode()).hexdigest()
    return found


def killed_for(seconds: float, folder: Path, tried: Tried) -> None:
    with live(folder / "data") as brain:
        brain.seed(
            [{"folder": "Eng"}, {"folder": "Imports"}, {"person": "ada", "role": "editor", "on": "Eng"}]
        )
        brain.manage("grant", "ada", "Imports", "reader")
        office = Office(brain, folder)
        brain.token("ada")
        with ThreadPoolExecutor() as everybody:
            at_work = [everybody.submit(office.write, number) for number in range(WRITERS)]
            at_work += [everybody.submit(act) for act in (office.contend, office.read, office.import_trees)]
            try:
                kills = kill_workers(brain, seconds)
            finally:
                office.is_over.set()
            for one in at_work:
                one.result(PATIENCE_SECONDS)
        brain.brain.wait_until_ready()
        agent = brain.agent(brain.token("ada"))
        saved = entries_below(brain, agent, "Eng")
        imported = entries_below(brain, agent, "Imports")
        checked = brain.manage("check_store")

    # Each acknowledged save is there, and nothing that nobody saved.
    assert saved == {path: hashlib.sha256(text.encode()).hexdigest() for path, text in office.texts.items()}
    assert set(office.winners.values()) == {1}
    for number, is_told in office.imports.items():
        parts = [path for path in imported if path.startswith(f"Imports/{number}/")]
        assert len(parts) in ({3} if is_told else {0, 3}), f"import {number}"
    assert "Everything agrees." in checked
    assert kills > 3
    assert office.cut_off > 0
    assert office.reads > 10
    tried("kills of a real server's workers", kills)
    tried("calls cut off by them, and repeated", office.cut_off)
    tried("acknowledged saves over MCP beside them", len(office.texts) + office.contests)


def test_a_real_server_whose_workers_are_killed_loses_doubles_and_tears_nothing(
    tmp_path: Path, tried: Tried
) -> None:
    killed_for(8, tmp_path, tried)


@pytest.mark.long(reason="the same for a minute")
def test_a_real_server_whose_workers_are_killed_for_a_minute_loses_nothing(
    tmp_path: Path, tried: Tried
) -> None:
    killed_for(60, tmp_path, tried)
