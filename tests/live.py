"""A real server with people, folders and entries in it, shared by the tests of one run.

Import the fixture where it is wanted: ``from tests.live import live_brain``. A test that changes something makes a
folder and people of its own with ``seed``, since the world below is everybody's.
"""

import http.cookiejar
import json
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.server import PATIENCE_SECONDS, ROOT, RunningBrain, environment, running_brain
from tests.world import PASSWORD

SEED = "import django; django.setup(); from tests.seed import main; main()"
CSRF_FIELD = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')

# Ada edits Payments, Priya reads Checkout below it, Bo edits Billing, Mallory has nothing, Root administers.
WORLD: list[dict[str, Any]] = [
    {"folder": "Engineering/Payments/Checkout/Rollbacks"},
    {"folder": "Engineering/Payments/Empty"},
    {"folder": "Engineering/Billing"},
    {"person": "root", "name": "Root", "is_admin": True},
    {"person": "ada", "name": "Ada", "role": "editor", "on": "Engineering/Payments"},
    {"person": "priya", "name": "Priya", "role": "reader", "on": "Engineering/Payments/Checkout"},
    {"person": "bo", "name": "Bo", "role": "editor", "on": "Engineering/Billing"},
    {"person": "mallory", "name": "Mallory"},
    {"service_account": "deploy-bot", "role": "editor", "on": "Engineering/Payments/Checkout"},
    {
        "entry": "Engineering/Payments/Checkout/deployment.md",
        "title": "Deployment and rollback",
        "type": "skill",
        "by": "deploy-bot",
        "description": "How the checkout service gets to production, and back.",
        "tags": ["deployment", "checkout"],
        "content": (ROOT / "tests" / "browser" / "deployment.md").read_text("utf-8"),
    },
    {
        "entry": "Engineering/Payments/Checkout/design doc.md",
        "title": "Why checkout is a service",
        "type": "source",
        "by": "ada",
        "content": "Because it has to be up when the shop is not.\n",
    },
    {"entry": "Engineering/Payments/Checkout/empty.md", "title": "Nothing yet", "by": "ada"},
    {
        "entry": "Engineering/Billing/invoices.md",
        "title": "Invoices",
        "content": "# Invoices\n\nSent on the first of a month.\n",
        "by": "bo",
    },
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a browser without JavaScript gets."""

    status: int
    url: str
    headers: dict[str, str]
    text: str


class Visitor:
    """Somebody with a cookie jar; follows redirects."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))

    def get(self, path: str) -> Answer:
        return self._open(urllib.request.Request(self._url + path))

    def post(self, path: str, fields: dict[str, str], *, form_at: str) -> Answer:
        """Send a form that stands on the page ``form_at``."""
        token = CSRF_FIELD.search(self.get(form_at).text)
        assert token is not None
        body = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token[1]}).encode()
        headers = {"Referer": self._url + form_at}
        return self._open(urllib.request.Request(self._url + path, body, headers))

    def sign_in(self, username: str, password: str = PASSWORD) -> Answer:
        fields = {"username": username, "password": password}
        return self.post("/login/", fields, form_at="/login/")

    def _open(self, request: urllib.request.Request) -> Answer:
        try:
            response = self._opener.open(request, timeout=PATIENCE_SECONDS)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return Answer(
                response.status, response.url, dict(response.headers), response.read().decode("utf-8")
            )


class LiveBrain:
    """The server, what was put into it, and ways to visit it."""

    def __init__(self, server: RunningBrain, data_dir: Path) -> None:
        self.server = server
        self.data_dir = data_dir
        self.url = server.url

    def seed(self, steps: list[dict[str, Any]]) -> None:
        """Make people, folders and entries: see tests/seed.py."""
        done = subprocess.run(
            [sys.executable, "-c", SEED],
            cwd=ROOT,
            env=environment(self.data_dir, DJANGO_SETTINGS_MODULE="brain.settings"),
            input=json.dumps(steps),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr

    def visitor(self, username: str | None = None) -> Visitor:
        """Somebody at the pages, signed in where a name is given."""
        visitor = Visitor(self.url)
        if username is not None:
            assert visitor.sign_in(username).url == f"{self.url}/files/"
        return visitor


@pytest.fixture(scope="session")
def live_brain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBrain]:
    """A ready server holding ``WORLD``."""
    data_dir = tmp_path_factory.mktemp("live") / "data"
    with running_brain(data_dir) as server:
        brain = LiveBrain(server, data_dir)
        brain.seed(WORLD)
        yield brain
