"""The copy of one organization's store, without accounts: what it holds while others save, and what kills leave."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import time_machine

from core import clock
from kb.store import copying, layout, reserve, restoring, retention, steps, upkeep
from kb.store.archive import ArchiveReader, ArchiveWriter, BadArchive, Manifest, Place
from kb.store.content_store import ContentStore
from kb.store.copying import Copy, DamagedFile, Moved
from kb.store.restoring import Restore, prove
from tests.operations.bare import ORGANIZATION, BareStore, open_store
from tests.operations.kills import killed_at_every_step
from tests.operations.test_sweep import DAY, answer, request_named

Between = Callable[[], object]


def nothing() -> None:
    pass


def write_database(directory: int) -> None:
    """Stands in for the database, which these tests have none of."""
    Path(f"/proc/self/fd/{directory}/database").write_bytes(b"a database")


@contextmanager
def copy_of(store: ContentStore) -> Iterator[Copy]:
    with upkeep.hold_upkeep(store.layout, wait_seconds=0):
        upkeep.remove_leftovers(store.layout)
        copy = Copy(store)
        try:
            yield copy
        finally:
            copy.close()
            upkeep.remove_leftovers(store.layout)


def back_up(store: ContentStore, target: Path, *, between: Between = nothing) -> None:
    """What brain.instance_backup does to the store; ``between`` happens once the state was taken."""
    with copy_of(store) as copy, ArchiveWriter(target) as archive:
        archive.add("FORMAT", b"1\n")
        with copying.hold_publication(store.layout, wait_seconds=0):
            copy.take(write_database)
            for file in copying.staging_files(store.layout):
                archive.add_stream(file.path, file.size, file.chunks)
        between()
        database = copy.database()
        archive.add_stream(database.path, database.size, database.chunks)
        for file in copy.files():
            archive.add_stream(file.path, file.size, file.chunks)
        archive.finish(
            Manifest(
                layout="1",
                made_at=clock.timestamp(),
                organization_id=ORGANIZATION,
                log_end=Place(copy.mark.lsn, copy.mark.segment, copy.mark.offset),
                has_secrets=False,
            )
        )


def restore(source: Path, data_dir: Path) -> None:
    """What brain.instance_restore does to the store."""
    data_dir.mkdir(mode=0o700, exist_ok=True)
    with ArchiveReader(source) as reader:
        contents = prove(reader)
        with Restore(reader, contents, data_dir) as begun:
            begun.extract()
            assert begun.check().disagreements == []
            begun.commit()


def restored(source: Path, data_dir: Path) -> BareStore:
    restore(source, data_dir)
    return BareStore(data_dir)


def tree_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_what_was_copied_is_what_is_restored(bare: BareStore, tmp_path: Path) -> None:
    bare.save("Eng/Payments/deploy.md", "one\n")
    bare.save("Eng/Payments/deploy.md", "two\n")
    bare.begin_segment()
    bare.retitle("Eng/Payments/deploy.md", "Deploying")
    bare.save("gone.md", "text\n")
    bare.delete("gone.md")
    bare.save("empty.md", "")
    bare.folder("Empty")
    answer(bare, request_named("one"))

    back_up(bare.store, tmp_path / "backup.tar")
    back = restored(tmp_path / "backup.tar", tmp_path / "back")

    for part in ("content", "private/log", "private/outcomes"):
        assert tree_of(back.path / part) == tree_of(bare.path / part)
    assert back.disagreements() == []
    assert back.store.layout.read_applied() == bare.store.layout.read_applied()
    back.save("Eng/new.md", "goes on\n")
    assert back.disagreements() == []
    back.close()


def test_a_restored_directory_is_private_and_has_what_a_new_one_has(bare: BareStore, tmp_path: Path) -> None:
    bare.save("Eng/deploy.md", "text\n")
    back_up(bare.store, tmp_path / "backup.tar")
    back = restored(tmp_path / "backup.tar", tmp_path / "back")
    back.close()
    bare.close()

    def modes(data_dir: Path) -> dict[str, int]:
        return {
            path.relative_to(data_dir).as_posix(): path.stat().st_mode & 0o7777
            for path in data_dir.rglob("*")
            if "derived" not in path.name
        }

    assert modes(tmp_path / "back") == modes(bare.data_dir) | {"db.sqlite3": 0o600}
    assert (tmp_path / "backup.tar").stat().st_mode & 0o7777 == 0o600
    bare.store = open_store(bare.data_dir)


def test_saves_in_between_are_not_in_the_copy(bare: BareStore, tmp_path: Path) -> None:
    bare.save("Eng/changed.md", "as it was\n")
    bare.save("Eng/deleted.md", "as it was\n")
    bare.save("Eng/same.md", "same\n")
    tree = tree_of(bare.path / "content")
    log = tree_of(bare.path / "private/log")
    [segment] = log

    def save_meanwhile() -> None:
        bare.save("Eng/changed.md", "as it is\n")
        bare.delete("Eng/deleted.md")
        bare.save("New/new.md", "new\n")
        bare.begin_segment()
        answer(bare, request_named("later"))
        for number in range(200):  # until the registry is written whole
            bare.retitle("Eng/same.md", f"title {number}")

    back_up(bare.store, tmp_path / "backup.tar", between=save_meanwhile)
    back = restored(tmp_path / "backup.tar", tmp_path / "back")

    assert tree_of(back.path / "content") == tree
    assert tree_of(back.path / "private/log") == {segment: log[segment]}
    assert tree_of(back.path / "private/outcomes") == {}
    assert bare.disagreements() == []
    back.close()


def with_old_history_gone(bare: BareStore) -> None:
    """An entry of which the log no longer holds the text."""
    for number in range(3):
        bare.save(f"Eng/page{number}.md", f"text {number}\n")
        bare.begin_segment()
    with time_machine.travel(clock.now() + 730 * DAY, tick=True):
        assert retention.sweep(bare.store, history_days=1, history_bytes=None).segments > 0


def test_an_entry_that_the_log_no_longer_holds_is_copied_from_the_tree(
    bare: BareStore, tmp_path: Path
) -> None:
    with_old_history_gone(bare)

    back_up(bare.store, tmp_path / "backup.tar")
    back = restored(tmp_path / "backup.tar", tmp_path / "back")

    assert back.text_of("Eng/page0.md") == "text 0\n"
    back.close()


def test_one_that_is_saved_just_then_lets_the_copy_be_taken_again(bare: BareStore, tmp_path: Path) -> None:
    with_old_history_gone(bare)

    with pytest.raises(Moved, match=r"Eng/page0\.md"):
        back_up(
            bare.store,
            tmp_path / "backup.tar",
            between=lambda: bare.save("Eng/page0.md", "saved just then\n"),
        )
    assert list(tmp_path.glob("*.tar*")) == []

    back_up(bare.store, tmp_path / "backup.tar")
    back = restored(tmp_path / "backup.tar", tmp_path / "back")
    assert back.text_of("Eng/page0.md") == "saved just then\n"
    back.close()


def test_what_the_log_no_longer_holds_is_copied_first(bare: BareStore) -> None:
    with_old_history_gone(bare)
    bare.save("new.md", "new\n")

    with copy_of(bare.store) as copy:
        copy.take(write_database)
        names = [file.names[-1] for file in copy.files()]

    assert names[0] == "page0.md"


def test_a_damaged_entry_is_healed_from_the_log_or_ends_the_backup(bare: BareStore, tmp_path: Path) -> None:
    bare.save("Eng/page.md", "whole\n")
    (bare.path / "content/Eng/page.md").write_text("rotten\n")
    back_up(bare.store, tmp_path / "backup.tar")
    back = restored(tmp_path / "backup.tar", tmp_path / "back")
    assert back.text_of("Eng/page.md") == "whole\n"
    back.close()
    (bare.path / "content/Eng/page.md").write_text("whole\n")
    with_old_history_gone(bare)
    (bare.path / "content/Eng/page.md").write_text("rotten\n")

    with pytest.raises(DamagedFile, match=r"Eng/page\.md"):
        back_up(bare.store, tmp_path / "second.tar")


def test_what_is_prepared_for_the_git_remote_comes_along_without_what_is_on_its_way(
    bare: BareStore, tmp_path: Path
) -> None:
    staging = bare.path / "private/backup"
    for name in ("gen/1.git/HEAD", "gen/1.git/objects/ab/cd", "generation", "tmp/half"):
        (staging / name).parent.mkdir(parents=True, exist_ok=True)
        (staging / name).write_text(name)

    back_up(bare.store, tmp_path / "backup.tar")
    back = restored(tmp_path / "backup.tar", tmp_path / "back")

    assert set(tree_of(back.path / "private/backup")) == {
        "gen/1.git/HEAD",
        "gen/1.git/objects/ab/cd",
        "generation",
    }
    back.close()


def test_a_target_with_anything_in_it_is_refused_and_left_alone(bare: BareStore, tmp_path: Path) -> None:
    back_up(bare.store, tmp_path / "backup.tar")
    for name in ("FORMAT", "orgs/org_x/content/page.md", "notes.txt", "db.sqlite3"):
        target = tmp_path / name.replace("/", "-")
        (target / name).parent.mkdir(parents=True)
        (target / name).write_text("1\n")

        with pytest.raises(restoring.TargetNotEmpty):
            restore(tmp_path / "backup.tar", target)

        assert tree_of(target) == {name: b"1\n"}


def test_a_target_that_only_settings_and_a_first_start_touched_is_empty(
    bare: BareStore, tmp_path: Path
) -> None:
    back_up(bare.store, tmp_path / "backup.tar")
    target = tmp_path / "back"
    target.mkdir()
    for name in ("secret_key", "data_key"):
        (target / name).write_text(name)
    (target / "db.sqlite3").touch()

    back = restored(tmp_path / "backup.tar", target)

    assert (target / "data_key").read_text() == "data_key"
    assert (target / "db.sqlite3").read_bytes() == b"a database"
    back.close()


def test_a_disk_without_room_is_told_before_anything_is_written(
    bare: BareStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(bare.store, tmp_path / "backup.tar")
    real = os.fstatvfs

    def full(descriptor: int) -> os.statvfs_result:
        values = list(real(descriptor))
        values[4] = 100
        return os.statvfs_result(values)

    monkeypatch.setattr(os, "fstatvfs", full)
    with pytest.raises(restoring.NoRoom):
        restore(tmp_path / "backup.tar", tmp_path / "back")
    assert list((tmp_path / "back").iterdir()) == []


def test_an_archive_that_changes_after_it_was_proved_is_refused(bare: BareStore, tmp_path: Path) -> None:
    bare.save("page.md", "the text\n")
    back_up(bare.store, tmp_path / "backup.tar")
    (tmp_path / "back").mkdir(mode=0o700)

    with ArchiveReader(tmp_path / "backup.tar") as reader:
        contents = prove(reader)
        data = (tmp_path / "backup.tar").read_bytes()
        (tmp_path / "backup.tar").write_bytes(data.replace(b"the text\n", b"bad text\n"))
        with (
            Restore(reader, contents, tmp_path / "back") as begun,
            pytest.raises(BadArchive, match="changed while"),
        ):
            begun.extract()

    assert list((tmp_path / "back").iterdir()) == []


def test_a_restore_that_fails_leaves_nothing(
    bare: BareStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare.save("page.md", "text\n")
    back_up(bare.store, tmp_path / "backup.tar")

    def fail(step: str, place: str) -> None:
        if step == "write" and place.endswith("page.md"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(steps, "hook", fail)
    with pytest.raises(OSError, match="No space"):
        restore(tmp_path / "backup.tar", tmp_path / "back")

    assert list((tmp_path / "back").iterdir()) == []


# -- kills ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reserve files instead of 64: making each is the same step over and over."""
    monkeypatch.setattr(reserve, "FILES", 2)


def is_shard(step: str, place: str) -> bool:
    """Making each of the 256 folders of outcomes is the same step over and over."""
    return step == "mkdir" and "outcomes/" in place and not place.endswith("/00")


def test_a_backup_that_is_killed_at_any_step_leaves_no_archive_and_the_store_as_it_was(
    tmp_path: Path, small_frame: None
) -> None:
    bare = BareStore(tmp_path / "data")
    bare.save("Eng/deploy.md", "text\n")
    answer(bare, request_named("one"))
    bare.close()
    (bare.path / "private/backup").mkdir()
    (bare.path / "private/backup/generation").write_text("1")

    def act(data_dir: Path) -> None:
        store = open_store(data_dir)
        back_up(store, data_dir / "backup.tar")
        store.close()

    for copy, step in killed_at_every_step(tmp_path / "data", tmp_path, act):
        archive = copy / "backup.tar"
        if archive.exists():
            back = restored(archive, tmp_path / f"back-{step}".replace("/", "-"))
            assert back.text_of("Eng/deploy.md") == "text\n", step
            back.close()
        else:
            assert step
        left = BareStore(copy)
        assert left.text_of("Eng/deploy.md") == "text\n", step
        assert left.disagreements() == [], step
        back_up(left.store, copy / "second.tar")
        assert not (left.path / "private/copying").exists(), step
        left.close()


def test_a_restore_that_is_killed_at_any_step_is_nothing_or_everything(
    tmp_path: Path, small_frame: None
) -> None:
    bare = BareStore(tmp_path / "data")
    bare.save("Eng/deploy.md", "one\n")
    bare.save("Eng/deploy.md", "two\n")
    answer(bare, request_named("one"))
    back_up(bare.store, tmp_path / "backup.tar")
    bare.close()
    wanted = tree_of(bare.path / "content")
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    seen = []

    def act(data_dir: Path) -> None:
        restore(tmp_path / "backup.tar", data_dir)

    for copy, step in killed_at_every_step(empty, tmp_path, act, skip=is_shard):
        seen.append(step)
        format_file = copy / layout.FORMAT_FILE
        says = format_file.read_text().strip() if format_file.exists() else None
        if says == layout.FORMAT:
            assert step in ("", "sync directory "), step
        else:
            assert says in (None, layout.RESTORING), step
            restore(tmp_path / "backup.tar", copy)
        back = BareStore(copy)
        assert tree_of(back.path / "content") == wanted, step
        assert back.disagreements() == [], step
        back.close()
        assert {path.name for path in copy.iterdir()} == {"FORMAT", "db.sqlite3", "orgs"}, step

    # Everything is durable before the first name, and every name before FORMAT says that it may be used.
    renamed = [step for step in seen if step in ("rename /db.sqlite3", "rename /orgs", "rename /FORMAT")]
    assert renamed == ["rename /FORMAT", "rename /db.sqlite3", "rename /orgs", "rename /FORMAT"]
    assert seen[seen.index("rename /db.sqlite3") - 1] == "sync filesystem .restoring"
    assert seen[seen.index("rename /orgs") + 1] == "sync directory "
