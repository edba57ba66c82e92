"""The search page: what it finds, what it says where it finds nothing, and what it tells nobody."""

import html
import re
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core import limits
from core.types import EntryLocator, Role
from kb.services.update_entry import update_entry
from tests.web.conftest import Visit
from tests.web.test_files import FORM_TOKEN, _seen
from tests.world import World

DEPLOY = "Engineering/Payments/Checkout/deployment.md"
TEXT = """# Deploy

Ask first.

## Rollback

Verify the service health check before you go on.

## Rollback

A Health Check fails: [a.b(c)*].
"""


@pytest.fixture(autouse=True)
def pages(world: World) -> None:
    world.entry(DEPLOY, TEXT, title="Deploy & roll back", type="skill")
    world.entry("Engineering/Billing/plan.md", "The health check of Billing.\n", title="The plan")
    world.entry("Engineering/Payments/plain.md", "no heading above: health check\n", title="Plain")
    world.person("root", is_admin=True)
    world.person("ada", role=Role.EDITOR, on="Engineering/Payments")
    world.person("priya", role=Role.READER, on="Engineering/Payments/Checkout")
    world.person("mallory")


def _page(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def _found(page: str) -> list[str]:
    return re.findall(r'<h3><a href="/files/([^"]+)">', page)


def _next(page: str) -> str:
    (address,) = re.findall(r'class="button" href="(/search/\?[^"]+)"', page)
    return html.unescape(address)


def test_a_hit_shows_path_title_heading_line_and_the_words_marked(visit: Visit) -> None:
    page = _page(visit("priya"), "/search/?q=health+check")

    assert _found(page) == [DEPLOY]
    assert "1 entry in 1 folder<" in page
    assert ">Deploy &amp; roll back</a>" in page
    where = re.sub(r"<[^>]+>", "", page.partition('<p class="where">')[2].partition("</p>")[0])
    assert " ".join(where.split()) == "Engineering › Payments › Checkout › deployment.md"
    assert "Verify the service <mark>health check</mark> before you go on." in page
    assert "A <mark>Health Check</mark> fails: [a.b(c)*]." in page
    assert f'<a href="/files/{DEPLOY}?line=7">Rollback</a>' in page
    assert f'<a href="/files/{DEPLOY}?view=source&amp;line=11">line 11</a>' in page


def test_title_filename_and_description_are_marked_where_they_match(world: World, visit: Visit) -> None:
    entry = world.entry("Engineering/Payments/needle notes.md", "other\n", title="On Needles")
    update_entry(
        world.system,
        None,
        EntryLocator(entry_id=entry.entry_id),
        expected_version=entry.version,
        description="First line.\nAll about the needle.\nLast line.",
    )

    page = _page(visit("ada"), "/search/?q=needle")

    assert ">On <mark>Needle</mark>s</a>" in page
    assert "<mark>needle</mark> notes.md" in page
    assert '<p class="description">All about the <mark>needle</mark>.</p>' in page


@pytest.mark.parametrize("line", [7, 11])
def test_a_heading_leads_to_itself_even_where_two_are_called_the_same(visit: Visit, line: int) -> None:
    answer = visit("priya").get(f"/files/{DEPLOY}?line={line}")

    anchor = {7: "md-rollback", 11: "md-rollback-1"}[line]
    assert (answer.status_code, answer["Location"]) == (302, f"/files/{DEPLOY}#{anchor}")


def test_a_line_leads_to_itself_in_the_source(world: World, visit: Visit) -> None:
    world.entry("Engineering/Payments/long.md", "a line\n" * 5_000)
    ada = visit("ada")

    assert ada.get(f"/files/{DEPLOY}?view=source&line=7")["Location"] == f"/files/{DEPLOY}?view=source#L7"
    far = ada.get("/files/Engineering/Payments/long.md?view=source&line=4321")["Location"]
    assert far == "/files/Engineering/Payments/long.md?view=source&from=4321#L4321"
    assert 'id="L4321"' in _page(ada, far)


def test_a_line_of_what_cannot_be_laid_out_is_in_the_source(world: World, visit: Visit) -> None:
    path = "Engineering/Payments/large.md"
    world.entry(path, "# Head\n\n" + "One line of it.\n" * 70_000)

    location = visit("ada").get(f"/files/{path}?line=69000")["Location"]

    assert location == f"/files/{path}?view=source&from=69000#L69000"


@pytest.mark.parametrize("line", ["0", "-1", "12", "x", "", "9" * 4_000, "%C2%B2"])
def test_what_is_no_line_of_the_entry_is_passed_over(visit: Visit, line: str) -> None:
    assert "Ask first." in _page(visit("priya"), f"/files/{DEPLOY}?line={line}")


def test_where_no_heading_is_above_the_line_itself_is_the_link(visit: Visit) -> None:
    page = _page(visit("ada"), "/search/?q=no+heading")

    assert re.findall(r'class="hit-place">(.*?)</p>', page) == [
        '<a href="/files/Engineering/Payments/plain.md?view=source&amp;line=1">line 1</a>'
    ]


def test_headings_are_left_out_where_finding_them_takes_too_long(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.services.search_entries.HEADINGS_SECONDS", -1)

    page = _page(visit("priya"), "/search/?q=health+check")

    assert _found(page) == [DEPLOY]
    assert "?line=" not in page.replace("view=source&amp;line=", "")


def test_only_what_somebody_may_read_is_found_and_counted(visit: Visit) -> None:
    seen = {
        name: _page(visit(name), "/search/?q=health+check") for name in ("root", "ada", "priya", "mallory")
    }

    assert {name: len(_found(page)) for name, page in seen.items()} == {
        "root": 3,
        "ada": 2,
        "priya": 1,
        "mallory": 0,
    }
    assert "3 entries in 3 folders" in seen["root"]
    assert "Billing" not in seen["ada"] + seen["priya"] + seen["mallory"]


@pytest.mark.parametrize(
    ("hidden", "missing"),
    [("Engineering/Billing", "Engineering/Nothing"), ("engineering/billing/", "Nowhere"), ("People", "CON")],
)
@pytest.mark.parametrize("query", ["health", ""])
def test_a_hidden_folder_is_a_missing_one(
    visit: Visit, caplog: pytest.LogCaptureFixture, hidden: str, missing: str, query: str
) -> None:
    priya = visit("priya")
    priya.get("/search/")

    seen = _seen(priya, f"/search/?q={query}&folder={hidden}", caplog)

    assert seen[0] == 404
    assert seen[:3] == _seen(priya, f"/search/?q={query}&folder={missing}", caplog)[:3]
    if missing != "CON":  # a name that no folder can have is not looked up, whoever asks
        assert seen == _seen(priya, f"/search/?q={query}&folder={missing}", caplog)


def test_entries_elsewhere_change_nothing_for_who_may_not_read_them(world: World, visit: Visit) -> None:
    priya = visit("priya")
    before = FORM_TOKEN.sub(b"", priya.get("/search/?q=health").content)

    for number in range(60):
        world.entry(f"Engineering/Billing/more{number}.md", "health\n")

    assert FORM_TOKEN.sub(b"", priya.get("/search/?q=health").content) == before


def test_folder_type_tags_and_case_narrow_what_is_found(world: World, visit: Visit) -> None:
    entry = world.entry("Engineering/Payments/tagged.md", "Health\n", title="t", type="fact")
    update_entry(
        world.system,
        None,
        EntryLocator(entry_id=entry.entry_id),
        expected_version=entry.version,
        tags=["night watch", "ops"],
    )
    root = visit("root")

    def found(rest: str) -> set[str]:
        return {path.rpartition("/")[2] for path in _found(_page(root, f"/search/?q=health{rest}"))}

    assert found("") == {"deployment.md", "plan.md", "plain.md", "tagged.md"}
    assert found("&folder=Engineering/Payments") == {"deployment.md", "plain.md", "tagged.md"}
    assert found("&folder=/engineering/payments/") == {"deployment.md", "plain.md", "tagged.md"}
    assert found("&type=fact") == {"tagged.md"}
    assert found("&tags=ops,+night+watch") == {"tagged.md"}
    assert found("&tags=ops&tags=night+watch") == {"tagged.md"}
    assert found("&tags=ops,other") == set()
    assert found("&case=1") == {"deployment.md", "plan.md", "plain.md"}


def test_the_form_holds_what_was_asked(visit: Visit) -> None:
    page = _page(
        visit("ada"), "/search/?q=a%22%3Cb%3E&folder=engineering/payments&type=note&tags=one,+two&case=1"
    )

    assert 'value="a&quot;&lt;b&gt;"' in page
    assert '<option value="Engineering/Payments" selected>' in page
    assert '<option value="note" selected>' in page
    assert 'value="one, two"' in page
    assert 'value="1" checked' in page


def test_the_form_offers_the_way_to_the_folder_and_the_folders_in_it(visit: Visit) -> None:
    def offered(folder: str) -> list[str]:
        return re.findall(r'<option value="([^"]*/?[^"]*)"', _page(visit("ada"), f"/search/?folder={folder}"))

    assert offered("")[:2] == ["", "Engineering"]
    assert offered("Engineering/Payments")[:4] == [
        "",
        "Engineering",
        "Engineering/Payments",
        "Engineering/Payments/Checkout",
    ]
    assert "Engineering/Billing" not in offered("Engineering")


def test_an_empty_query_asks_for_one(visit: Visit) -> None:
    for address in ("/search/", "/search/?q=", "/search/?q=+%20+", "/search/?cursor=nonsense"):
        page = _page(visit("ada"), address)
        assert "Finds a text exactly as you type it" in page
        assert "autofocus" in page


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("q=" + "x" * 257, "At most 256 characters."),
        ("q=a%00b", "There is a control character"),
        ("q=a%0Ab", "There is a control character or line break"),
        ("q=a&type=nonsense", "The type is one of: skill, note, fact, source."),
        ("q=a&tags=one,one", "A tag stands here twice."),
        ("q=a&tags=" + "t" * 65, "At most 64 characters."),
        ("q=a&tags=" + ",".join(map(str, range(51))), "At most 50 tags."),
    ],
)
def test_what_cannot_be_looked_for_is_said_beside_the_field(visit: Visit, given: str, words: str) -> None:
    page = _page(visit("ada"), f"/search/?{given}", status=400)

    assert words in page
    assert 'aria-invalid="true"' in page
    assert not _found(page)


def test_the_longest_query_is_looked_for(world: World, visit: Visit) -> None:
    world.entry("Engineering/Payments/wide.md", "y" * limits.QUERY_MAX_CHARACTERS, title="t")

    assert len(_found(_page(visit("ada"), "/search/?q=" + "y" * limits.QUERY_MAX_CHARACTERS))) == 1


@pytest.mark.parametrize("query", ["[a.b(c)*]", "a.b(c)*", ".b(", "*]."])
def test_special_characters_mean_themselves(visit: Visit, query: str) -> None:
    page = _page(visit("priya"), f"/search/?q={quote(query)}")

    assert _found(page) == [DEPLOY]
    assert f"<mark>{query}</mark>" in page
    assert not _found(_page(visit("priya"), "/search/?q=h.alth"))


def test_nothing_found_says_what_to_try(visit: Visit) -> None:
    page = _page(visit("priya"), "/search/?q=healthy+%3Cb%3Echeck&folder=Engineering/Payments&case=1")

    assert "Nothing that you can read holds “healthy &lt;b&gt;check” there" in page
    offered = [html.unescape(address) for address in re.findall(r'href="(/search/\?q=[^"]+)"', page)]
    assert offered == [
        "/search/?q=healthy&folder=Engineering%2FPayments&case=1",
        "/search/?q=%3Cb%3Echeck&folder=Engineering%2FPayments&case=1",
        "/search/?q=healthy+%3Cb%3Echeck",
    ]


def test_a_long_list_goes_on_under_more(world: World, visit: Visit) -> None:
    for number in range(53):
        world.entry(f"Engineering/Payments/Long/n{number:02}.md", "needle\n")
    ada = visit("ada")
    first = _page(ada, "/search/?q=needle&folder=Engineering/Payments")
    assert "The first 50 entries" in first

    second = _page(ada, _next(first))

    assert [path[-6:-3] for path in _found(second)] == ["n50", "n51", "n52"]
    assert "3 further entries" in second
    assert not set(_found(first)) & set(_found(second))
    assert 'href="/search/?q=needle&amp;folder=Engineering%2FPayments">Back to the beginning' in second


def test_a_cursor_of_another_search_begins_again_and_says_so(world: World, visit: Visit) -> None:
    for number in range(53):
        world.entry(f"Engineering/Payments/Long/n{number:02}.md", "needle\n")
    own = _next(_page(visit("ada"), "/search/?q=needle"))

    for client, address in [
        (visit("root"), own),
        (visit("ada"), own.replace("q=needle", "q=needl")),
        (visit("ada"), "/search/?q=needle&cursor=nonsense"),
        (visit("ada"), "/search/?q=needle&cursor=" + "A" * 9_000),
    ]:
        page = _page(client, address)
        assert "cannot be continued any more" in page
        assert len(_found(page)) == 50
        assert _found(page)[0].endswith("n00.md")


def test_a_list_whose_rest_was_hidden_since_ends(world: World, visit: Visit) -> None:
    for number in range(53):
        world.entry(f"Engineering/Payments/Long/n{number:02}.md", "needle\n")
    rest = _next(_page(visit("ada"), "/search/?q=needle"))

    world.revoke("ada", "Engineering/Payments")

    page = _page(visit("ada"), rest)
    assert not _found(page)
    assert "There is nothing further here." in page


def test_an_empty_page_with_more_behind_it_goes_on(
    visit: Visit, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.services.search_entries.CANDIDATES_MAX", 1)
    for number in range(4):
        world.entry(f"Engineering/Payments/Long/n{number}.md", "NEEDLE\n", title="t")
    world.entry("Engineering/Payments/Long/z.md", "needle\n", title="t")
    ada = visit("ada")

    page, pages = _page(ada, "/search/?q=needle&case=1"), 1
    while not _found(page):
        assert "Nothing was found in the part that has been looked through so far." in page
        page, pages = _page(ada, _next(page)), pages + 1

    assert _found(page) == ["Engineering/Payments/Long/z.md"]
    assert pages > 1


def test_what_was_saved_a_moment_ago_is_found(world: World, visit: Visit) -> None:
    ada = visit("ada")
    assert not _found(_page(ada, "/search/?q=brandnew"))

    world.entry("Engineering/Payments/new.md", "brandnew\n")

    assert _found(_page(ada, "/search/?q=brandnew")) == ["Engineering/Payments/new.md"]


def test_who_is_not_signed_in_comes_back_to_the_search() -> None:
    answer = Client().get("/search/?q=health+check&case=1")

    assert (answer.status_code, answer["Location"]) == (
        302,
        "/login/?next=/search/%3Fq%3Dhealth%2Bcheck%26case%3D1",
    )


def test_every_page_has_a_field_for_it(visit: Visit) -> None:
    ada = visit("ada")
    for address in ("/files/", f"/files/{DEPLOY}", "/files/nothing.md", "/nowhere"):
        header = ada.get(address).content.decode().partition("</header>")[0]
        assert '<form action="/search/"><input name="q" type="search"' in header, address
    assert 'name="q"' not in ada.get("/search/").content.decode().partition("</header>")[0]
    folder = _page(ada, "/files/Engineering/Payments/Checkout/")
    assert 'href="/search/?folder=Engineering%2FPayments%2FCheckout"' in folder


def test_a_search_takes_few_queries(world: World, visit: Visit) -> None:
    ada = visit("ada")
    ada.get("/search/?q=health")
    with CaptureQueriesContext(connection) as queries:
        ada.get("/search/?q=health&folder=Engineering/Payments/Checkout")

    assert len(queries) <= 4, [query["sql"][:80] for query in queries]
