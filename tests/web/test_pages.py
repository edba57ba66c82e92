"""What holds for every page: the policy, escaping, errors that tell enough and no more."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from access.models import Identity
from brain import refusals
from core.errors import BrainError, Forbidden, InternalError, InvalidArgument, NotFound, StorageUnavailable
from core.types import EntryLocator, Role
from kb.services.update_entry import update_entry
from tests.rendering.payloads import SCRIPT
from tests.web.conftest import Visit
from tests.world import World

MARKUP = f"\"><script>{SCRIPT}</script><img src=x onerror={SCRIPT}>'{{{{ 70001|add:70001 }}}}"
TEMPLATES = sorted(Path(settings.BASE_DIR, "templates").rglob("*.html"))


class _Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def _elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    return _Page(page).elements


@pytest.fixture
def hostile(world: World, visit: Visit) -> Client:
    """Everything that somebody can name holds markup."""
    world.person("ada", role=Role.EDITOR, on="Engineering")
    Identity.objects.update(name=MARKUP)
    entry = world.entry("Engineering/a.md", "text\n", title=MARKUP)
    update_entry(
        world.system,
        None,
        EntryLocator(entry_id=entry.entry_id),
        expected_version=entry.version,
        content=f"# {MARKUP}\n\n## {MARKUP}\n",
        description=MARKUP,
        tags=[MARKUP[:64]],
    )
    return visit("ada")


@pytest.mark.parametrize(
    "address",
    ["/files/", "/files/Engineering/", "/files/Engineering/a.md", "/files/Engineering/a.md?view=source"],
)
def test_markup_in_any_field_is_text(hostile: Client, address: str) -> None:
    page = hostile.get(address).content.decode()

    elements = _elements(page)
    assert {tag for tag, _ in elements} & {"script", "style", "iframe", "object", "base"} == set()
    images = {attributes.get("src") for tag, attributes in elements if tag == "img"}
    assert images == {"/static/icon.svg"}
    handlers = [
        name for _, attributes in elements for name in attributes if name.startswith("on") or name == "style"
    ]
    assert handlers == []
    assert "140002" not in page, "a template ran a field"


@pytest.mark.parametrize(
    "address", ["/login/", "/files/", "/files/nothing.md", "/nowhere", "/static/nothing.css"]
)
def test_the_policy_holds_on_every_page_without_exception(world: World, visit: Visit, address: str) -> None:
    world.person("ada")
    answer = visit("ada").get(address, follow=True)

    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self'" in policy
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cache-Control"].startswith(("no-store", "max-age=0, no-cache, no-store"))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_needs_an_exception_from_the_policy(template: Path) -> None:
    text = template.read_text("utf-8")

    assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert not re.search(r"https?://", text), "a page loads and links nothing outside"
    assert "|safe" not in text
    assert "autoescape" not in text


def test_the_stylesheet_loads_nothing() -> None:
    assert "url(" not in Path(settings.BASE_DIR, "static", "brain.css").read_text("utf-8")
    assert "@import" not in Path(settings.BASE_DIR, "static", "brain.css").read_text("utf-8")


def _answer(error: BrainError, request: HttpRequest | None = None) -> tuple[int, str]:
    answer = refusals.answer(request or RequestFactory().get("/files/a.md"), error)
    return answer.status_code, answer.content.decode()


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (NotFound(), 404, "Not found, or not shared with you"),
        (Forbidden(), 403, "Not allowed"),
        (
            InvalidArgument("cursor", "This cursor belongs to another query."),
            400,
            "This cursor belongs to another query.",
        ),
        (StorageUnavailable(), 503, "What was saved is safe"),
        (InternalError(reference="f00"), 500, "f00"),
    ],
)
def test_a_refusal_is_a_page_that_says_what_to_do(error: BrainError, status: int, words: str) -> None:
    assert (_answer(error)[0], words in _answer(error)[1]) == (status, True)


@pytest.mark.django_db
@pytest.mark.parametrize("error", [StorageUnavailable(), InternalError(reference="f00")])
def test_the_page_about_a_broken_server_asks_no_database(error: BrainError, client: Client) -> None:
    request = RequestFactory().get("/files/a.md")
    request.session = client.session
    AuthenticationMiddleware(lambda _: None).process_request(request)  # type: ignore[arg-type]
    with CaptureQueriesContext(connection) as queries:
        _answer(error, request)

    assert len(queries) == 0


def test_an_address_that_does_not_exist_is_missing_for_everybody(world: World, visit: Visit) -> None:
    world.person("ada")
    for client in (Client(), visit("ada")):
        answer = client.get("/nowhere")
        assert answer.status_code == 404
        assert b"Not found, or not shared with you" in answer.content
