"""A disk that refuses: the answer is definite or "repeat the request", reading goes on, nothing is left over."""

import errno
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import StorageUnavailable
from kb.store import content_store, reserve, steps
from kb.store.content_store import ContentStore
from tests.store import account, disks
from tests.store.changes import (
    Change,
    Create,
    Import,
    MakeFolder,
    Retitle,
    Update,
    make,
    request_of,
    text_of,
)
from tests.store.children import ChildFailed, Killed, in_child
from tests.store.kills import CASES, Case, look
from tests.store.seeing import picture
from tests.store.small import Small
from tests.store.trouble import attempt, disk_fills_up, refuse_everywhere, space_runs_out_behind_the_commit

Tried = Callable[[str, int], None]


def repr_of(change: Change) -> str:
    return type(change).__name__.lower()


@pytest.fixture(autouse=True)
def no_hook_stays() -> Iterator[None]:
    yield
    steps.hook = None
    content_store._sync_failed.clear()


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in ("import", "several writes")],
                         ids=lambda case: case.name)  # fmt: skip
@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EROFS, errno.EIO], ids=lambda number: errno.errorcode[number]
)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
def test_an_error_at_any_step_is_answered_honestly_and_forgotten_with_its_cause(
    past: Small, case: Case, number: int, lasting: bool, tried: Tried
) -> None:
    findings = refuse_everywhere(past, case, number, lasting=lasting)

    assert findings.violations == []
    if case.change is not None and lasting:
        assert findings.refused > 0
        assert findings.saved < findings.errors
    tried("injected errors", findings.errors)


# -- full disks -------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path, small_reserve: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    """An organization with 64 kB of ballast on a disk in memory of 3 MB."""
    monkeypatch.setattr(reserve, "FILES", 8)
    monkeypatch.setattr(reserve, "FILE_BYTES", 64 * 1024)
    with disks.tmpfs(tmp_path / "disk", megabytes=3) as place:
        small = Small(place / "data").provision().without_spare_shards()
        in_child(lambda: seed(small))
        yield small


def seed(small: Small) -> None:
    with small.opened() as store:
        make(store, Create("a.md", "first\n"))
        make(store, MakeFolder("F"))
        make(store, Create("F/c.md", "third\n"))


@pytest.mark.parametrize("demand", [700_000, -(10**12)], ids=["with-a-look-at-the-space", "without"])
def test_a_disk_that_fills_up_refuses_saves_keeps_reads_and_takes_saves_again(
    small_disk: Small, monkeypatch: pytest.MonkeyPatch, demand: int
) -> None:
    monkeypatch.setattr(content_store, "FREE_BYTES_MIN", demand)

    problems = disk_fills_up(
        small_disk,
        lambda: disks.resize(small_disk.data_dir.parent, megabytes=12),
        text="x" * 50_000,
        saves=60,
    )

    assert problems == []


@pytest.mark.parametrize(
    "change",
    [Create("n.md", "N" * 300_000), MakeFolder("G/H"), Retitle("a.md", "Another title")],
    ids=repr_of,
)
def test_a_committed_save_is_finished_on_a_disk_that_somebody_else_fills(
    small_disk: Small, change: Change
) -> None:
    disk = small_disk.data_dir.parent
    problems = space_runs_out_behind_the_commit(
        small_disk, change, lambda: disks.fill(disk), (disk / "somebody-elses").unlink
    )

    assert problems == []


@pytest.mark.parametrize("used_up", ["bytes", "inodes"])
@pytest.mark.parametrize(
    "change",
    [
        Create("n" * 60 + ".md", "N" * 300_000),
        MakeFolder("G/H"),
        Import({f"K{number}/{'n' * 60}{number}.md": "text\n" for number in range(20)}),
    ],
    ids=repr_of,
)
def test_a_committed_save_is_finished_on_a_real_ext4_that_somebody_else_fills(
    tmp_path: Path, small_reserve: None, monkeypatch: pytest.MonkeyPatch, change: Change, used_up: str
) -> None:
    monkeypatch.setattr(reserve, "FILES", 64)
    monkeypatch.setattr(reserve, "FILE_BYTES", 16 * 1024)
    with disks.ext4(tmp_path / "image", tmp_path / "disk", megabytes=12, inodes=700) as disk:
        small = Small(disk / "data").provision().without_spare_shards()
        in_child(lambda: seed(small))
        if used_up == "bytes":
            problems = space_runs_out_behind_the_commit(
                small, change, lambda: disks.fill(disk), (disk / "somebody-elses").unlink
            )
        else:
            problems = space_runs_out_behind_the_commit(
                small, change, lambda: disks.use_up_inodes(disk), lambda: shutil.rmtree(disk / "many")
            )

    assert problems == []


def test_a_start_after_a_kill_on_a_full_disk_serves_or_refuses_and_recovers_with_the_space(
    small_disk: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserve, "FILES", 0)
    for ballast in (small_disk.private / "reserve").iterdir():
        ballast.unlink()
    small = small_disk
    disk = small.data_dir.parent
    with pytest.raises(Killed):
        in_child(lambda: save_and_die(small))
    disks.fill(disk)

    assert in_child(lambda: looks_whole_or_refuses(small))
    (disk / "somebody-elses").unlink()

    assert in_child(lambda: look(small)) == account.picture_of(
        account.fold(account.read_log(small.top).records)[0]
    )
    assert account.problems_at_rest(small.top) == []


def looks_whole_or_refuses(small: Small) -> bool:
    try:
        return look(small) == account.picture_of(account.fold(account.read_log(small.top).records)[0])
    except StorageUnavailable:
        return True


def save_and_die(small: Small) -> None:
    store = small.open()
    for number in range(6):
        make(store, Create(f"e{number}.md", "text\n" * 20_000))
    os.kill(os.getpid(), signal.SIGKILL)


# -- limits of the process and of the disk ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "segment_bytes", "size"),
    [
        pytest.param(20_000, 1 << 26, 100_000, id="the-staged-file-is-too-large"),
        pytest.param(60_000, 1 << 26, 20_000, id="the-log-is-too-large"),
        pytest.param(3_000, 1, 100, id="the-registry-is-too-large"),
    ],
)
def test_a_limit_on_the_size_of_files_is_answered_honestly(
    past: Small, monkeypatch: pytest.MonkeyPatch, limit: int, segment_bytes: int, size: int
) -> None:
    def limited() -> tuple[list[str], account.Picture | None]:
        with past.opened() as other, past.opened() as store:
            picture(other)
            monkeypatch.setattr(content_store, "SEGMENT_BYTES", segment_bytes)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            answers = [attempt(store, Create("n.md", "N" * size), "limited")]
            try:
                return answers, picture(other)
            except StorageUnavailable:
                return answers, None

    in_child(lambda: seed_large(past))
    before = account.read_log(past.top).last_lsn

    answers, seen = in_child(limited)

    reading = account.read_log(past.top)
    committed = request_of("limited").key in reading.request_keys()
    assert answers == ["refused"]
    if seen is not None:
        kept = [record for record in reading.records if record.lsn <= before or committed]
        assert seen in (
            account.picture_of(account.fold(kept)[0]),
            account.picture_of(account.fold(kept[:-1])[0]),
        )
    assert in_child(lambda: repeat(past, size)) == ["saved", "saved"]
    assert account.problems_at_rest(past.top) == []


def seed_large(small: Small) -> None:
    with small.opened() as store:
        for number in range(6):
            make(store, Retitle("a.md", f"Title {number} " + "t" * 100))
        make(store, Create("large.md", "x" * 45_000))


def repeat(small: Small, size: int) -> list[str]:
    with small.opened() as store:
        return [attempt(store, Create("n.md", "N" * size), "limited") for _ in range(2)]


def let_go(store: ContentStore) -> None:
    """Close what is open for writing: else the disk could not be mounted anew."""
    store._segments.close()
    descriptor = store.layout.applied_for_writing()
    store.layout._descriptors.remove(descriptor)
    store.layout._applied_for_writing = -1
    os.close(descriptor)


def test_on_a_disk_that_turned_read_only_saves_are_refused_and_reads_go_on(small_disk: Small) -> None:
    disk = small_disk.data_dir.parent
    with small_disk.opened() as store:
        make(store, Update("a.md", "second\n"), "r1")
        told = picture(store)
        let_go(store)
        disks.remount(disk, "ro")

        assert attempt(store, Update("a.md", "third\n"), "r2") == "refused"
        assert picture(store) == told
        with small_disk.opened() as late:
            assert picture(late) == told, "others live, so the tree is whole though it was never synced"
            assert attempt(late, Update("a.md", "third\n"), "r2") == "refused"
        disks.remount(disk, "rw")
        assert attempt(store, Update("a.md", "third\n"), "r2") == "saved"
    assert account.problems_at_rest(small_disk.top) == []


def test_a_first_start_on_a_read_only_disk_serves_after_a_clean_stop(small_disk: Small) -> None:
    disk = small_disk.data_dir.parent
    disks.remount(disk, "ro")
    try:
        with small_disk.opened() as store:
            assert picture(store) == account.picture_of(account.tree(small_disk.top)[0])
            assert attempt(store, Update("a.md", "third\n"), "r2") == "refused"
    finally:
        disks.remount(disk, "rw")
    assert in_child(lambda: account.problems_at_rest(small_disk.top)) == []


def test_a_first_start_on_a_read_only_disk_refuses_after_an_unclean_stop(small_disk: Small) -> None:
    disk = small_disk.data_dir.parent
    with pytest.raises(Killed):
        in_child(lambda: save_and_die(small_disk))
    disks.remount(disk, "ro")
    try:
        with pytest.raises(ChildFailed, match="StorageUnavailable"):
            in_child(lambda: look(small_disk))
    finally:
        disks.remount(disk, "rw")

    in_child(lambda: look(small_disk))

    assert account.problems_at_rest(small_disk.top) == []


def test_a_record_that_is_not_applied_on_a_read_only_disk_is_neither_shown_nor_lost(
    small_disk: Small,
) -> None:
    disk = small_disk.data_dir.parent

    def die_behind_the_commit() -> None:
        def hook(step: str, place: str) -> None:
            if place == "private/applied":
                os.kill(os.getpid(), signal.SIGKILL)

        store = small_disk.open()
        picture(store)
        steps.hook = hook
        make(store, Update("a.md", "committed\n"), "r1")

    with small_disk.opened() as store:
        told = picture(store)
        let_go(store)
        with pytest.raises(Killed):
            in_child(die_behind_the_commit)
        disks.remount(disk, "ro")
        try:
            assert picture(store) == told
            with small_disk.opened() as late:
                assert picture(late) == told
        finally:
            disks.remount(disk, "rw")
        assert attempt(store, Create("b.md", "text\n"), "r2") == "saved"
        assert text_of(store, "a.md") == "committed\n"
    assert account.problems_at_rest(small_disk.top) == []


# -- permission -------------------------------------------------------------------------------------------------


@pytest.fixture
def unprivileged(past: Small) -> Callable[[Callable[[], object]], object]:
    """Run in a child that owns the files and is not root."""
    if os.geteuid() == 0:
        for path in [past.data_dir.parent, past.data_dir, *past.data_dir.rglob("*")]:
            os.chown(path, 65534, 65534)

    def run(work: Callable[[], object]) -> object:
        def as_nobody() -> object:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            return work()

        return in_child(as_nobody)

    return run


@pytest.mark.parametrize(
    "closed", ["private/log", "private/stage", "content", "content/F", "private/outcomes/00"]
)
def test_a_folder_without_permission_is_answered_honestly(
    past: Small, unprivileged: Callable[[Callable[[], object]], object], closed: str
) -> None:
    folder = past.top / closed
    change = Create("F/n.md", "text\n") if closed == "content/F" else Create("n.md", "text\n")

    def forbidden() -> str:
        with past.opened() as other, past.opened() as store:
            told = picture(other)
            folder.chmod(0o500)
            answer = attempt(store, change, "r1")
            try:
                assert answer == "saved" or picture(other) == told
            except StorageUnavailable:
                applied = account.mark(past.private / "applied")
                assert applied is not None
                assert applied[3] > applied[0], "refused, though the tree is whole"
            return answer

    expected = "saved" if closed == "private/log" else "refused"  # its newest file may still be written to
    assert unprivileged(forbidden) == expected
    folder.chmod(0o700)

    def again() -> list[str]:
        with past.opened() as store:
            return [attempt(store, change, "r1"), attempt(store, change, "r1")]

    assert unprivileged(again) == ["saved", "saved"]
    assert account.problems_at_rest(past.top) == []


def test_an_entry_that_may_not_be_read_is_refused_and_the_others_are_not(
    past: Small, unprivileged: Callable[[Callable[[], object]], object]
) -> None:
    (past.content / "a.md").chmod(0)

    def read() -> list[str | None]:
        with past.opened() as store:
            texts: list[str | None] = [text_of(store, "b.md")]
            with pytest.raises(StorageUnavailable):
                text_of(store, "a.md")
            return texts

    assert unprivileged(read) == ["other\n"]
