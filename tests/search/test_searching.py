"""Searching: literal, fresh after every kind of change, and blind to what the caller may not read."""

import gc
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from access.principals import Principal
from core import ids
from core.errors import InvalidArgument, LimitExceeded, NotFound
from core.folding import fold, normal
from core.types import EntryLocator, FolderLocator, Role
from kb.search import engine as engine_module
from kb.search.engines import engine_of
from kb.search.query import Query
from kb.services.browse_entries import browse_entries
from kb.services.delete_entry import delete_entry
from kb.services.import_markdown import import_markdown
from kb.services.search_entries import SearchResult, search_entries
from kb.services.update_entry import update_entry
from kb.store import stores
from kb.store.content_store import ContentStore
from kb.store.stores import store_of
from tests.world import World

pytestmark = pytest.mark.django_db


def paths(principal: Principal, query: str, folder: str = "", **options: Any) -> list[str]:
    page = search_entries(principal, query, FolderLocator(folder_path=folder), **options)
    return [result.entry.path for result in page.items]


def only(world: World, query: str, **options: Any) -> SearchResult:
    (result,) = search_entries(world.system, query, **options).items
    return result


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("请在部署之前检查服务健康状况。\n", "服务健康", True),
        ("データベースの移行\n", "ベースの", True),
        ("Проверьте Состояние сервиса\n", "состояние", True),
        ("Straße\n", "STRASSE", True),
        ("caf\u00e9\n", "cafe\u0301", True),
        ("cafe\u0301 au lait\n", "caf\u00e9", True),
        ("foo-bar_baz a.b(c)\n", "a.b(c)", True),
        ("foo-bar_baz aXb(c)\n", "a.b(c)", False),
        ("rocket 🚀 launch\n", "🚀", True),
        ("x\n", "x", True),
        ("two letters\n", "tw", True),
        ("ends here", "here", True),
        ("one line\nand another\n", "line and", False),
    ],
)
def test_a_literal_text_is_found_wherever_it_stands(world: World, text: str, query: str, found: bool) -> None:
    world.entry("a.md", text, title="t")

    assert paths(world.system, query) == (["a.md"] if found else [])


def test_case_counts_only_when_it_is_asked_for(world: World) -> None:
    world.entry("a.md", "Deploy\n", title="t")

    assert paths(world.system, "dEPLOY") == ["a.md"]
    assert paths(world.system, "dEPLOY", case_sensitive=True) == []
    assert paths(world.system, "Deploy", case_sensitive=True) == ["a.md"]


def test_a_result_says_where_the_query_stands(world: World) -> None:
    text = "".join(f"line {number} needle\n" if number % 2 else "other\n" for number in range(1, 20))
    world.entry("needle.md", text, title="A Needle")

    result = only(world, "needle")

    assert result.matched_in == ("content", "title", "filename")
    assert [(match.line, match.text) for match in result.matches] == [
        (number, f"line {number} needle") for number in (1, 3, 5, 7, 9)
    ]
    assert result.match_count == 10


def test_a_line_with_several_hits_counts_once_and_a_long_one_is_cut_around_the_match(world: World) -> None:
    world.entry("a.md", "x" * 5000 + "needle needle" + "y" * 5000 + "\n", title="t")

    result = only(world, "needle")

    assert result.match_count == 1
    assert "needle" in result.matches[0].text
    assert len(result.matches[0].text) < 300


def test_every_kind_of_change_counts_for_the_next_search(world: World, tmp_path: Path) -> None:
    world.entry("old.md", "needle\n", title="t")
    assert paths(world.system, "needle") == ["old.md"]

    entry = world.entry("new.md", "needle\n", title="t")
    assert paths(world.system, "needle") == ["new.md", "old.md"]
    updated = update_entry(
        world.system, None, EntryLocator(path="new.md"), expected_version=entry.version, content="hay\n"
    ).entry
    assert paths(world.system, "needle") == ["old.md"]
    titled = update_entry(
        world.system, None, EntryLocator(path="new.md"), expected_version=updated.version, title="Needle"
    ).entry
    assert paths(world.system, "needle") == ["new.md", "old.md"]
    delete_entry(world.system, None, EntryLocator(path="new.md"), expected_version=titled.version)
    assert paths(world.system, "needle") == ["old.md"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "page.md").write_text("a needle\n")
    import_markdown(world.system, tmp_path / "in", "In")
    assert paths(world.system, "needle") == ["In/page.md", "old.md"]


def test_a_change_by_another_process_counts_too(world: World) -> None:
    world.entry("a.md", "hay\n", title="t")
    assert paths(world.system, "needle") == []
    mine = store_of(world.organization_id)
    other = ContentStore(stores.open_layout(world.organization_id), mine._queue)
    stores._stores[world.organization_id] = other
    world.entry("b.md", "needle\n", title="t")
    stores._stores[world.organization_id] = mine
    other.close()

    assert paths(world.system, "needle") == ["b.md"]


def test_what_the_caller_may_not_read_is_not_there(world: World) -> None:
    for path in ("Engineering/Billing/needle.md", "Engineering/Payments/needle.md", "needle.md"):
        world.entry(path, "needle\n", title="needle")
    priya = world.person("priya", role=Role.READER, on="Engineering/Payments")
    mallory = world.person("mallory")

    assert paths(priya, "needle") == ["Engineering/Payments/needle.md"]
    assert paths(priya, "needle", "Engineering") == ["Engineering/Payments/needle.md"]
    assert search_entries(priya, "needle", limit=1).next_cursor is None
    assert paths(mallory, "needle") == []
    for hidden in ("Engineering/Billing", "Nowhere"):
        with pytest.raises(NotFound):
            search_entries(priya, "needle", FolderLocator(folder_path=hidden))


def test_pages_put_together_are_the_whole_and_go_on_in_path_order(world: World) -> None:
    for number in range(12):
        world.entry(f"F{number % 3}/e{number:02}.md", "needle\n", title="t")
        if number == 6:
            assert len(paths(world.system, "needle")) == 7
    whole = paths(world.system, "needle", limit=100)
    for limit in (1, 2, 5):
        seen, cursor = [], None
        while True:
            page = search_entries(world.system, "needle", limit=limit, cursor=cursor)
            seen += [result.entry.path for result in page.items]
            if page.next_cursor is None:
                break
            cursor = page.next_cursor
        assert seen == whole == sorted(whole, key=str.lower)


def test_a_cursor_is_bound_to_query_filters_and_caller(world: World) -> None:
    for number in range(3):
        world.entry(f"e{number}.md", "needle\n", title="t")
    ada = world.person("ada", role=Role.READER)
    cursor = search_entries(ada, "needle", limit=1).next_cursor
    assert cursor is not None

    for attempt in (
        lambda: search_entries(ada, "needl", cursor=cursor),
        lambda: search_entries(ada, "needle", case_sensitive=True, cursor=cursor),
        lambda: search_entries(ada, "needle", type="note", cursor=cursor),
        lambda: search_entries(ada, "needle", tags=["a"], cursor=cursor),
        lambda: search_entries(world.system, "needle", cursor=cursor),
        lambda: browse_entries(ada, recursive=True, cursor=cursor),
    ):
        with pytest.raises(InvalidArgument):
            attempt()


def test_filters_narrow_what_is_found(world: World) -> None:
    note = world.entry("note.md", "needle\n", title="t")
    world.entry("skill.md", "needle\n", title="t", type="skill")
    update_entry(
        world.system, None, EntryLocator(path="note.md"), expected_version=note.version, tags=["a", "b"]
    )

    assert paths(world.system, "needle", type="skill") == ["skill.md"]
    assert paths(world.system, "needle", tags=["a", "b"]) == ["note.md"]
    assert paths(world.system, "needle", tags=["a", "c"]) == []


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("", InvalidArgument),
        ("a\nb", InvalidArgument),
        ("a\0", InvalidArgument),
        ("\ud800", InvalidArgument),
        ("a" * 257, LimitExceeded),
    ],
)
def test_a_query_is_one_line_of_1_to_256_characters(
    world: World, query: str, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        search_entries(world.system, query)
    assert paths(world.system, "a" * 256) == []


@pytest.mark.parametrize("damage", ["deleted", "garbage", "cut", "flipped", "emptied"])
def test_the_cache_may_be_deleted_or_damaged_at_any_time(world: World, data_dir: Path, damage: str) -> None:
    world.entry("a.md", "needle\n", title="t")
    assert paths(world.system, "needle") == ["a.md"]
    (pack,) = (data_dir / "orgs" / world.organization_id / "private/cache/search").glob("*.pack")
    match damage:
        case "deleted":
            pack.unlink()
        case "garbage":
            pack.write_bytes(b"garbage" * 100)
        case "cut":
            pack.write_bytes(pack.read_bytes()[:-40])
        case "flipped":
            data = bytearray(pack.read_bytes())
            data[data.rindex(b"needle")] ^= 1
            pack.write_bytes(bytes(data))
        case "emptied":
            pack.write_bytes(b"")

    assert paths(world.system, "needle") == ["a.md"]
    stores.close_all()
    assert paths(world.system, "needle") == ["a.md"]


def test_a_new_pack_is_made_beside_the_old_one_and_replaces_it(
    world: World, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "OVERLAY_MAX_ENTRIES", 3)
    cache = data_dir / "orgs" / world.organization_id / "private/cache/search"
    world.entry("a.md", "needle\n", title="t")
    paths(world.system, "needle")
    (first,) = cache.glob("*.pack")

    for number in range(5):
        world.entry(f"b{number}.md", "needle\n", title="t")
    assert len(paths(world.system, "needle")) == 6
    engine_of(world.organization_id).close()

    (second,) = cache.glob("*.pack")
    assert second.name > first.name
    assert len(paths(world.system, "needle")) == 6


def test_packs_that_are_replaced_or_damaged_leave_no_file_open(world: World, data_dir: Path) -> None:
    world.entry("a.md", "needle\n")
    assert paths(world.system, "needle") == ["a.md"]
    cache = data_dir / "orgs" / world.organization_id / "private" / "cache" / "search"
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))

    for number in range(20):
        for pack in cache.glob("*.pack"):
            if number % 2:
                pack.write_bytes(b"no pack")
            else:
                pack.unlink()
        assert paths(world.system, "needle") == ["a.md"]

    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_text_of_a_deleted_entry_leaves_the_cache_soon(world: World, data_dir: Path) -> None:
    entry = world.entry("secret.md", "the launch code\n", title="t")
    assert paths(world.system, "launch code") == ["secret.md"]

    delete_entry(world.system, None, EntryLocator(path="secret.md"), expected_version=entry.version)
    assert paths(world.system, "launch code") == []
    engine_of(world.organization_id).close()

    (pack,) = (data_dir / "orgs" / world.organization_id / "private/cache/search").glob("*.pack")
    assert b"launch code" not in pack.read_bytes()


def test_searching_and_saving_at_the_same_time_never_lose_a_hit(world: World) -> None:
    world.entry("base.md", "needle\n", title="t")
    failures: list[object] = []
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            if "base.md" not in paths(world.system, "needle"):
                failures.append("a hit was lost")

    seekers = [threading.Thread(target=search) for _ in range(3)]
    for seeker in seekers:
        seeker.start()
    for number in range(40):
        path = f"n{number}.md"
        world.entry(path, "needle\n", title="t")
        if path not in paths(world.system, "needle", limit=100):
            failures.append(f"{path} was saved and not found")
    stop.set()
    for seeker in seekers:
        seeker.join()

    assert failures == []


ALPHABET = "aAbBée\u0301ßİıΣςσ\u0130\u212b\u00c5 -x"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.sampled_from(ALPHABET + "\n"), max_size=30),
    query=st.text(st.sampled_from(ALPHABET), min_size=1, max_size=3),
    case_sensitive=st.booleans(),
)
def test_the_search_agrees_with_comparing_line_by_line(
    world: World, text: str, query: str, case_sensitive: bool
) -> None:
    name = f"{ids.new_id(ids.FOLDER)}"
    world.entry(f"{name}/1.md", text, title="t")
    compare = normal if case_sensitive else fold
    lines = [number for number, line in enumerate(text.split("\n"), 1) if compare(query) in compare(line)]

    found = search_entries(
        world.system, query, FolderLocator(folder_path=name), case_sensitive=case_sensitive
    ).items

    matched = [result for result in found if "content" in result.matched_in]
    assert [result.match_count for result in matched] == ([len(lines)] if lines else [])
    if lines:
        assert [match.line for match in matched[0].matches] == lines[:5]


@pytest.mark.parametrize(
    ("text", "query", "case_sensitive", "marked"),
    [
        ("Deploy, then deploy.", "deploy", False, "[Deploy], then [deploy]."),
        ("Deploy, then deploy.", "deploy", True, "Deploy, then [deploy]."),
        ("aaaa", "aa", False, "[aa][aa]"),
        ("Straße und STRASSE", "strasse", False, "[Straße] und [STRASSE]"),
        ("Straße", "ras", False, "St[raß]e"),
        ("cafe\u0301s", "caf\u00e9", False, "[cafe\u0301]s"),
        ("cafe\u0301s", "cafe", False, "cafe\u0301s"),
        ("İstanbul", "i", False, "[İ]stanbul"),
        ("\u1112\u1161\u11ab글", "한", False, "[\u1112\u1161\u11ab]글"),
        ("请在部署之前检查", "部署", False, "请在[部署]之前检查"),
        ("a.b(c)*", "b(c)", False, "a.[b(c)]*"),
        ("nothing", "x", False, "nothing"),
        ("", "x", False, ""),
    ],
)
def test_the_query_is_marked_where_it_stands(
    text: str, query: str, case_sensitive: bool, marked: str
) -> None:
    pieces = Query(query, case_sensitive=case_sensitive).marked(text)

    assert "".join(f"[{piece}]" if is_match else piece for piece, is_match in pieces) == marked


LETTERS = st.text("aAeEß\u0301\u0323é İıſKΣςﬁ한\u1112\u1161\u11ab部.", max_size=30)


@settings(max_examples=500, deadline=None)
@given(
    before=LETTERS,
    query=LETTERS.filter(bool),
    after=LETTERS,
    case_sensitive=st.booleans(),
    is_there=st.booleans(),
)
def test_what_is_marked_holds_the_query_and_joined_is_the_text(
    before: str, query: str, after: str, case_sensitive: bool, is_there: bool
) -> None:
    text = before + (query if is_there else "") + after
    compare = normal if case_sensitive else fold
    pieces = Query(query, case_sensitive=case_sensitive).marked(text)

    assert "".join(piece for piece, _ in pieces) == text
    assert all(compare(query) in compare(piece) for piece, is_match in pieces if is_match)
    assert any(is_match for _, is_match in pieces) == (compare(query) in compare(text))
