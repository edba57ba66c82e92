"""The Files pages: what somebody sees, and what they do not."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core.types import Role
from tests.web.conftest import Visit
from tests.world import World

FORM_TOKEN = re.compile(rb'value="[A-Za-z0-9]{64}"')
DEPLOY = "Engineering/Payments/Checkout/deployment.md"


@pytest.fixture(autouse=True)
def pages(world: World) -> None:
    world.entry(
        DEPLOY, "# Deploy\n\nFirst [the rest](../Billing%20team/plan.md).\n", title="Deploy", type="skill"
    )
    world.entry("Engineering/Billing team/plan.md", "Plan\n", title="The plan")
    world.folder("Engineering/Payments/Checkout/Rollbacks")
    world.person("root", is_admin=True)
    world.person("ada", role=Role.EDITOR, on="Engineering/Payments")
    world.person("priya", role=Role.READER, on="Engineering/Payments/Checkout")
    world.person("mallory")


def _text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def _links(page: str) -> list[str]:
    return re.findall(r'href="(/files/[^"?#]*)"', page)


def test_the_way_in_leads_to_the_files() -> None:
    assert Client().get("/")["Location"] == "/files/"


def test_an_entry_is_shown_with_all_that_is_known_of_it(world: World, visit: Visit) -> None:
    page = _text(visit("ada"), f"/files/{DEPLOY}")

    entry = world.entry("Engineering/Payments/other.md")
    assert '<h1 id="md-deploy">Deploy</h1>' in page
    assert page.count(">Deploy<") == 1
    assert '<a href="/files/Engineering/Payments/Billing%20team/plan.md"' in page
    for fact in ("Skill", "System", "just now", "Editor", "\xa0bytes, 3 lines", "deployment.md"):
        assert fact in page, fact
    assert entry.version not in page


def test_a_first_heading_that_is_not_the_title_is_shown(world: World, visit: Visit) -> None:
    world.entry("Engineering/Payments/a.md", "# Other words\n\ntext\n", title="A title")
    page = _text(visit("ada"), "/files/Engineering/Payments/a.md")

    assert "<h1>A title</h1>" in page
    assert '<h2 id="md-other-words">Other words</h2>' in page
    assert '<a href="#md-other-words">Other words</a>' in page


def test_the_source_is_shown_by_numbered_lines(visit: Visit) -> None:
    page = _text(visit("ada"), f"/files/{DEPLOY}?view=source")

    assert '<span id="L1" data-line="1"># Deploy\n</span><span id="L2" data-line="2">\n</span>' in page
    assert 'aria-current="page">Source' in page


def test_a_folder_lists_its_folders_and_entries(visit: Visit) -> None:
    page = _text(visit("ada"), "/files/Engineering/Payments/Checkout/")

    assert "/files/Engineering/Payments/Checkout/Rollbacks/" in _links(page)
    assert f"/files/{DEPLOY}" in _links(page)
    assert "Your access: <strong>Editor</strong>" in page


def test_folders_above_ones_own_are_labels_without_siblings(visit: Visit) -> None:
    priya = visit("priya")
    for address in ("/files/", "/files/Engineering/", "/files/Engineering/Payments/"):
        page = _text(priya, address)
        assert "You can open only what is listed here" in page
        assert "Billing" not in page
        assert "Your access" not in page
        assert 'class="label"' in page

    below = _links(_text(priya, f"/files/{DEPLOY}"))
    assert "/files/Engineering/Billing%20team/" not in below
    assert set(below) == {
        "/files/",
        "/files/Engineering/",
        "/files/Engineering/Payments/",
        "/files/Engineering/Payments/Checkout/",
        "/files/Engineering/Payments/Checkout/Rollbacks/",
        f"/files/{DEPLOY}",
        "/files/Engineering/Payments/Billing%20team/plan.md",  # as the text has it, whatever stands there
    }


def _seen(client: Client, address: str, caplog: pytest.LogCaptureFixture) -> tuple[object, ...]:
    caplog.clear()
    with (
        caplog.at_level("INFO"),
        CaptureQueriesContext(
            connection,
        ) as queries,
    ):
        answer = client.get(address)
    headers = {name: value for name, value in answer.items() if name != "Set-Cookie"}
    events = [(record.name, record.levelname) for record in caplog.records]
    return answer.status_code, headers, FORM_TOKEN.sub(b"", answer.content), len(queries), events


@pytest.mark.parametrize(
    ("hidden", "missing"),
    [
        ("Engineering/Billing%20team/plan.md", "Engineering/Billing%20team/nada.md"),
        ("Engineering/Billing%20team/plan.md", "Nowhere/at all/nothing.md"),
        ("Engineering/Billing%20team/plan.md?view=source", "Engineering/Billing%20team/nada.md?view=source"),
        ("engineering/billing%20TEAM/PLAN.md", "engineering/billing%20TEAM/NADA.md"),
        ("Engineering/Billing%20team/", "Engineering/Nothing/"),
        ("Engineering/Billing%20team/?entries=x", "Engineering/Nothing/?entries=x"),
    ],
)
def test_hidden_is_missing(visit: Visit, caplog: pytest.LogCaptureFixture, hidden: str, missing: str) -> None:
    priya = visit("priya")
    priya.get("/files/")

    seen = _seen(priya, f"/files/{hidden}", caplog)

    assert seen[0] == 404
    assert seen == _seen(priya, f"/files/{missing}", caplog)


@pytest.mark.parametrize(
    "address",
    [
        "a.txt/",
        "CON.md",
        "a/../b.md",
        "a//b.md",
        "-a.md",
        "%E4%BD%A0.md",
        "a%0Ab.md",
        "a" * 65 + ".md",
        ".md",
        "x/" * 600,
    ],
)
def test_what_no_entry_is_called_is_missing_as_well(visit: Visit, address: str) -> None:
    ada = visit("ada")
    answer = ada.get(f"/files/{address}")
    if answer.status_code == 302:
        answer = ada.get(answer["Location"])

    assert answer.status_code == 404
    assert FORM_TOKEN.sub(b"", answer.content) == FORM_TOKEN.sub(b"", ada.get("/files/nothing.md").content)


def test_an_unknown_view_is_missing(visit: Visit) -> None:
    assert visit("ada").get(f"/files/{DEPLOY}?view=nonsense").status_code == 404


def test_who_can_see_it_is_led_to_the_stored_spelling(visit: Visit) -> None:
    ada = visit("ada")
    for asked, stored in [
        (f"/files/{DEPLOY.upper()}?view=source", f"/files/{DEPLOY}?view=source"),
        ("/files/engineering/payments/", "/files/Engineering/Payments/"),
        ("/files/Engineering/Payments", "/files/Engineering/Payments/"),
    ]:
        answer = ada.get(asked)
        assert (answer.status_code, answer["Location"]) == (302, stored)


def test_names_with_blanks_have_pages(visit: Visit) -> None:
    page = _text(visit("root"), "/files/Engineering/Billing%20team/plan.md")

    assert "<h1>The plan</h1>" in page
    assert "/files/Engineering/Billing%20team/" in _links(page)


def test_an_entry_that_was_just_saved_is_there_at_once(world: World, visit: Visit) -> None:
    ada = visit("ada")
    assert ada.get("/files/Engineering/Payments/new.md").status_code == 404

    world.entry("Engineering/Payments/new.md", "Just now.\n")

    assert "Just now." in _text(ada, "/files/Engineering/Payments/new.md")


def test_a_revoked_reader_is_out_at_the_next_page(world: World, visit: Visit) -> None:
    priya = visit("priya")
    assert priya.get(f"/files/{DEPLOY}").status_code == 200

    world.revoke("priya", "Engineering/Payments/Checkout")

    assert priya.get(f"/files/{DEPLOY}").status_code == 404
    assert "No folder is shared with you yet" in _text(priya, "/files/")


def test_a_long_list_goes_on_by_a_link(world: World, visit: Visit) -> None:
    for number in range(103):
        world.entry(f"Engineering/Payments/Long/n{number:03}.md")
    ada = visit("ada")
    first = _text(ada, "/files/Engineering/Payments/Long/")
    more = re.search(r'href="(\?entries=[^"]+)"', first)
    assert more is not None

    second = _text(ada, f"/files/Engineering/Payments/Long/{more[1]}")

    assert re.findall(r"Long/(n\d+)\.md", second) == ["n100", "n101", "n102"]
    assert len(set(re.findall(r"Long/(n\d+)\.md", first))) == 100
    assert "Back to the beginning" in second
    assert visit("root").get(f"/files/Engineering/Payments/Long/{more[1]}").status_code == 400


def test_the_tree_reaches_a_folder_beyond_what_a_level_shows(world: World, visit: Visit) -> None:
    for number in range(103):
        world.folder(f"Engineering/Payments/Many/f{number:03}")
    world.folder("Engineering/Payments/Many/f102/deep")
    ada = visit("ada")

    tree = _text(ada, "/files/Engineering/Payments/Many/f102/deep/").partition("<main")[0]

    names = re.findall(r"Many/(f\d+)/\"", tree)
    assert names == [f"f{number:03}" for number in range(100)] + ["f102"]
    assert 'Many/f102/deep/" aria-current="page"' in tree
    rest = re.search(r'href="(/files/Engineering/Payments/Many/\?folders=[^"]+)"', tree)
    assert rest is not None
    more = _text(ada, rest[1])
    assert "f101" in more.partition("<main")[2]
    assert "f099" not in more.partition("<main")[2]


def test_empty_places_say_what_to_do(world: World, visit: Visit) -> None:
    assert "No folder is shared with you yet" in _text(visit("mallory"), "/files/")
    assert "nothing in this folder yet" in _text(
        visit("ada"), "/files/Engineering/Payments/Checkout/Rollbacks/"
    )


def test_an_empty_organization_says_how_to_connect_an_agent(db: None, world: World, visit: Visit) -> None:
    from kb.services.browse_folders import browse_folders
    from kb.services.reveal_folder import reveal_folder

    assert browse_folders(world.system).items, "this story needs a tree to leave out"
    root = reveal_folder(world.system)[0]
    empty = type(root)(
        folder=root.folder, children=type(root.children)(items=[], next_cursor=None), beyond=None
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("web.files.reveal_folder", lambda *_: [empty])
        page = _text(visit("root"), "/files/")

    assert "Nothing is here yet" in page
    assert "claude mcp add --transport http brain http://127.0.0.1:8000/mcp" in page


def test_an_entry_too_large_to_lay_out_is_shown_as_its_source(world: World, visit: Visit) -> None:
    world.entry("Engineering/Payments/large.md", "One line of it.\n" * 70_000)
    ada = visit("ada")
    page = _text(ada, "/files/Engineering/Payments/large.md")

    assert "too large to be laid out" in page
    assert "Lines 1 to 2000 of 70000" in page
    assert page.count("One line of it.") == 2_000
    last = _text(ada, "/files/Engineering/Payments/large.md?view=source&from=69000")
    assert 'id="L70000"' in last
    assert "Lines after" not in last


def test_an_entry_that_cannot_be_laid_out_is_shown_as_its_source(
    world: World, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.entry("Engineering/Payments/hostile.md", "<script>harm()</script>\n")
    monkeypatch.setattr("kb.render_process.the_process.render", lambda *_: None)

    page = _text(visit("ada"), "/files/Engineering/Payments/hostile.md")

    assert "could not be laid out" in page
    assert "&lt;script&gt;harm()&lt;/script&gt;" in page


def test_an_empty_entry_says_so(world: World, visit: Visit) -> None:
    world.entry("Engineering/Payments/empty.md", "")

    assert "This entry is empty." in _text(visit("ada"), "/files/Engineering/Payments/empty.md")
    assert "This entry is empty." in _text(visit("ada"), "/files/Engineering/Payments/empty.md?view=source")


@pytest.mark.parametrize(
    "address", ["/files/", f"/files/{DEPLOY}", f"/files/{DEPLOY}?view=source", "/files/Engineering/Payments/"]
)
def test_a_page_takes_few_queries_however_deep(visit: Visit, address: str) -> None:
    root = visit("root")
    with CaptureQueriesContext(connection) as queries:
        root.get(address)

    assert len(queries) <= 4, [query["sql"][:80] for query in queries]
