"""The decoded tree of a process: it follows the log and is always what a fresh one is, however large or deep."""

import itertools
import os
import resource
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import names
from core.errors import StorageUnavailable
from kb import registry
from kb.store import content_store, provision
from kb.store.content_store import ContentStore
from kb.store.index import Index
from kb.store.segments import Segments
from tests.core.waiting import Task
from tests.store import account
from tests.store.changes import (
    Change,
    Create,
    Delete,
    Import,
    MakeFolder,
    Refused,
    Retitle,
    Update,
    make,
    text_of,
)
from tests.store.seeing import picture
from tests.store.small import ORGANIZATION, Small

NUMBERS = itertools.count()
PLACES = ["", "A", "A/B", "A/b2", "C"]
PATHS = [f"{place}/{name}.md".lstrip("/") for place in PLACES for name in ("x", "X2", "y")]
TEXTS = st.sampled_from(["", "one\n", "two\n" * 50])
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(Create, st.sampled_from(PATHS), TEXTS),
    st.builds(Update, st.sampled_from(PATHS), TEXTS),
    st.builds(Retitle, st.sampled_from(PATHS), st.text("ab", max_size=3)),
    st.builds(Delete, st.sampled_from(PATHS)),
    st.builds(MakeFolder, st.sampled_from([place for place in PLACES if place])),
    st.builds(Import, st.dictionaries(st.sampled_from(PATHS), TEXTS, min_size=1, max_size=4)),
)


def state_of(index: Index) -> object:
    """Everything that an index knows, in a form that two of them can be compared in."""
    return (
        index.root_id,
        index.mark,
        {
            folder_id: (
                known.folder,
                known.key,
                known.size,
                known.line_count,
                known.entry_names,
                known.child_names,
                known.own,
                known.children,
                known.entries,
                known.tombstones,
                {name: known.entry_named(name) for name in known.entry_names},
                {name: known.child_named(name.rstrip("/")) for name in known.child_names},
            )
            for folder_id, known in index.registries.items()
        },
        {entry: index.folder_of_entry(entry) is index.folder(known.folder.id)
         for known in index.registries.values() for entry in known.entries},
        dict(index._entry_folders),
        dict(index._folder_ids),
    )  # fmt: skip


def fresh_state(store: ContentStore) -> object:
    index = Index(store.layout, Segments(store.layout))
    with store.still() as applied:
        index.refresh(applied)
    return state_of(index)


def followed_state(store: ContentStore) -> object:
    with store.snapshot():
        return state_of(store._index)


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    changes=st.lists(st.tuples(st.integers(0, 1), CHANGES, st.booleans()), max_size=25),
    slack=st.sampled_from([0, 3, 64]),
    segment_bytes=st.sampled_from([1, 4000, 1 << 20]),
)
def test_an_index_that_followed_the_log_is_what_a_fresh_one_and_the_account_are(
    ram: Path, small_reserve: None, changes: list[tuple[int, Change, bool]], slack: int, segment_bytes: int
) -> None:
    data_dir = ram / f"data{next(NUMBERS)}"
    small = Small(data_dir)
    provision.provision(data_dir, ORGANIZATION)
    small.without_spare_shards()
    with pytest.MonkeyPatch.context() as patched, small.opened() as one, small.opened() as other:
        patched.setattr(content_store, "COMPACT_SLACK_LINES", slack)
        patched.setattr(content_store, "SEGMENT_BYTES", segment_bytes)
        stores = (one, other)
        for who, change, look in changes:
            try:
                make(stores[who], change)
            except Refused:
                pass
            if look:
                assert followed_state(stores[1 - who]) == fresh_state(one)
        for store in stores:
            assert followed_state(store) == fresh_state(store)
            assert picture(store) == account.picture_of(account.tree(small.top)[0])
        assert account.problems_at_rest(small.top) == []


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(PATHS)), max_size=12))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_names_are_in_path_order_and_found_without_regard_to_case(
    ram: Path, small_reserve: None, story: list[tuple[bool, str]]
) -> None:
    data_dir = ram / f"data{next(NUMBERS)}"
    provision.provision(data_dir, ORGANIZATION)
    small = Small(data_dir).without_spare_shards()
    with small.opened() as store:
        for place in PLACES[1:]:
            make(store, MakeFolder(place))
        for create, path in story:
            try:
                make(store, Create(path, path) if create else Delete(path))
            except Refused:
                pass
        with store.snapshot() as view:
            for place in PLACES:
                folder = view.folder_at(place.upper().split("/") if place else [])
                assert folder is not None
                assert folder.entry_names == sorted(names.fold(line.name) for line in folder.entries.values())
                assert folder.child_names == sorted(
                    names.fold(line.name) + "/" for line in folder.children.values()
                )
                for line in folder.entries.values():
                    assert folder.entry_named(line.name.swapcase()) is line


# -- the registry's key -----------------------------------------------------------------------------------------


def test_a_registry_compacted_twice_to_the_same_size_is_read_again(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_store, "COMPACT_SLACK_LINES", -1000)
    with small.opened() as other:
        make(store, Create("a.md", "text\n"))
        make(store, Retitle("a.md", "aaaa"))
        make(other, Retitle("a.md", "bbbb"))
        for title in ("cccc", "dddd", "eeee"):
            assert followed_state(store) == fresh_state(other)
            make(other, Retitle("a.md", title))
            make(other, Retitle("a.md", title[::-1]))
        assert followed_state(store) == fresh_state(other)


# -- large and deep ---------------------------------------------------------------------------------------------


def test_a_path_of_five_hundred_folders_works(small: Small, store: ContentStore) -> None:
    deep = "/".join("d" * 500)
    assert len(deep.encode()) < 1024
    make(store, MakeFolder(deep))
    make(store, Create(f"{deep}/bottom.md", "far down\n"))

    with small.opened() as other:
        assert text_of(other, f"{deep}/bottom.md") == "far down\n"
        make(other, Update(f"{deep}/bottom.md", "and back\n"))
    assert text_of(store, f"{deep}/bottom.md") == "and back\n"
    assert account.problems_at_rest(small.top) == []


def test_a_folder_of_ten_thousand_entries_works(small: Small, store: ContentStore) -> None:
    make(store, Import({f"Large/e{number}.md": f"{number}\n" for number in range(10_000)}))
    make(store, Create("Large/one-more.md", "text\n"))
    make(store, Delete("Large/e77.md"))

    with small.opened() as other:
        assert followed_state(other) == followed_state(store)
        assert text_of(other, "Large/e9999.md") == "9999\n"
        assert text_of(other, "Large/e77.md") is None
    with store.snapshot() as view:
        large = view.folder_at(["Large"])
        assert large is not None
        assert len(large.entries) == len(large.entry_names) == 10_000


def test_one_record_may_make_more_folders_than_a_process_may_have_files_open(
    small: Small, store: ContentStore
) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(soft + 50, 1500)

    make(store, Import({f"F{number}/e.md": "text\n" for number in range(count)}))

    with store.snapshot() as view:
        assert len(view.root.children) == count
    assert len(os.listdir("/proc/self/fd")) < 200
    assert account.problems_at_rest(small.top) == []


def test_a_record_keeps_few_folders_open_while_it_is_carried_out(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0

    def count(step: str, place: str) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("kb.store.steps.hook", count)

    make(store, Import({f"F{number}/e.md": "text\n" for number in range(100)}))

    assert most - before < 50


# -- a refresh that fails ---------------------------------------------------------------------------------------


def test_a_refresh_that_fails_half_way_shows_nobody_half_a_tree(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("A", "A/B", "C"):
        make(store, MakeFolder(place))
        make(store, Create(f"{place}/x.md", "text\n"))
    whole = picture(store)
    decode = registry.decode_lines

    with small.opened() as fresh:
        seen = []
        for after in range(6):
            fresh._index.mark = (
                None  # what follows is the load of a whole tree, which fails at the n-th registry
            )
            calls = 0

            def fail_at(data: bytes, after: int = after) -> object:
                nonlocal calls
                calls += 1
                if calls == after + 1:
                    raise OSError(24, "too many open files")
                return decode(data)

            monkeypatch.setattr(registry, "decode_lines", fail_at)
            readers = [Task(lambda: picture(fresh)) for _ in range(4)]
            for reader in readers:
                try:
                    seen.append(reader.result())
                except StorageUnavailable:
                    seen.append(None)
        assert None in seen
        assert [one for one in seen if one is not None] == [whole] * (len(seen) - seen.count(None))
        assert picture(fresh) == whole


def test_a_failed_refresh_in_a_transaction_refuses_the_save_and_the_next_one_works(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, Create("a.md", "first\n"))
    with small.opened() as other:
        make(other, Update("a.md", "second\n"))
    with monkeypatch.context() as failing:

        def fail(data: bytes) -> object:
            raise OSError(24, "too many open files")

        failing.setattr(registry, "decode_lines", fail)
        with pytest.raises(StorageUnavailable):
            make(store, Update("a.md", "third\n"))

    assert text_of(store, "a.md") == "second\n"
    make(store, Update("a.md", "third\n"))
    assert account.problems_at_rest(small.top) == []
