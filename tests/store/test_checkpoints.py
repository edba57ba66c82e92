"""Checkpoints: what a failed one leaves, who makes the next one, and what a stop waits for."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.locks import Rank, hold
from kb.store import check, checkpoint, content_store, steps
from kb.store.content_store import ContentStore
from tests.core.waiting import Task, until
from tests.store import account
from tests.store.changes import Create, MakeFolder, Update, make, text_of
from tests.store.children import in_child
from tests.store.small import Small
from tests.store.trouble import Refusing, syncs_of


@pytest.fixture(autouse=True)
def no_failed_sync_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A failed sync is remembered by the process; here it is forgotten after each test."""
    monkeypatch.setattr(content_store, "_sync_failed", threading.Event())
    yield
    steps.hook = None


def durable(small: Small) -> int:
    mark = account.mark(small.private / "checkpoint")
    assert mark is not None
    return mark[0]


@pytest.mark.parametrize(
    ("part", "paths_max"),
    [("content", 64), ("private/outcomes", 64), ("private", 0)],
    ids=["content", "outcomes", "filesystem"],
)
def test_after_a_failed_sync_nobody_makes_a_checkpoint_before_everything_was_written_again(
    small: Small, monkeypatch: pytest.MonkeyPatch, part: str, paths_max: int
) -> None:
    monkeypatch.setattr(checkpoint, "PATHS_MAX", paths_max)
    with small.opened() as store:
        make(store, Create("a.md", "first\n"), "r1")
        steps.hook = refusing = Refusing(syncs_of(part), times=1)
        store.checkpoint()
        assert len(refusing.seen) == 1

        make(store, Update("a.md", "second\n"), "r2")
        store.checkpoint()
        in_child(lambda: look_and_stop(small))  # another process, which saw no error

        assert durable(small) == 1
        assert text_of(store, "a.md") == "second\n"
        make(store, Create("b.md", "text\n"), "r3")
    assert durable(small) == 1

    replayed = in_child(lambda: look_and_stop(small))

    assert replayed == "second\n"
    assert durable(small) == 4
    assert not (small.private / "unsynced").exists()
    assert account.problems_at_rest(small.top) == []


def look_and_stop(small: Small) -> str | None:
    # The child of a process with a failed sync knows of it; a new process would not.
    content_store._sync_failed.clear()
    with small.opened() as store:
        store.checkpoint()
        return text_of(store, "a.md")


def test_a_start_that_finds_others_alive_does_not_forget_a_failed_sync(small: Small) -> None:
    with small.opened() as store:
        make(store, Create("a.md", "first\n"))
        steps.hook = Refusing(syncs_of("content"), times=1)
        store.checkpoint()

        in_child(lambda: look_and_stop(small))

        assert (small.private / "unsynced").exists()


@pytest.mark.parametrize("step", ["create", "write", "sync file", "rename", "sync directory"])
def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one_and_the_next_one_succeeds(
    small: Small, store: ContentStore, step: str
) -> None:
    make(store, Create("a.md", "first\n"))
    steps.hook = refusing = Refusing(
        lambda found, place: found == step and place.startswith("private") and "outcomes" not in place,
        times=1,
    )
    store.checkpoint()
    assert len(refusing.seen) == 1
    assert durable(small) == (2 if step == "sync directory" else 1)

    store.checkpoint()
    make(store, Update("a.md", "second\n"))
    store.checkpoint()

    assert durable(small) == 3


def test_strange_things_in_the_tree_do_not_stop_checkpoints(small: Small, store: ContentStore) -> None:
    for number, name in enumerate(["link", "folder", "gone", "pipe"]):
        make(store, Create(f"{name}.md", f"{number}\n"))
    make(store, MakeFolder("Eng/Ops"))
    make(store, Create("Eng/Ops/deep.md", "text\n"))
    for name in ("link", "folder", "gone", "pipe"):
        (small.content / f"{name}.md").unlink()
    (small.content / "link.md").symlink_to("/etc/passwd")
    (small.content / "folder.md").mkdir()
    os.mkfifo(small.content / "pipe.md")
    shutil.rmtree(small.content / "Eng" / "Ops")

    store.checkpoint()

    assert durable(small) == 7
    assert not (small.private / "unsynced").exists()


def test_a_checkpoint_that_is_under_way_elsewhere_is_not_waited_for(
    small: Small, store: ContentStore
) -> None:
    make(store, Create("a.md", "first\n"))
    with hold(store.layout.locks, "checkpoint", Rank.CHECKPOINT):
        Task(store.checkpoint).result()

        assert durable(small) == 1


def test_a_stop_waits_for_the_checkpoint_that_is_under_way_and_makes_its_own(small: Small) -> None:
    store = small.open()
    make(store, Create("a.md", "first\n"))
    with small.opened() as other:
        with hold(other.layout.locks, "checkpoint", Rank.CHECKPOINT):
            stop = Task(store.close)
            until(lambda: not store._checkpointer.is_alive() if store._checkpointer else False)
        stop.result()

        assert durable(small) == 2


def test_a_checkpoint_does_not_run_beyond_what_was_applied(
    small: Small, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, Create("a.md", "first\n"))
    saved: list[str] = []

    def save_beside(step: str, place: str) -> None:
        if step == "sync directory" and not saved:
            saved.append(place)
            Task(lambda: make(store, Update("a.md", "second\n"))).result()

    monkeypatch.setattr(steps, "hook", save_beside)
    store.checkpoint()

    assert saved
    assert durable(small) == 2
    assert text_of(store, "a.md") == "second\n"


def test_nothing_of_a_checkpoint_is_left_over(small: Small, store: ContentStore) -> None:
    make(store, Create("a.md", "first\n"))
    before: set[Path] = set(small.private.iterdir())

    store.checkpoint()

    assert set(small.private.iterdir()) == before


def test_a_failed_sync_is_named_by_a_check(small: Small, store: ContentStore) -> None:
    make(store, Create("a.md", "first\n"))
    steps.hook = Refusing(syncs_of("content"), times=1)
    store.checkpoint()

    assert [found.place for found in check.check(store).disagreements] == ["private/unsynced"]
