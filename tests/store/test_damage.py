"""A disk that hands back something else: noticed, said, never guessed over; and reading goes on where it can."""

import itertools
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from core.errors import StorageUnavailable
from kb.store import check, content_store, repair
from kb.store.content_store import ContentStore
from kb.store.layout import Layout
from tests.core.waiting import Task
from tests.store import account
from tests.store.changes import Change, Create, Delete, Import, MakeFolder, Update, make, text_of
from tests.store.children import Child, in_child
from tests.store.seeing import picture
from tests.store.small import ORGANIZATION, Small

STORY: list[Change] = [
    Create("a.md", "first\n"),
    MakeFolder("Eng/Ops"),
    Create("Eng/Ops/deploy.md", "deploy\n"),
    Update("a.md", "second\n"),
    Create("b.md", "other\n"),
    Delete("b.md"),
]
ROOT = "content/.registry.jsonl"
OPS = "content/Eng/Ops/.registry.jsonl"


def tell(small: Small, *, stop: bool) -> account.Picture:
    """The story, by a process of its own that stops cleanly or is killed; what it saw at last."""

    def work(connection: Connection) -> None:
        store = small.open()
        for number, change in enumerate(STORY):
            make(store, change, f"r{number}")
        if stop:
            store.close()
        connection.send(("done", account.picture_of(account.tree(small.top)[0])))
        connection.recv()

    child = Child(work)
    try:
        told: account.Picture = child.hear()
        return told
    finally:
        child.kill()


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << position % 8
    path.write_bytes(bytes(data))


def cannot_read(store: ContentStore) -> bool:
    try:
        picture(store)
    except StorageUnavailable:
        return True
    return False


def cannot_write(store: ContentStore) -> bool:
    try:
        make(store, Create("new.md", "text\n"))
    except StorageUnavailable:
        return True
    return False


def repaired(small: Small) -> repair.RepairReport:
    layout = Layout(small.data_dir, ORGANIZATION)
    try:
        return repair.repair(layout)
    finally:
        layout.close()


# -- registries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "damage"),
    [
        *itertools.product([ROOT, OPS], ["flipped", "gone", "emptied", "cut in a line", "a link"]),
        (OPS, "another folder's"),
    ],
)
def test_with_a_damaged_registry_reading_goes_on_from_the_log_and_writing_does_not(
    small: Small, place: str, damage: str
) -> None:
    told = tell(small, stop=True)
    path = small.top / place
    match damage:
        case "flipped":
            flip(path, path.stat().st_size // 2)
        case "gone":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case "cut in a line":
            path.write_bytes(path.read_bytes()[:-3])
        case "another folder's":
            path.write_bytes((small.top / "content/Eng/.registry.jsonl").read_bytes())
        case "a link":
            path.unlink()
            path.symlink_to("/dev/null")

    with small.opened() as store:
        assert picture(store) == told
        assert small.fault.exists()
        assert cannot_write(store)
        assert picture(store) == told
        assert any(found.place == place for found in check.check(store).disagreements)
    with small.opened() as store:
        assert picture(store) == told
    report = repaired(small)

    assert report.left == []
    with small.opened() as store:
        assert picture(store) == told
        assert not cannot_write(store)
    assert account.problems_at_rest(small.top) == []


def test_a_flipped_byte_anywhere_in_a_registry_is_noticed_and_reading_goes_on(small: Small) -> None:
    told = tell(small, stop=True)
    path = small.top / ROOT
    whole = path.read_bytes()
    for position in range(0, len(whole), 23):  # test_formats turns every single one
        flip(path, position)
        with small.opened() as store:
            assert picture(store) == told, f"byte {position}"
        assert small.fault.exists(), f"byte {position}"
        small.fault.unlink()
        path.write_bytes(whole)


def test_a_damaged_registry_that_the_log_no_longer_has_is_refused_and_never_taken_for_empty(
    small: Small,
) -> None:
    tell(small, stop=True)
    flip(small.top / OPS, 100)
    segment = small.segments()[0]
    data = segment.read_bytes()
    flip(segment, data.index(b"deploy\n"))  # damages the record that tells of the folder's registry too

    with small.opened() as store:
        assert cannot_read(store)
        assert cannot_write(store)
    assert small.fault.exists()


def test_a_process_that_follows_reads_on_when_the_tail_it_needs_is_damaged(small: Small) -> None:
    with small.opened() as reader, small.opened() as writer:
        for change in STORY:
            make(writer, change)
        picture(reader)
        make(writer, Create("c.md", "third\n"))
        path = small.top / ROOT
        flip(path, path.stat().st_size - 5)

        assert picture(reader) == picture(writer)
        assert small.fault.exists()
        assert cannot_write(writer)


# -- marks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [True, False], ids=["clean-stop", "killed"])
def test_any_flipped_byte_of_applied_is_noticed_and_mended(small: Small, stop: bool) -> None:
    told = tell(small, stop=stop)
    path = small.private / "applied"
    whole = path.read_bytes()
    for position in range(len(whole)):
        flip(path, position)
        assert account.mark(path) is None

        assert in_child(lambda: look_and_stop(small)) == told, f"byte {position}"

        assert account.problems_at_rest(small.top) == [], f"byte {position}"
    assert account.mark(path) is not None


def look_and_stop(small: Small) -> account.Picture:
    with small.opened() as store:
        return picture(store)


@pytest.mark.parametrize("damage", [b"", b"\0" * 40, b"BRM1", b"x" * 41])
def test_a_damaged_applied_mark_is_mended_while_others_live(small: Small, damage: bytes) -> None:
    with small.opened() as store, small.opened() as other:
        for change in STORY:
            make(store, change)
        told = picture(store)
        (small.private / "applied").write_bytes(damage)

        assert picture(other) == told
        make(other, Create("c.md", "third\n"))
        assert text_of(store, "c.md") == "third\n"
    assert account.problems_at_rest(small.top) == []


@pytest.mark.parametrize("damage", ["flipped", "gone", "emptied"])
def test_a_checkpoint_that_cannot_be_read_is_a_fault_at_the_first_start(small: Small, damage: str) -> None:
    told = tell(small, stop=True)
    path = small.private / "checkpoint"
    match damage:
        case "flipped":
            flip(path, 20)
        case "gone":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")

    with small.opened() as store:
        assert cannot_read(store)
        assert cannot_write(store)
    assert small.fault.exists()
    assert repaired(small).left == []

    assert in_child(lambda: look_and_stop(small)) == told


def test_a_checkpoint_that_cannot_be_read_does_not_disturb_those_who_live(small: Small) -> None:
    with small.opened() as store:
        for change in STORY:
            make(store, change)
        told = picture(store)
        flip(small.private / "checkpoint", 20)

        store.checkpoint()
        assert picture(store) == told
        make(store, Create("c.md", "third\n"))
        with small.opened() as late:
            assert text_of(late, "c.md") == "third\n"


# -- the log ----------------------------------------------------------------------------------------------------


def last_record(small: Small) -> account.LoggedRecord:
    return account.read_log(small.top).records[-1]


@pytest.mark.parametrize("where", ["last record", "record before it"])
def test_a_flipped_byte_above_the_checkpoint_refuses_a_first_start_and_changes_nothing(
    small: Small, where: str
) -> None:
    tell(small, stop=False)
    before = account.tree(small.top)
    record = account.read_log(small.top).records[-1 if where == "last record" else -2]
    segment = small.segments()[-1]
    for position in range(record.start, record.end, 17):
        whole = segment.read_bytes()
        flip(segment, position)
        damaged = segment.read_bytes()

        with small.opened() as store:
            assert cannot_read(store)
            assert cannot_write(store)

        assert segment.read_bytes() == damaged, "nothing was cut"
        assert account.tree(small.top) == before
        assert small.fault.exists()
        kept = list((small.private / "quarantine").iterdir())
        assert [path.read_bytes() for path in kept] == [damaged]
        kept[0].unlink()
        small.fault.unlink()
        segment.write_bytes(whole)
    assert in_child(lambda: look_and_stop(small)) == account.picture_of(before[0])


def test_a_flipped_byte_below_the_checkpoint_disturbs_nobody_and_is_found_by_a_check(small: Small) -> None:
    told = tell(small, stop=True)
    flip(small.segments()[0], 200)

    with small.opened() as store:
        assert picture(store) == told
        make(store, Create("c.md", "third\n"))
        assert any(found.place.startswith("private/log/") for found in check.check(store).disagreements)


def test_damage_that_is_found_while_others_live_refuses_writes_and_reading_goes_on(small: Small) -> None:
    with small.opened() as store:
        for change in STORY:
            make(store, change)
        told = picture(store)
        segment = small.segments()[-1]
        segment.write_bytes(segment.read_bytes()[:-10])

        assert cannot_write(store)
        assert small.fault.exists()
        assert picture(store) == told
        with small.opened() as late:
            assert picture(late) == told
            assert cannot_write(late)


@pytest.mark.parametrize("cut", ["emptied", "at a record", "gone"])
def test_a_reader_that_follows_into_a_log_that_is_gone_reads_from_the_registries(
    small: Small, cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small.opened() as reader, small.opened() as writer:
        make(writer, STORY[0])
        picture(reader)
        monkeypatch.setattr(content_store, "SEGMENT_BYTES", 1)
        for change in STORY[1:]:
            make(writer, change)
        told = account.picture_of(account.tree(small.top)[0])
        segment = small.segments()[3]
        match cut:
            case "emptied" | "at a record":
                segment.write_bytes(b"")
            case "gone":
                segment.unlink()

        assert Task(lambda: picture(reader)).result() == told


@pytest.mark.parametrize(
    "behind",
    [b"\0" * 500, b"\xff\x00BRNLG1" + b"\0" * 300, b"text behind the end"],
    ids=["zeros", "magic", "text"],
)
def test_a_torn_append_is_cut_off(small: Small, behind: bytes) -> None:
    told = tell(small, stop=False)
    segment = small.segments()[-1]
    with segment.open("ab") as file:
        file.write(behind)

    assert in_child(lambda: look_and_stop(small)) == told

    assert account.problems_at_rest(small.top) == []


def test_a_valid_record_behind_a_torn_one_is_a_fault(small: Small) -> None:
    tell(small, stop=False)
    segment = small.segments()[-1]
    record = last_record(small)
    again = segment.read_bytes()[record.start : record.end]
    with segment.open("ab") as file:
        file.write(b"torn" + again)

    with small.opened() as store:
        assert cannot_read(store)
    assert small.fault.exists()


@pytest.mark.parametrize("missing", [1, 2])
def test_a_missing_segment_above_the_checkpoint_is_a_fault(
    small: Small, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    monkeypatch.setattr(content_store, "SEGMENT_BYTES", 1)
    tell(small, stop=False)
    small.segments()[missing].unlink()

    with small.opened() as store:
        assert cannot_read(store)
        assert cannot_write(store)
    assert small.fault.exists()


def test_a_damaged_outcome_is_a_fault_and_no_second_effect(small: Small) -> None:
    told = tell(small, stop=True)
    outcome = next(path for path in (small.private / "outcomes").rglob("*.json"))
    outcome.write_bytes(b"{}")

    with small.opened() as store:
        with pytest.raises(StorageUnavailable):
            make_again(store)
        assert picture(store) == told
        assert cannot_write(store)
    assert repaired(small).left == []
    with small.opened() as store:
        make_again(store)
    assert account.problems_at_rest(small.top) == []


def make_again(store: ContentStore) -> None:
    for number, change in enumerate(STORY):
        make(store, change, f"r{number}")


def test_many_threads_that_meet_damage_mark_it_once(small: Small) -> None:
    told = tell(small, stop=True)
    flip(small.top / OPS, 100)

    with small.opened() as store:
        readers = [Task(lambda: picture(store)) for _ in range(8)]
        assert [reader.result() for reader in readers] == [told] * 8
    assert small.fault.exists()
    assert threading.active_count() < 10


def test_an_import_that_is_damaged_on_disk_leaves_the_other_entries_readable(small: Small) -> None:
    with small.opened() as store:
        make(store, Import({f"I/e{number}.md": f"{number}\n" for number in range(5)}))
        (small.content / "I" / "e3.md").write_bytes(b"3")

        with pytest.raises(StorageUnavailable):
            text_of(store, "I/e3.md")
        assert [text_of(store, f"I/e{number}.md") for number in (0, 1, 2, 4)] == ["0\n", "1\n", "2\n", "4\n"]
