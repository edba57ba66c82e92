"""Saving and reading: one save is one record, seen at once by every process, and there after every stop."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest
from structlog.testing import capture_logs

from core import clock, limits
from core.errors import RequestInProgress, StorageUnavailable
from core.types import SYSTEM_ACTOR
from kb.store import checkpoint, content_store, steps
from kb.store.content_store import ContentStore
from kb.store.images import DamagedEntry
from tests.core.waiting import until
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
    request_of,
    text_of,
)
from tests.store.children import Child, in_child
from tests.store.seeing import picture
from tests.store.small import Small

STORY: list[Change] = [
    Create("a.md", "first\n"),
    MakeFolder("Eng/Ops"),
    Create("Eng/Ops/deploy.md", "deploy\n" * 100),
    Update("a.md", "second\n"),
    Retitle("a.md", "Another title"),
    Delete("Eng/Ops/deploy.md"),
    Create("Eng/Ops/deploy.md", "again\n"),
    Import({f"Import/F{number % 3}/e{number}.md": f"{number}\n" * number for number in range(12)}),
    Delete("a.md"),
]


def at(moment: dt.datetime) -> str:
    return clock.timestamp(moment)


# -- one save ---------------------------------------------------------------------------------------------------


def test_each_kind_of_change_is_one_record_and_seen_at_once(small: Small, store: ContentStore) -> None:
    for number, change in enumerate(STORY, start=2):
        make(store, change, f"request {number}")

        assert account.problems_at_rest(small.top) == []
        assert account.read_log(small.top).last_lsn == number
        assert picture(store) == account.picture_of(account.tree(small.top)[0])


def test_a_process_that_saved_and_one_that_comes_later_see_the_same(small: Small) -> None:
    def tell() -> account.Picture:
        with small.opened() as store:
            for number, change in enumerate(STORY):
                make(store, change, f"request {number}")
            return picture(store)

    def look() -> account.Picture:
        with small.opened() as store:
            return picture(store)

    told = in_child(tell)

    assert in_child(look) == told == account.picture_of(account.tree(small.top)[0])


def test_a_process_follows_what_another_one_saves(small: Small) -> None:
    def read(connection: Connection) -> None:
        with small.opened() as store:
            while True:
                connection.send(("done", picture(store)))
                if connection.recv() == "stop":
                    return

    reader = Child(read)
    reader.hear()
    with small.opened() as store:
        for change in STORY:
            make(store, change)
            assert reader.ask("again") == picture(store)
    reader.tell("stop")
    assert reader.wait() == 0


def test_a_transaction_without_commit_changes_nothing(small: Small, store: ContentStore) -> None:
    before = account.tree(small.top)

    with pytest.raises(Refused):
        make(store, Update("missing.md", "text\n"))

    assert account.tree(small.top) == before
    assert account.problems_at_rest(small.top) == []
    assert account.read_log(small.top).last_lsn == 1


def test_an_exception_behind_the_commit_does_not_take_the_save_back(
    small: Small, store: ContentStore
) -> None:
    make(store, Create("a.md", "first\n"))

    def save_and_fail() -> None:
        with store.transaction() as transaction:
            line = transaction.root.entry_named("a.md")
            assert line is not None
            transaction.save_entry(transaction.root.folder, line, b"first\n")
            transaction.commit("update", SYSTEM_ACTOR, [])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        save_and_fail()

    assert account.read_log(small.top).last_lsn == 3
    assert account.problems_at_rest(small.top) == []


def test_a_view_stays_the_same_while_another_process_wants_to_save(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, Create("a.md", "first\n"))
    monkeypatch.setattr(content_store, "CONTENT_WAIT_SECONDS", 0.05)
    with store.snapshot() as view:
        before = view.lsn

        # Its record is in the log, and waits for this reader to leave.
        assert in_child(lambda: save_elsewhere(small)) == "refused"

        assert view.lsn == before
        line = view.root.entry_named("a.md")
        assert line is not None
        assert view.read_content(view.root.folder, line) == b"first\n"
    assert text_of(store, "a.md") == "first\n"
    make(store, Create("b.md", "next\n"))
    assert text_of(store, "a.md") == "second\n", "the next writer finishes what was committed"


def save_elsewhere(small: Small) -> str:
    try:
        with small.opened() as store:
            make(store, Update("a.md", "second\n"))
    except StorageUnavailable:
        return "refused"
    return "saved"


# -- the log ----------------------------------------------------------------------------------------------------


def test_a_segment_is_as_long_as_its_last_record_makes_it(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_store, "SEGMENT_BYTES", 3000)
    for number in range(12):
        make(store, Create(f"e{number}.md", "x" * 100 * number))

    sizes = [path.stat().st_size for path in small.segments()]
    assert len(sizes) > 3
    assert max(sizes) <= 3000
    assert account.problems_at_rest(small.top) == []
    make(store, Create("large.md", "y" * 50_000))
    assert small.segments()[-1].stat().st_size > 50_000
    assert account.problems_at_rest(small.top) == []


def test_a_store_goes_on_over_segments_after_a_clean_stop(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_store, "SEGMENT_BYTES", 1)
    for number in range(4):
        with small.opened() as store:
            make(store, Create(f"e{number}.md", "text\n"))
            assert picture(store) == account.picture_of(account.tree(small.top)[0])

    assert [int(path.stem) for path in small.segments()] == [1, 2, 3, 4, 5]
    assert account.problems_at_rest(small.top) == []


def test_the_time_of_a_record_is_never_below_the_one_before(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
    with small.opened() as other:
        for saver, shift in ((store, 0), (other, 60), (store, -7200), (other, 30), (store, 61), (other, -1)):
            now = moment + dt.timedelta(seconds=shift, days=365 * 50)
            monkeypatch.setattr(clock, "now", lambda now=now: now)
            make(saver, Create(f"e{saver is store}{shift + 7200}.md", "text\n"))

    times = [record.time for record in account.read_log(small.top).records]
    assert times == sorted(times)
    assert account.problems_at_rest(small.top) == []


def test_a_process_that_starts_after_a_clock_jumped_back_goes_on_from_the_last_record(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_store, "SEGMENT_BYTES", 1)
    late = clock.now() + dt.timedelta(days=1)
    with monkeypatch.context() as later, small.opened() as store:
        later.setattr(clock, "now", lambda: late)
        make(store, Create("a.md", "text\n"))

    with small.opened() as store:
        make(store, Create("b.md", "text\n"))

    times = [record.time for record in account.read_log(small.top).records]
    assert times[-2:] == [at(late), at(late)]


# -- compaction -------------------------------------------------------------------------------------------------


def test_a_registry_is_compacted_when_it_is_more_than_twice_what_lives(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_store, "COMPACT_SLACK_LINES", 4)
    make(store, Create("a.md", "text\n"))
    actions = []
    for number in range(8):
        make(store, Retitle("a.md", f"Title {number}"))
        lines = account.registry_lines((small.content / account.REGISTRY).read_bytes())
        actions.append(len(lines))

    # Own line and entry live; snapshot, own, first line and then the titles: the ninth line is one too many.
    assert actions == [4, 5, 6, 7, 8, 3, 4, 5]
    assert [record.action for record in account.read_log(small.top).records].count("compact") == 1
    assert account.problems_at_rest(small.top) == []
    assert picture(store) == account.picture_of(account.tree(small.top)[0])


def test_a_compaction_keeps_children_entries_and_tombstones(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, MakeFolder("Eng"))
    make(store, Create("gone.md", "text\n"))
    make(store, Delete("gone.md"))
    make(store, Create("a.md", "text\n"))
    before = account.registry_lines((small.content / account.REGISTRY).read_bytes())
    monkeypatch.setattr(content_store, "COMPACT_SLACK_LINES", -1000)

    make(store, Retitle("a.md", "Another title"))

    after = account.registry_lines((small.content / account.REGISTRY).read_bytes())
    kept = {line["id"] for line in before if line["kind"] != "snapshot"}
    assert {line["id"] for line in after if line["kind"] != "snapshot"} == kept - {
        line["entry_id"] for line in before if line["kind"] == "tombstone"
    }
    assert account.problems_at_rest(small.top) == []


# -- checkpoints and stops --------------------------------------------------------------------------------------


def test_a_clean_stop_moves_the_checkpoint_to_the_end_and_the_next_start_replays_nothing(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small.opened() as store:
        for change in STORY:
            make(store, change)

    applied = account.mark(small.private / "applied")
    assert account.mark(small.private / "checkpoint") == applied
    seen: list[str] = []
    monkeypatch.setattr(steps, "hook", lambda step, place: seen.append(f"{step} {place}"))
    with small.opened() as store:
        assert picture(store) == account.picture_of(account.tree(small.top)[0])
    assert seen == []


def test_a_store_that_stops_without_a_word_is_replayed_at_the_next_start(small: Small) -> None:
    def tell_and_die(connection: Connection) -> None:
        store = small.open()
        for change in STORY:
            make(store, change)
        connection.send(("done", None))
        connection.recv()

    child = Child(tell_and_die)
    child.hear()
    child.kill()

    with small.opened() as store, capture_logs() as told:
        assert store.records_behind_checkpoint() == len(STORY)
        assert picture(store) == account.picture_of(account.tree(small.top)[0])
    (replay,) = [event for event in told if event["event"] == "the log was replayed"]
    assert replay["records"] == len(STORY)
    assert replay["seconds"] >= 0
    assert account.problems_at_rest(small.top) == []


def test_a_checkpoint_comes_by_itself_after_so_many_records(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "RECORDS_MAX", 3)
    for number in range(4):
        make(store, Create(f"e{number}.md", "text\n"))
    until(lambda: store.records_behind_checkpoint() <= 1)

    durable = account.mark(small.private / "checkpoint")
    assert durable is not None
    assert durable[0] >= 4


@pytest.mark.parametrize("paths_max", [0, 64], ids=["whole-filesystem", "path-by-path"])
def test_a_checkpoint_of_removed_and_reused_paths_succeeds(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch, paths_max: int
) -> None:
    monkeypatch.setattr(checkpoint, "PATHS_MAX", paths_max)
    for change in STORY:
        make(store, change)

    store.checkpoint()

    assert store.records_behind_checkpoint() == 0
    assert account.problems_at_rest(small.top) == []


# -- requests ---------------------------------------------------------------------------------------------------


def test_a_repeated_request_gets_the_first_answer_and_has_one_effect(
    small: Small, store: ContentStore
) -> None:
    first = make(store, Create("a.md", "text\n"), "r1")
    again = make(store, Create("a.md", "text\n"), "r1")

    with small.opened() as other:
        assert make(other, Create("a.md", "text\n"), "r1") == first == again
    assert account.read_log(small.top).request_keys() == [request_of("r1").key]


def test_an_outcome_is_forgotten_after_seven_days(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, Create("a.md", "text\n"), "r1")
    later = clock.now() + dt.timedelta(days=limits.OUTCOME_DAYS, seconds=1)
    with store.snapshot() as view:
        assert view.outcome_of(request_of("r1")) is not None

    monkeypatch.setattr(clock, "now", lambda: later)

    with store.snapshot() as view:
        assert view.outcome_of(request_of("r1")) is None


def test_a_request_that_is_running_is_refused_in_every_process_until_it_ends(
    small: Small, store: ContentStore
) -> None:
    def try_it() -> str:
        with small.opened() as other:
            try:
                make(other, Create("a.md", "text\n"), "r1")
            except RequestInProgress:
                return "busy"
            return "free"

    with store.claim(request_of("r1")):
        assert in_child(try_it) == "busy"
        with pytest.raises(RequestInProgress):
            make_in_thread(store)

    assert in_child(try_it) == "free"


def make_in_thread(store: ContentStore) -> None:
    """Claim from another thread, which holds nothing."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(make, store, Create("b.md", "text\n"), "r1").result()


def test_a_claim_of_a_dead_process_is_free(small: Small) -> None:
    def claim_and_wait(connection: Connection) -> None:
        store = small.open()
        with store.claim(request_of("r1")):
            connection.send(("done", None))
            connection.recv()

    child = Child(claim_and_wait)
    child.hear()
    child.kill()

    with small.opened() as store, store.claim(request_of("r1")):
        pass


# -- what was changed by hand -----------------------------------------------------------------------------------


def test_an_entry_that_was_changed_by_hand_is_refused_and_the_others_are_not(
    small: Small, store: ContentStore
) -> None:
    make(store, Create("a.md", "text\n"))
    make(store, Create("b.md", "other\n"))
    (small.content / "a.md").write_text("changed by hand\n")

    with pytest.raises(StorageUnavailable) as refused:
        text_of(store, "a.md")

    assert isinstance(refused.value.__cause__, DamagedEntry)
    assert text_of(store, "b.md") == "other\n"
    make(store, Update("a.md", "written again\n"))
    assert text_of(store, "a.md") == "written again\n"


@pytest.mark.parametrize("stand_in", ["nothing", "folder", "link", "second link"])
def test_what_stands_in_for_an_entry_is_not_read(small: Small, store: ContentStore, stand_in: str) -> None:
    make(store, Create("a.md", "text\n"))
    path = small.content / "a.md"
    outside = small.data_dir / "outside.md"
    outside.write_text("text\n")
    path.unlink()
    match stand_in:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(outside)
        case "second link":
            path.hardlink_to(outside)

    with pytest.raises(StorageUnavailable):
        text_of(store, "a.md")
