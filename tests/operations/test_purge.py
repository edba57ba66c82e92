import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest
import time_machine

import kb.services.purge_history
from access.audit import AuditAction
from access.models import AuditEvent
from core import clock, locks
from core.errors import Forbidden, NotFound
from core.types import EntryLocator, Role
from kb.services.delete_entry import delete_entry
from kb.services.purge_history import PurgeReport, purge_history
from kb.services.read_entry import read_entry
from kb.services.update_entry import update_entry
from kb.store import faults, purging, steps, upkeep
from kb.store import fold as folding
from kb.store.check import check
from kb.store.content_store import ContentStore
from kb.store.faults import MediaFault
from kb.store.purging import Images
from kb.store.record import Put
from kb.store.stores import store_of
from tests.operations.bare import BareStore, open_store, record_cause
from tests.operations.kills import killed_at_every_step
from tests.world import World

pytestmark = pytest.mark.django_db(transaction=True)
DAY = dt.timedelta(days=1)
DEPLOY = "Eng/deploy.md"


def save(world: World, path: str, text: str) -> None:
    """Give an entry that is there another text."""
    entry = read_entry(world.system, EntryLocator(path=path)).entry
    update_entry(world.system, None, EntryLocator(path=path), expected_version=entry.version, content=text)


def delete(world: World, path: str) -> None:
    entry = read_entry(world.system, EntryLocator(path=path)).entry
    delete_entry(world.system, None, EntryLocator(path=path), expected_version=entry.version)


def log_of(world: World) -> bytes:
    """Everything that the log's files hold."""
    store = store_of(world.organization_id)
    folder = Path(f"/proc/self/fd/{store.layout.log}")
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def disagreements(world: World) -> list[str]:
    return [f"{found.place}: {found.what}" for found in check(store_of(world.organization_id)).disagreements]


def purge(world: World, path: str, **options: object) -> PurgeReport:
    return purge_history(world.system, path, **options)  # type: ignore[arg-type]


def test_old_texts_of_an_entry_go_and_the_one_it_has_now_stays(world: World) -> None:
    world.entry(DEPLOY, "password one\n")
    world.entry("Eng/other.md", "of somebody else\n")
    save(world, DEPLOY, "password two\n")
    save(world, DEPLOY, "no password\n")
    size = len(log_of(world))

    report = purge(world, "eng/DEPLOY.md")

    assert report == PurgeReport(DEPLOY, images=2, is_live=True, deleted_before=0, quarantined=0)
    kept = log_of(world)
    assert b"password one" not in kept
    assert b"password two" not in kept
    assert b"no password" in kept
    assert b"of somebody else" in kept
    assert len(kept) > size
    assert world.text_of(DEPLOY) == "no password\n"
    assert disagreements(world) == []


def test_every_text_of_a_deleted_entry_goes(world: World) -> None:
    world.entry(DEPLOY, "password one\n")
    save(world, DEPLOY, "password two\n")
    delete(world, DEPLOY)

    report = purge(world, DEPLOY)

    assert report == PurgeReport(DEPLOY, images=2, is_live=False, deleted_before=0, quarantined=0)
    assert b"password" not in log_of(world)
    assert disagreements(world) == []


def test_texts_of_that_moment_and_later_stay(world: World) -> None:
    world.entry(DEPLOY, "password one\n")
    with time_machine.travel(clock.now() + DAY, tick=True):
        moment = clock.now()
        save(world, DEPLOY, "password two\n")
        save(world, DEPLOY, "no password\n")

        report = purge(world, DEPLOY, before=moment)

    assert report.images == 1
    assert b"password one" not in log_of(world)
    assert b"password two" in log_of(world)


def test_deleted_entries_of_the_same_path_are_meant_only_when_asked_for(world: World) -> None:
    world.entry(DEPLOY, "password of the first\n")
    delete(world, DEPLOY)
    world.entry(DEPLOY, "password of the second\n")
    save(world, DEPLOY, "no password\n")

    live = purge(world, DEPLOY)
    between = log_of(world)
    deleted = purge(world, DEPLOY, deleted=True)

    assert live == PurgeReport(DEPLOY, images=1, is_live=True, deleted_before=1, quarantined=0)
    assert b"of the first" in between
    assert b"of the second" not in between
    assert deleted == PurgeReport(DEPLOY, images=1, is_live=False, deleted_before=0, quarantined=0)
    assert b"password of" not in log_of(world)
    assert world.text_of(DEPLOY) == "no password\n"


def test_a_second_purge_finds_nothing(world: World) -> None:
    world.entry(DEPLOY, "password\n")
    save(world, DEPLOY, "")
    save(world, DEPLOY, "no password\n")

    assert [purge(world, DEPLOY).images, purge(world, DEPLOY).images] == [1, 0]


def test_a_path_that_no_entry_ever_had_is_not_found(world: World) -> None:
    world.entry(DEPLOY, "text\n")

    for path, deleted in ((DEPLOY, True), ("Eng/missing.md", False), ("Missing/deploy.md", False)):
        with pytest.raises(NotFound):
            purge(world, path, deleted=deleted)


def test_only_administrators_and_the_shell_purge(world: World) -> None:
    world.entry(DEPLOY, "password\n")
    save(world, DEPLOY, "no password\n")
    ada = world.person("ada", role=Role.OWNER, on="Eng")

    with pytest.raises(Forbidden):
        purge_history(ada, DEPLOY)

    assert b"password\n" in log_of(world)


def test_a_purge_is_audited_and_is_a_record_of_its_own(world: World) -> None:
    world.entry(DEPLOY, "password\n")
    save(world, DEPLOY, "no password\n")

    purge(world, DEPLOY)

    event = AuditEvent.objects.get(action=AuditAction.PURGE_HISTORY)
    assert (event.actor_username, event.through, event.folder_path, event.before) == (
        "system",
        "shell",
        "Eng",
        DEPLOY,
    )
    layout = store_of(world.organization_id).layout
    records = [found[1] for found in folding.walk_log(layout) if not isinstance(found, folding.LogDamage)]
    assert [
        (record.cause.action, [one.path for one in record.cause.subjects]) for record in records[-1:]
    ] == [("purge", [DEPLOY])]


def test_a_purge_waits_for_no_other_upkeep_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.entry(DEPLOY, "text\n")
    monkeypatch.setattr(kb.services.purge_history, "UPKEEP_WAIT_SECONDS", 0.01)

    with (
        upkeep.hold_upkeep(store_of(world.organization_id).layout, wait_seconds=0),
        pytest.raises(locks.LockBusy),
    ):
        purge(world, DEPLOY)


# -- the log itself ---------------------------------------------------------------------------------------------


def purge_all(store: ContentStore, path: str) -> int:
    """What the service does to the log, without accounts and audit; every text but the newest of a live entry."""
    folder, _, name = path.rpartition("/")
    with upkeep.hold_upkeep(store.layout, wait_seconds=0):
        upkeep.remove_leftovers(store.layout)
        with store.transaction() as transaction:
            known = transaction.folder_at([folder])
            assert known is not None
            line = known.entry_named(name)
            assert line is not None
            images = Images(("content", folder, name), line.existence_seq, line.content_seq - 1)
            lsn = transaction.lsn_of_change
            store.append(record_cause(transaction.time), [], new_segment=True)
        return purging.purge(store, [images], purged_by=lsn)


def texts_in_log(bare: BareStore) -> list[bytes]:
    return [
        operation.data
        for found in folding.walk_log(bare.store.layout)
        if not isinstance(found, folding.LogDamage)
        for operation in found[1].operations
        if isinstance(operation, Put) and operation.path[-1].endswith(".md")
    ]


def prepared(tmp_path: Path) -> BareStore:
    """An entry with four texts in three segments, one of which holds two, among other entries."""
    bare = BareStore(tmp_path / "data")
    bare.save("Eng/secret.md", "secret one\n")
    bare.save("Eng/other.md", "other one\n")
    bare.begin_segment()
    bare.save("Eng/secret.md", "secret two\n")
    bare.save("Eng/secret.md", "secret three\n")
    bare.begin_segment()
    bare.save("Eng/secret.md", "harmless\n")
    return bare


def test_a_purge_that_is_killed_at_any_step_loses_nothing_and_is_finished_by_the_next(tmp_path: Path) -> None:
    bare = prepared(tmp_path)
    segments = {file.name: file.stat().st_size for file in bare.log.iterdir()}
    bare.close()
    seen = []

    def act(data_dir: Path) -> None:
        store = open_store(data_dir)
        assert purge_all(store, "Eng/secret.md") == 3
        store.close()

    for copy, step in killed_at_every_step(tmp_path / "data", tmp_path, act):
        seen.append(step)
        left = BareStore(copy)
        assert left.text_of("Eng/secret.md") == "harmless\n", step
        assert left.text_of("Eng/other.md") == "other one\n", step
        assert left.disagreements() == [], step
        purge_all(left.store, "Eng/secret.md")
        assert b"secret" not in b"".join(texts_in_log(left)), step
        assert {b"harmless\n", b"other one\n"} <= set(texts_in_log(left)), step
        assert {name: (left.log / name).stat().st_size for name in segments} == segments, step
        assert {file.suffix for file in left.log.iterdir()} == {".log"}, step
        assert left.disagreements() == [], step
        left.close()

    renamed = [step for step in seen if step.startswith("rename private/log/")]
    assert len(renamed) == 2
    # A checkpoint covers the purge before anything is renamed over, and each new file is durable before its name.
    assert seen.index("rename private/checkpoint") < seen.index(renamed[0])
    for step in renamed:
        assert seen[seen.index(step) - 1] == step.replace("rename", "sync file") + ".new"
        assert seen[seen.index(step) + 1] == "sync directory private/log"


def test_a_damaged_record_is_not_made_whole_by_a_purge(tmp_path: Path) -> None:
    bare = prepared(tmp_path)
    segment = min(bare.log.iterdir())
    data = bytearray(segment.read_bytes())
    data[data.index(b"secret one")] ^= 1
    segment.write_bytes(data)

    with pytest.raises(MediaFault):
        purge_all(bare.store, "Eng/secret.md")

    assert segment.read_bytes() == data
    assert [file.name for file in bare.log.iterdir() if file.suffix != ".log"] == []
    bare.close()


def test_others_save_while_a_purge_is_under_way(tmp_path: Path) -> None:
    bare = prepared(tmp_path)
    other = open_store(bare.data_dir)
    with other.snapshot():
        pass
    saved = bare.store

    def save_in_between(store: ContentStore) -> Callable[[str, str], None]:
        done: list[str] = []

        def hook(step: str, place: str) -> None:
            if step == "sync file" and place.endswith(".log.new") and not done:
                done.append(place)
                bare.store = store
                bare.save("Eng/new.md", "saved meanwhile\n")
                bare.store = saved

        return hook

    steps.hook = save_in_between(other)
    try:
        purge_all(bare.store, "Eng/secret.md")
    finally:
        steps.hook = None

    assert bare.text_of("Eng/new.md") == "saved meanwhile\n"
    assert b"secret" not in b"".join(texts_in_log(bare))
    assert bare.disagreements() == []
    assert not faults.is_marked(bare.store.layout)
    other.close()
    bare.close()
