from pathlib import Path

import time_machine

from core import clock
from kb.store import retention
from tests.operations.bare import BareStore, open_store
from tests.operations.kills import killed_at_every_step
from tests.operations.test_sweep import DAY, answer, request_named

PAGES = [f"Eng/page{number}.md" for number in range(4)]


def sweep_all(data_dir: Path) -> None:
    store = open_store(data_dir)
    retention.sweep(store, history_days=1, history_bytes=2**60)
    store.close()


def test_a_sweep_that_is_killed_at_any_step_loses_nothing_and_is_finished_by_the_next(tmp_path: Path) -> None:
    bare = BareStore(tmp_path / "data")
    answer(bare, request_named("one"))
    for path in PAGES:
        bare.save(path, f"{path}\n" * 50)
        bare.begin_segment()
    (bare.path / "private/stage/9.0").write_bytes(b"left")
    segments = bare.segments()
    bare.close()

    steps = []
    with time_machine.travel(clock.now() + 100 * DAY, tick=True):
        for copy, step in killed_at_every_step(tmp_path / "data", tmp_path, sweep_all):
            steps.append(step)
            left = BareStore(copy)
            assert left.segments() in (segments, segments[1:]), step
            assert [left.text_of(path) for path in PAGES] == [f"{path}\n" * 50 for path in PAGES], step
            assert left.disagreements() == [], step
            with time_machine.travel(clock.now() + 20 * DAY, tick=True):
                retention.sweep(left.store, history_days=1, history_bytes=2**60)
                assert left.segments() in (segments[1:], segments[2:]), step
                assert list((left.path / "private/stage").iterdir()) == []
                assert list((left.path / "private/claims").rglob("*.*")) == []
            left.close()

    unlinked = f"unlink private/log/{segments[0]:020d}.log"
    assert steps.count(unlinked) == 1
    assert steps.index("write private/locks/upkeep") < steps.index(unlinked)
    assert steps[steps.index(unlinked) + 1] == "sync directory private/log"
