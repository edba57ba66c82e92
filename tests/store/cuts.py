"""Rigs that cut the power: stories told by real stores, and for each the states that a disk could be in after a cut.

A story notes when each request was acknowledged. In every state a process must start, see what the log says and every
request that was acknowledged before the cut, save once more, and survive a second cut during all that.
"""

import errno
import os
import random
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest

from core.errors import StorageUnavailable
from kb.store import checkpoint, content_store, retention, steps
from kb.store.content_store import ContentStore
from tests.store import account
from tests.store.changes import Change, Create, Delete, Import, MakeFolder, Retitle, Update, make, request_of
from tests.store.power import Disk, Recorder
from tests.store.seeing import picture
from tests.store.small import Small, vanish

SECOND_CUTS = 0.15
CHANGES: list[Change] = [
    Create("n.md", "N" * 300),
    Update("a.md", "A1" * 200),
    Delete("b.md"),
    MakeFolder("G"),
    Create("G/d.md", "D" * 99),
    Update("F/c.md", "Z" * 777),
    Create("b.md", "again"),
    Retitle("b.md", "B"),
    Update("G/d.md", "E" * 500),
    Delete("F/c.md"),
    Create("F/c.md", "new" * 40),
    Update("a.md", "A2" * 90),
    Update("a.md", "A3" * 90),
    Import({"I/x.md": "x\n", "I/J/y.md": "y\n" * 50, "z.md": "z\n"}),
    Update("a.md", "A4" * 90),
    MakeFolder("G/H/K"),
    Create("G/H/e.md", "e" * 70),
    Update("n.md", "N2" * 60),
    Delete("I/x.md"),
    Retitle("n.md", "N"),
]


class Cut(BaseException):
    """The process ends here."""


class Story:
    """Changes made by stores that stand for processes, with the position in the recording of each acknowledgement."""

    def __init__(self, small: Small, recorder: Recorder, rng: random.Random) -> None:
        self.rng = rng
        self.acknowledged: list[tuple[int, str]] = []
        # Records that a sweep may have let go: what they led to must be in the tree all the same.
        self.let_go: dict[int, account.LoggedRecord] = {}
        self.segments_let_go = 0
        self._small = small
        self._recorder = recorder
        self._open: list[ContentStore] = []
        self._told = 0

    def process(self) -> ContentStore:
        """Another process. It knows nothing of what another one met."""
        content_store._sync_failed.clear()
        store = self._small.open()
        self._open.append(store)
        picture(store)
        return store

    def make(self, store: ContentStore, change: Change, number: int) -> None:
        """Make a change under the request of this number, and note when it was acknowledged."""
        make(store, change, f"change {number}")
        self.acknowledged.append((len(self._recorder.events), request_of(f"change {number}").key))

    def sweep(self, store: ContentStore) -> None:
        """Let as much history go as may go."""
        for record in account.read_log(self._small.top).records:
            self.let_go[record.lsn] = record
        self.segments_let_go += retention.sweep(store, history_days=3650, history_bytes=0).segments

    def cut_off(self, work: Callable[[], object], *, at: int) -> None:
        """Let the process end before its n-th step from now on."""
        left = at

        def hook(step: str, place: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Cut

        steps.hook = hook
        try:
            work()
        except Cut:
            pass
        finally:
            steps.hook = None

    def vanish(self, store: ContentStore) -> None:
        """The process is gone, as SIGKILL ends it."""
        self._open.remove(store)
        vanish(store)

    def stop(self, store: ContentStore) -> None:
        """The process stops cleanly."""
        self._open.remove(store)
        store.close()

    def end(self) -> None:
        """Everybody is gone."""
        steps.hook = None
        for store in list(self._open):
            self.vanish(store)


Mix = Callable[[Story], None]


def plain(story: Story) -> None:
    """One process after the other, with checkpoints between and clean stops."""
    store = story.process()
    for number, change in enumerate(CHANGES):
        story.make(store, change, number)
        if number % 4 == 3:
            store.checkpoint()
        if number % 7 == 6:
            story.stop(store)
            store = story.process()


def dead_writer(story: Story) -> None:
    """A process dies at a random step, with others alive or not; another one repeats the request and goes on."""
    number = 0
    dead = story.process()
    while number < len(CHANGES):
        for _ in range(story.rng.randrange(4)):
            if number < len(CHANGES):
                story.make(dead, CHANGES[number], number)
                number += 1
        if number == len(CHANGES):
            return
        change = CHANGES[number]
        heir = story.process() if story.rng.random() < 0.5 else None
        story.cut_off(lambda store=dead, change=change, n=number: make(store, change, f"change {n}"),  # type: ignore[misc]
                      at=story.rng.randint(1, 20))  # fmt: skip
        story.vanish(dead)
        dead = heir or story.process()
        if story.rng.random() < 0.5:
            picture(dead)
        story.make(dead, change, number)
        if story.rng.random() < 0.3:
            dead.checkpoint()
        number += 1


def failed_log_sync(story: Story) -> None:
    """A sync of the log fails: the outcome is unknown, and another process repeats the request."""
    stores = [story.process(), story.process()]
    for number, change in enumerate(CHANGES):
        one, other = story.rng.sample(stores, 2)
        if story.rng.random() < 0.4:
            steps.hook = _failing_once(
                lambda step, place: step.startswith("sync") and place in ("private/log", "log"), story.rng
            )
            try:
                story.make(one, change, number)
            except StorageUnavailable:
                pass
            steps.hook = None
        story.make(other, change, number)
        if number % 5 == 4:
            one.checkpoint()


def failed_tree_sync(story: Story) -> None:
    """A sync of the tree fails in one process; another one, which was not told, makes the next checkpoint."""
    stores = [story.process(), story.process()]
    for number, change in enumerate(CHANGES):
        one, other = story.rng.sample(stores, 2)
        story.make(one, change, number)
        if number % 4 == 3:
            steps.hook = _failing_once(
                lambda step, place: _is_tree(place) and step.startswith("sync"), story.rng
            )
            one.checkpoint()
            steps.hook = None
            content_store._sync_failed.clear()
            other.checkpoint()
        if number % 8 == 7:
            for store in stores:
                story.vanish(store)
            stores = [story.process(), story.process()]


def beside_a_checkpoint(story: Story) -> None:
    """One process makes checkpoints; before any of its steps another one may save."""
    saver, keeper = story.process(), story.process()
    changes = list(enumerate(CHANGES))
    busy = False

    def save(step: str, place: str) -> None:
        nonlocal busy
        if not busy and changes and story.rng.random() < 0.3:
            busy = True
            number, change = changes.pop(0)
            story.make(saver, change, number)
            busy = False

    while changes:
        for _ in range(2):
            if changes:
                number, change = changes.pop(0)
                story.make(saver, change, number)
        steps.hook = save
        keeper.checkpoint()
        steps.hook = None


def sweeping(story: Story) -> None:
    """History is let go between the changes, by one process while another one saves."""
    saver, keeper = story.process(), story.process()
    for number, change in enumerate(CHANGES):
        story.make(saver, change, number)
        if number % 3 == 2:
            keeper.checkpoint()
        if number % 6 == 5:
            story.sweep(keeper)
    assert story.segments_let_go > 2


def _failing_once(concerns: Callable[[str, str], bool], rng: random.Random) -> Callable[[str, str], None]:
    left = rng.randint(1, 6)

    def hook(step: str, place: str) -> None:
        nonlocal left
        if concerns(step, place):
            left -= 1
            if left == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    return hook


def _is_tree(place: str) -> bool:
    return place.startswith(("content", "private/outcomes")) or place == "private"


MIXES: list[Mix] = [plain, dead_writer, failed_log_sync, failed_tree_sync, beside_a_checkpoint, sweeping]


@dataclass
class Findings:
    """How many states a rig tried, and what was wrong in which."""

    states: int = 0
    bad: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, where: str, problems: list[str]) -> None:
        """Note one state and what is wrong in it."""
        self.states += 1
        if problems:
            self.bad += 1
            self.violations += [f"{where}: {problem}" for problem in problems]


def small_constants(patched: pytest.MonkeyPatch) -> None:
    """Segments of a few records, registries that are soon compacted, checkpoints path by path or of everything."""
    patched.setattr(content_store, "SEGMENT_BYTES", 6000)
    patched.setattr(content_store, "COMPACT_SLACK_LINES", 2)
    patched.setattr(checkpoint, "PATHS_MAX", 12)
    patched.setattr(content_store, "_sync_failed", threading.Event())
    patched.setattr(retention, "DAILY_SHARE", 1)
    patched.setattr(retention, "_rests", lambda layout: False)


def cut_everywhere(
    past: Small,
    mix: Mix,
    *,
    states: int,
    stories: int,
    seed: int,
    renames: int,
    dropped: Callable[[str, str], bool] = lambda step, place: False,
) -> Findings:
    """Tell the story and try ``states`` images that a cut could leave at random moments of it.

    ``dropped`` picks the syncs that do not count, as if the code had left them out.
    """
    findings = Findings()
    rng = random.Random(f"{mix.__name__} {seed} {renames}")
    with pytest.MonkeyPatch.context() as patched:
        small_constants(patched)
        for number in range(stories):
            trial = past.copy_to(past.data_dir.parent / "told")
            recorder = Recorder(trial.top, dropped=dropped)
            story = Story(trial, recorder, rng)
            where = f"{mix.__name__}, story {number}"
            try:
                with recorder.recording():
                    mix(story)
            except Exception as error:  # noqa: BLE001 - a dropped step may end a story in any way
                findings.add(where, [f"the story ended in {error!r}"])
                continue
            finally:
                story.end()
            _cut(
                past.data_dir.parent / "cut",
                story,
                recorder,
                where,
                states // stories,
                rng,
                renames,
                findings,
            )
    return findings


def _cut(
    data_dir: Path,
    story: Story,
    recorder: Recorder,
    where: str,
    states: int,
    rng: random.Random,
    renames: int,
    findings: Findings,
) -> None:
    disk, fed = Disk(recorder.start, renames=renames), 0
    trial = Small(data_dir)
    trial.top.parent.mkdir(parents=True, exist_ok=True)
    for moment in sorted(rng.randrange(len(recorder.events) + 1) for _ in range(states)):
        for event in recorder.events[fed:moment]:
            disk.feed(event)
        fed = moment
        disk.sample(rng).write_to(trial.top)
        acknowledged = [key for position, key in story.acknowledged if position <= moment]
        second = Recorder(trial.top, dropped=recorder._dropped) if rng.random() < SECOND_CUTS else None
        problems = problems_after_a_cut(trial, acknowledged, second, story.let_go)
        findings.add(f"{where}, cut after step {moment}", problems)
        if second is not None and not problems:
            again = Disk(second.start, renames=renames)
            for event in second.events[: rng.randrange(len(second.events) + 1)]:
                again.feed(event)
            again.sample(rng).write_to(trial.top)
            problems = problems_after_a_cut(trial, acknowledged, None, story.let_go)
            findings.add(f"{where}, cut after step {moment} and again", problems)


def problems_after_a_cut(
    trial: Small,
    acknowledged: list[str],
    recorder: Recorder | None,
    let_go: Mapping[int, account.LoggedRecord] = MappingProxyType({}),
) -> list[str]:
    """Start, look, save once more; what is wrong. ``recorder`` notes what that does to the disk."""
    content_store._sync_failed.clear()
    try:
        store = trial.open()
    except OSError as error:
        return [f"the store cannot be opened: {error!r}"]
    try:
        with recorder.recording() if recorder else nullcontext():
            return _problems_of(trial, store, acknowledged, let_go)
    except StorageUnavailable as refused:
        return [f"a start or save is refused: {refused.__cause__!r}"]
    except Exception as error:  # noqa: BLE001 - a dropped step may break anything
        return [f"a start or save fails: {error!r}"]
    finally:
        vanish(store)


def _problems_of(
    trial: Small, store: ContentStore, acknowledged: list[str], let_go: Mapping[int, account.LoggedRecord]
) -> list[str]:
    seen = picture(store)
    found, reading = _whole_history(trial, let_go)
    files, _ = account.fold(reading.records)
    if seen != account.picture_of(files):
        found.append("a start sees something else than the log says")
    found += [f"the acknowledged {key} is lost" for key in set(acknowledged) - set(reading.request_keys())]
    if not found:
        make(store, Create("after.md", "after the cut\n"), "after the cut")
        _, reading = _whole_history(trial, let_go)
        found += account.problems_at_rest(trial.top, acknowledged=acknowledged, reading=reading)
    return found


def _whole_history(
    trial: Small, let_go: Mapping[int, account.LoggedRecord]
) -> tuple[list[str], account.LogReading]:
    """The log with the records before it that a sweep let go. What is wrong with it comes first."""
    reading = account.read_log(trial.top)
    first = reading.records[0].lsn if reading.records else 0
    before = [let_go[lsn] for lsn in range(1, first) if lsn in let_go]
    problems = list(reading.problems)
    if len(before) != first - 1:
        problems.append(f"the log begins with record {first}, which nobody let go")
    return problems, account.LogReading([*before, *reading.records], reading.problems)


def cut_the_first_start(
    place: Path, *, dropped: Callable[[str, str], bool] = lambda step, place: False, states_each: int = 12
) -> Findings:
    """A first start dies before any of its last steps, the next one goes on, a save is acknowledged; then the cut."""
    findings = Findings()
    rng = random.Random("first start")
    with pytest.MonkeyPatch.context() as patched:
        small_constants(patched)
        for before_last in range(8):
            small = Small(_new_data_dir(place / f"started {before_last}"))
            recorder = Recorder(small.data_dir, dropped=dropped)
            story = Story(small, recorder, rng)
            in_all = _steps_of(Small(_new_data_dir(place / f"counted {before_last}")).provision)
            with recorder.recording():
                story.cut_off(small.provision, at=in_all - before_last)
                small.provision()
                story.make(story.process(), CHANGES[0], 0)
            story.end()
            disk = Disk(recorder.start)
            for event in recorder.events:
                disk.feed(event)
            for number in range(states_each):
                trial = Small(place / "cut")
                disk.sample(rng).write_to(trial.data_dir)
                problems = problems_after_a_cut(trial, [key for _, key in story.acknowledged], None)
                findings.add(f"died {before_last} steps before the end, cut {number}", problems)
    return findings


def _new_data_dir(path: Path) -> Path:
    path.mkdir(parents=True, mode=0o700)
    return path


def _steps_of(work: Callable[[], object]) -> int:
    count = 0

    def hook(step: str, place: str) -> None:
        nonlocal count
        count += 1

    steps.hook = hook
    try:
        work()
    finally:
        steps.hook = None
    return count
