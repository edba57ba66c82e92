"""The proof of the proof: leave any one step of the store out, and a rig that passes otherwise finds something wrong.

Each row names the step, how it is left out, and the rig that must see it. What one rig cannot see another one must;
random kills alone see next to nothing.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core import claims, clock, locks
from kb.store import (
    applying,
    checkpoint,
    content_store,
    index,
    record,
    recovery,
    reserve,
    steps,
)
from kb.store.content_store import ContentStore, Transaction
from kb.store.layout import Layout
from kb.store.marks import Mark
from kb.store.record import RecordHead
from kb.store.segments import Segments
from tests.store import account, cuts, disks, interplay, kills, trouble
from tests.store.changes import Create, MakeFolder, make, request_of
from tests.store.children import ChildFailed, in_child
from tests.store.cuts import Mix, cut_everywhere
from tests.store.small import Small

Patch = Callable[[pytest.MonkeyPatch], None]
Rig = Callable[[Small], list[str]]
StepPicker = Callable[[str, str], bool]
CASES = {case.name: case for case in kills.CASES}
TREE = ("content", "private/outcomes")


@dataclass(frozen=True)
class Dropped:
    """One step, the way to leave it out, and the rig that must notice."""

    step: str
    rig: Rig
    patch: Patch = lambda patched: None


# -- rigs -------------------------------------------------------------------------------------------------------


def power(
    mix: Mix, *, without: StepPicker = lambda step, place: False, states: int = 150, stories: int = 6
) -> Rig:
    """The model of a disk that loses power."""
    return lambda past: (
        cut_everywhere(
            past,
            mix,
            states=states,
            stories=1 if mix is cuts.plain else stories,
            seed=3,
            renames=1,
            dropped=without,
        ).violations
    )


def killed(name: str, *, stride: int = 1) -> Rig:
    """A kill before each step, then a process that starts."""
    return lambda past: kills.kill_everywhere(past, CASES[name], stride=stride).violations


def killed_beside_a_reader(name: str) -> Rig:
    """A kill before each step beside a reader that started before."""
    return lambda past: kills.kill_beside_a_reader(past, CASES[name]).violations


def starved(past: Small) -> list[str]:
    """One writer among readers who never all leave, however busy the machine is."""
    saves, reads = interplay.crowd(
        past,
        readers=interplay.CROWD,
        writers=1,
        enough=lambda saves, reads: saves >= 6 or reads > 1_500,
        patience_seconds=0.5,
    )
    return [] if saves >= 6 else [f"{saves} saves beside {reads} reads"]


@contextmanager
def small_disk(past: Small, megabytes: int) -> Iterator[tuple[Path, Small]]:
    with disks.tmpfs(past.data_dir.parent / "disk", megabytes=megabytes) as disk:
        small = Small(disk / "data").provision().without_spare_shards()
        in_child(partial(seed, small))
        yield disk, small


def seed(small: Small) -> None:
    with small.opened() as store:
        make(store, Create("a.md", "first\n"))


def filling_disk(past: Small) -> list[str]:
    """A disk in memory that fills up while texts are saved."""
    with small_disk(past, 3) as (disk, small), pytest.MonkeyPatch.context() as patched:
        patched.setattr(content_store, "FREE_BYTES_MIN", -(10**12))  # nobody asks before
        return trouble.disk_fills_up(
            small, lambda: disks.resize(disk, megabytes=12), text="x" * 50_000, saves=60
        )


def disk_filled_by_somebody(past: Small) -> list[str]:
    """A real ext4 on which somebody takes every byte right behind a commit."""
    with disks.ext4(
        past.data_dir.parent / "image", past.data_dir.parent / "disk", megabytes=12, inodes=700
    ) as disk:
        small = Small(disk / "data").provision().without_spare_shards()
        in_child(partial(seed, small))
        return trouble.space_runs_out_behind_the_commit(
            small, MakeFolder("G/H"), lambda: disks.fill(disk), (disk / "somebody-elses").unlink
        )


def clocks_that_differ(past: Small) -> list[str]:
    """Two processes save in turn, and the clock jumps back."""
    with pytest.MonkeyPatch.context() as patched, past.opened() as one, past.opened() as other:
        now = clock.now()
        for number, (store, days) in enumerate([(one, 1), (other, 9), (one, 2), (other, 3)]):
            patched.setattr(clock, "now", lambda days=days: now.replace(year=now.year + days))
            make(store, Create(f"t{number}.md", "text\n"))
    return account.read_log(past.top).problems


def one_request_in_two_processes(past: Small) -> list[str]:
    """A request arrives while another process works on it."""
    with past.opened() as store, store.claim(request_of("the same")):
        try:
            in_child(partial(claim_elsewhere, past))
        except ChildFailed:
            return []
    return ["two processes work on one request"]


def claim_elsewhere(small: Small) -> None:
    with small.opened() as store, store.claim(request_of("the same")):
        pass


def two_writers(past: Small) -> list[str]:
    """Two processes stand in a transaction at the same time."""
    with past.opened() as store, store.transaction():
        try:
            in_child(partial(enter_transaction, past))
        except ChildFailed:
            return []
    return ["two processes hold the right to write"]


def enter_transaction(small: Small) -> None:
    store = small.open()
    store._queue.hold = partial(store._queue.hold, wait_seconds=0.05)  # type: ignore[method-assign]
    with store.transaction():
        pass


def first_start_cut_off(past: Small) -> list[str]:
    """A first start dies before its last syncs, the next one goes on, and the power is cut after a save."""
    names = ("", "orgs", "..")
    return cuts.cut_the_first_start(
        past.data_dir.parent / "first",
        dropped=lambda step, place: step == "sync directory" and place in names,
    ).violations


# -- ways to leave a step out -----------------------------------------------------------------------------------


def nothing(*arguments: object, **named: object) -> None:
    """Instead of a step."""


def replaced(owner: object, name: str, value: object) -> Patch:
    """Put something else in the place of a function or value."""
    return lambda patched: patched.setattr(owner, name, value)


def no_full_replay(patched: pytest.MonkeyPatch) -> None:
    real = recovery.recover

    def recover(layout: Layout, segments: Segments, *, from_checkpoint: bool) -> Mark:
        return real(layout, segments, from_checkpoint=False)

    patched.setattr(recovery, "recover", recover)


def replay_marked_record_by_record(patched: pytest.MonkeyPatch) -> None:
    def replay(layout: Layout, segments: Segments, scan: Any, **named: Any) -> None:
        with locks.hold_content(layout.locks, shared=False, wait_seconds=10):
            for place in scan.places:
                begin = Mark(place.lsn - 1, place.segment, place.start, place.lsn - 1)
                applying.write_applied(layout, begin.while_applying(place.lsn))
                applying.apply(layout, place.lsn, segments.read(place).operations, staged=set())
                applying.write_applied(layout, Mark(place.lsn, place.segment, place.end, place.lsn))

    patched.setattr(recovery, "_replay", replay)


def tail_rewritten_and_not_synced(patched: pytest.MonkeyPatch) -> None:
    def harden(segments: Segments, place: Any) -> None:
        steps.write_at(
            segments.for_appending(place.segment), place.start, segments.read_bytes(place), recovery.LOG_PLACE
        )

    patched.setattr(recovery, "_harden", harden)


def tail_synced_and_not_rewritten(patched: pytest.MonkeyPatch) -> None:
    def harden(segments: Segments, place: Any) -> None:
        steps.sync_data(segments.for_appending(place.segment), recovery.LOG_PLACE)
        segments.sync_directory()

    patched.setattr(recovery, "_harden", harden)


def only_own_paths_synced(patched: pytest.MonkeyPatch) -> None:
    own: set[int] = set()
    append, sync_changes = ContentStore.append, checkpoint._sync_changes
    makers: dict[int, set[int]] = {}

    def noting(store: ContentStore, *arguments: Any, **named: Any) -> None:
        append(store, *arguments, **named)
        applied = store.layout.read_applied()
        assert applied is not None
        makers.setdefault(store.layout.root, set()).add(applied.lsn)

    def own_changes(layout: Layout, previous: Mark, applied: Mark) -> None:
        own.clear()
        own.update(makers.get(layout.root, set()))
        with pytest.MonkeyPatch.context() as inner:
            heads = Segments.heads

            def own_heads(segments: Segments, start: Mark, end: Mark) -> Iterator[RecordHead]:
                return (head for head in heads(segments, start, end) if head.lsn in own)

            inner.setattr(Segments, "heads", own_heads)
            sync_changes(layout, previous, applied)

    patched.setattr(ContentStore, "append", noting)
    patched.setattr(checkpoint, "_sync_changes", own_changes)


def no_checksum(patched: pytest.MonkeyPatch) -> None:
    real = record.decode_at

    def decode_at(data: Any, position: int, **named: Any) -> Any:
        view = memoryview(data)
        try:
            length, _, _ = record.head_lengths(bytes(view[position : position + record.PREFIX_BYTES]))
        except (record.DamagedRecord, struct.error):
            return real(data, position, **named)
        whole = bytes(view[position : position + length])
        if len(whole) == length >= record.RECORD_MIN_BYTES:
            whole = whole[:-32] + hashlib.sha256(whole[:-32]).digest()
            data = b"".join([view[:position], whole, view[position + length :]])
        return real(data, position, **named)

    patched.setattr(record, "decode_at", decode_at)


def no_gate(patched: pytest.MonkeyPatch) -> None:
    @contextmanager
    def hold_content(directory: int, *, shared: bool, wait_seconds: float) -> Iterator[None]:
        content = locks.FileLock(directory, "content", locks.Rank.CONTENT, shared=shared)
        content.acquire(wait_seconds=wait_seconds)
        try:
            yield
        finally:
            content.release()

    patched.setattr(locks, "hold_content", hold_content)


@contextmanager
def no_lock(*arguments: object, **named: object) -> Iterator[None]:
    """Instead of a lock."""
    yield


def size_as_key(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(index, "_key", lambda data: b"")


def no_outcome(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Transaction, "keep_outcome", nothing)


def own_time_only(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(ContentStore, "_next_time", lambda store, applied: clock.timestamp())


def staged_behind_the_commit(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(applying, "stage", lambda layout, lsn, operations: set())


def no_ballast(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(reserve, "_give_up_one", lambda layout: False)


def no_cut_back(patched: pytest.MonkeyPatch) -> None:
    real = steps.truncate

    def truncate(descriptor: int, size: int, place: str) -> None:
        if place != recovery.LOG_PLACE:
            real(descriptor, size, place)

    patched.setattr(steps, "truncate", truncate)


def only(step: str, place: str = "") -> StepPicker:
    """This step, at this place or anywhere."""
    return lambda found, where: found == step and place in ("", where)


def in_tree(step: str) -> StepPicker:
    """This step on content and outcomes."""
    return lambda found, where: found == step and where.startswith(TREE)


# Syncs: only the model sees them. Kills leave the page cache alone, and a real ext4 forgives.
SYNCS = [
    Dropped("sync of the log", power(cuts.plain, without=only("sync data"))),
    Dropped("sync of the segments' folder", power(cuts.plain, without=only("sync directory", "log"))),
    Dropped("checkpoint's sync of files", power(cuts.plain, without=in_tree("sync file"))),
    Dropped("checkpoint's sync of folders", power(cuts.plain, without=in_tree("sync directory"))),
    Dropped("checkpoint's sync of everything", power(cuts.plain, without=only("sync filesystem"))),
    Dropped(
        "sync of the checkpoint file",
        power(cuts.plain, without=only("sync file", "private/checkpoint.new")),
    ),
    Dropped("paths of others in a checkpoint", power(cuts.beside_a_checkpoint), only_own_paths_synced),
    Dropped(
        "mark of a failed sync of the tree",
        power(cuts.failed_tree_sync),
        replaced(checkpoint, "is_unsynced", lambda layout: False),
    ),
    Dropped("replay since the checkpoint", power(cuts.dead_writer), no_full_replay),
    Dropped(
        "rewriting and syncing a found tail",
        power(cuts.failed_log_sync),
        replaced(recovery, "_harden", nothing),
    ),
    Dropped(
        "syncing a rewritten tail",
        power(cuts.dead_writer, states=600, stories=24),
        tail_rewritten_and_not_synced,
    ),
    Dropped("rewriting a synced tail", power(cuts.failed_log_sync), tail_synced_and_not_rewritten),
    # Records differ from run to run, and with them the few states in which one is whole but for its middle.
    Dropped("checksum of a record", power(cuts.plain, states=900), no_checksum),
    Dropped("syncs of a first start", first_start_cut_off),
    Dropped(
        "sync after each segment that goes",
        power(cuts.sweeping, without=only("sync directory", "private/log"), states=900),
    ),
    # Each alone is enough: the checkpoint syncs its name, and a sweep syncs everything before it trusts it.
    Dropped(
        "both syncs before history goes",
        power(
            cuts.sweeping,
            without=lambda step, place: (
                step == "sync filesystem" or (step, place) == ("sync directory", "private")
            ),
        ),
    ),
]
# What a writer that dies leaves: some of it only a process that lives on can see.
DEATHS = [
    Dropped(
        "look at the tail before an append",
        killed_beside_a_reader("update"),
        replaced(recovery, "_ends_at", lambda segments, applied: True),
    ),
    Dropped(
        "look for a later segment",
        killed_beside_a_reader("segment roll"),
        replaced(Segments, "exists", lambda segments, segment: False),
    ),
    Dropped(
        "applying in the mark",
        killed_beside_a_reader("update"),
        replaced(Mark, "while_applying", lambda mark, lsn: mark),
    ),
    Dropped("reader's look at the mark", killed_beside_a_reader("update"), replaced(Mark, "is_whole", True)),
    Dropped(
        "mark before a replay of many",
        lambda past: interplay.kill_the_replay_of_many(past).violations,
        replay_marked_record_by_record,
    ),
    Dropped("cutting a torn tail off", killed("several writes"), no_cut_back),
    Dropped("emptying the stage", killed("create", stride=3), replaced(applying, "empty_stage", nothing)),
    Dropped("outcome in the record", killed("create", stride=3), no_outcome),
]
# What the disk does by itself.
TROUBLE = [
    Dropped(
        "floor of the torn rule",
        interplay.rot_in_the_last_record,
        replaced(recovery, "_synced", lambda checkpoint, applied: 0),
    ),
    Dropped("files staged before the commit", filling_disk, staged_behind_the_commit),
    Dropped("ballast", disk_filled_by_somebody, no_ballast),
]
# What two processes may do to each other.
OTHERS = [
    Dropped("key of a decoded registry", interplay.compact_twice_beside_a_reader, size_as_key),
    Dropped("content lock", interplay.read_while_another_saves, replaced(locks, "hold_content", no_lock)),
    Dropped("gate", starved, no_gate),
    Dropped("writer lock", two_writers, replaced(locks.WriterQueue, "hold", no_lock)),
    Dropped("claim", one_request_in_two_processes, replaced(claims, "hold_claim", no_lock)),
    Dropped("time of others' records", clocks_that_differ, own_time_only),
]
DROPPED = [*SYNCS, *DEATHS, *TROUBLE, *OTHERS]
OWN_RIGS = [
    filling_disk,
    disk_filled_by_somebody,
    starved,
    two_writers,
    one_request_in_two_processes,
    clocks_that_differ,
]


@pytest.mark.parametrize("dropped", DROPPED, ids=[dropped.step.replace(" ", "-") for dropped in DROPPED])
def test_a_step_that_is_left_out_is_noticed(
    past: Small, dropped: Dropped, tried: Callable[[str, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_store, "CONTENT_WAIT_SECONDS", 2.0)
    with pytest.MonkeyPatch.context() as patched:
        dropped.patch(patched)
        violations = dropped.rig(past)

    assert violations != [], f"nobody noticed that this was left out: {dropped.step}"
    tried("dropped steps noticed", 1)


@pytest.mark.parametrize("rig", OWN_RIGS, ids=lambda rig: rig.__name__)
def test_a_rig_finds_nothing_where_nothing_is_left_out(past: Small, rig: Rig) -> None:
    assert rig(past) == []
