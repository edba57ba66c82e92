import datetime as dt
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest
import time_machine

from core import claims, clock, ids, locks
from core.types import SYSTEM_ACTOR, MutationRequest
from kb.store import retention, upkeep
from kb.store.outcomes import Outcome
from kb.store.retention import Swept
from tests.operations.bare import BareStore, open_store

T = TypeVar("T")
DAY = dt.timedelta(days=1)
EVERYTHING = 2**60


def sweep(bare: BareStore, *, days: int = 365, most_bytes: int | None = EVERYTHING) -> Swept:
    return retention.sweep(bare.store, history_days=days, history_bytes=most_bytes)


def answer(bare: BareStore, request: MutationRequest) -> None:
    """Carry out a request and keep its outcome, as ``kb.mutation`` does."""
    with bare.store.claim(request), bare.store.transaction() as transaction:
        outcome = Outcome(
            arguments_hash="a",
            folder_id=transaction.root.folder.id,
            role=2,
            time=clock.timestamp(),
            result={},
        )
        transaction.keep_outcome(request, outcome)
        transaction.commit("update", SYSTEM_ACTOR, [])


def request_named(name: str) -> MutationRequest:
    return MutationRequest(key=ids.sha256_hex(name.encode()), arguments_hash="a")


def in_a_thread(work: Callable[[], T]) -> T:
    """Another thread's doing: this one may hold locks that the work must not be below."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def old(bare: BareStore) -> Iterator[BareStore]:
    """A store with twelve segments of one entry each, as it is two years later."""
    for number in range(12):
        bare.save(f"Eng/page{number}.md", f"text {number}\n" * 100)
        bare.begin_segment()
    with time_machine.travel(clock.now() + 730 * DAY, tick=True):
        yield bare


class TestOutcomesAndClaims:
    def test_an_outcome_goes_after_seven_days_and_its_claim_with_it(self, bare: BareStore) -> None:
        answer(bare, request_named("one"))
        with time_machine.travel(clock.now() + dt.timedelta(days=6, hours=23), tick=True):
            kept = sweep(bare)
            answer(bare, request_named("two"))

        with time_machine.travel(clock.now() + dt.timedelta(days=7, minutes=1), tick=True):
            swept = sweep(bare)

        assert (kept.outcomes, swept.outcomes) == (0, 1)
        key = request_named("two").key
        assert files(bare.path / "private/outcomes") == [f"{key}.json"]
        assert request_named("one").key not in files(bare.path / "private/claims")

    def test_a_claim_that_nobody_holds_goes_after_an_hour(self, bare: BareStore) -> None:
        with bare.store.claim(request_named("refused")):
            pass
        young = sweep(bare)

        with time_machine.travel(clock.now() + dt.timedelta(hours=2), tick=True):
            swept = sweep(bare)

        assert (young.claims, swept.claims) == (0, 1)
        assert files(bare.path / "private/claims") == []

    def test_a_claim_that_is_held_stays_and_so_does_its_outcome(self, bare: BareStore) -> None:
        answer(bare, request_named("slow"))

        with bare.store.claim(request_named("slow")), time_machine.travel(clock.now() + 8 * DAY, tick=True):
            swept = in_a_thread(lambda: sweep(bare))

        assert (swept.claims, swept.outcomes) == (0, 0)
        assert files(bare.path / "private/claims") == [request_named("slow").key]

    def test_a_request_id_that_is_used_anew_just_then_keeps_its_new_outcome(
        self, bare: BareStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer(bare, request_named("one"))
        real = claims.hold_claim

        def used_just_before(private: int, key: str) -> AbstractContextManager[None]:
            monkeypatch.setattr(claims, "hold_claim", real)
            answer(bare, request_named("one"))
            return real(private, key)

        with time_machine.travel(clock.now() + 8 * DAY, tick=True):
            monkeypatch.setattr(claims, "hold_claim", used_just_before)
            swept = sweep(bare)

            assert swept.outcomes == 0
            with bare.store.snapshot() as view:
                assert view.outcome_of(request_named("one")) is not None

    def test_an_outcome_that_is_no_outcome_is_left_for_check_store(self, bare: BareStore) -> None:
        answer(bare, request_named("one"))
        [file] = (bare.path / "private/outcomes").rglob("*.json")
        file.write_bytes(b"not json")

        with time_machine.travel(clock.now() + 8 * DAY, tick=True):
            sweep(bare)

        assert file.exists()


class TestLeftovers:
    def test_what_a_dead_writer_staged_goes(self, bare: BareStore) -> None:
        bare.save("page.md", "text\n")
        (bare.path / "private/stage/7.0").write_bytes(b"left")

        assert sweep(bare).leftovers == 1
        assert files(bare.path / "private/stage") == []

    def test_what_a_dead_backup_or_purge_left_goes(self, bare: BareStore) -> None:
        (bare.log / "00000000000000000001.log.new").write_bytes(b"left")
        (bare.path / "private/copying/deep").mkdir(parents=True)
        (bare.path / "private/copying/deep/database").write_bytes(b"left")

        assert sweep(bare).leftovers == 2
        assert not (bare.path / "private/copying").exists()
        assert bare.segments() == [1]

    def test_only_one_sweep_runs_and_the_second_one_is_told_at_once(self, bare: BareStore) -> None:
        with upkeep.hold_upkeep(bare.store.layout, wait_seconds=0), pytest.raises(locks.LockBusy):
            in_a_thread(lambda: sweep(bare))


class TestHistory:
    def test_young_history_stays(self, bare: BareStore) -> None:
        for number in range(3):
            bare.save(f"page{number}.md", "text\n")
            bare.begin_segment()

        assert sweep(bare, days=1).segments == 0
        assert len(bare.segments()) == 4

    def test_history_past_its_days_goes_and_what_is_live_stays_readable(self, old: BareStore) -> None:
        swept = sweep(old, days=365)

        assert (swept.segments, swept.kept) == (1, None)
        assert len(old.segments()) == 12
        old.reopen()
        assert [old.text_of(f"Eng/page{number}.md") for number in range(12)] == [
            f"text {number}\n" * 100 for number in range(12)
        ]
        assert old.disagreements() == []

    def test_history_past_its_bytes_goes_though_it_is_young(self, bare: BareStore) -> None:
        for number in range(12):
            bare.save(f"page{number}.md", f"text {number}\n" * 100)
            bare.begin_segment()
        whole = sum(file.stat().st_size for file in bare.log.iterdir())

        kept = sweep(bare, most_bytes=whole)
        swept = sweep(bare, most_bytes=whole - 1)

        assert (kept.segments, swept.segments) == (0, 1)

    def test_at_most_a_tenth_of_the_history_goes_in_a_day(self, bare: BareStore) -> None:
        for number in range(30):
            bare.save("page.md", f"text {number}\n" * 100)
            bare.begin_segment()
        whole = sum(file.stat().st_size for file in bare.log.iterdir())

        with time_machine.travel(clock.now() + 730 * DAY, tick=True):
            first, again = sweep(bare), sweep(bare)
        with time_machine.travel(clock.now() + 731 * DAY + dt.timedelta(hours=1), tick=True):
            next_day = sweep(bare)

        assert (first.segments > 1, again.segments, next_day.segments > 1) == (True, 0, True)
        assert first.history_bytes <= whole / 10
        assert next_day.history_bytes <= whole / 10

    def test_a_segment_larger_than_a_days_share_is_followed_by_a_longer_rest(self, bare: BareStore) -> None:
        for _ in range(2):
            bare.save("page.md", "text\n" * 1000)
            bare.begin_segment()
        with time_machine.travel(clock.now() + 730 * DAY, tick=True):
            first = sweep(bare)
        with time_machine.travel(clock.now() + 732 * DAY, tick=True):
            after_two_days = sweep(bare)
        with time_machine.travel(clock.now() + 736 * DAY, tick=True):
            after_six_days = sweep(bare)

        assert (first.segments, after_two_days.segments, after_six_days.segments) == (1, 0, 1)

    def test_a_clock_that_jumps_takes_a_tenth_and_not_everything(self, old: BareStore) -> None:
        sweep(old)
        with time_machine.travel(clock.now() - 700 * DAY, tick=True):
            put_right = sweep(old, days=1)
            left = old.segments()
            for _ in range(3):
                sweep(old, days=1)

        assert put_right.segments == 0
        assert old.segments() == left

    def test_a_rest_that_a_wrong_clock_wrote_does_not_last_for_years(self, old: BareStore) -> None:
        with time_machine.travel(clock.now() + 3650 * DAY, tick=True):
            sweep(old)

        assert sweep(old).segments == 0
        with time_machine.travel(clock.now() + 1.1 * DAY, tick=True):
            assert sweep(old).segments == 1

    def test_neither_the_newest_segment_nor_one_above_the_checkpoint_ever_goes(self, bare: BareStore) -> None:
        bare.save("page.md", "text\n")
        checkpoint = (bare.path / "private/checkpoint").read_bytes()
        bare.begin_segment()
        (bare.path / "private/checkpoint").write_bytes(checkpoint)

        with time_machine.travel(clock.now() + 730 * DAY, tick=True):
            swept = sweep(bare, days=1, most_bytes=1)

        assert swept.segments == 0
        assert len(bare.segments()) == 2

    def test_history_goes_oldest_first_without_a_gap(self, old: BareStore) -> None:
        before = old.segments()

        for day in range(30):
            with time_machine.travel(clock.now() + day * 11 * DAY, tick=True):
                sweep(old)
            assert old.segments() == before[-len(old.segments()) :]

        assert len(old.segments()) == 1
        assert old.text_of("Eng/page0.md") == "text 0\n" * 100
        assert old.disagreements() == []

    def test_an_entry_that_only_old_history_holds_must_be_whole_in_the_tree(self, old: BareStore) -> None:
        (old.path / "content/Eng/page0.md").write_text("rotten\n" * 50)

        swept = sweep(old)

        assert swept.segments == 0
        assert swept.kept == "content/Eng/page0.md: the file is not what its registry says"

    def test_an_entry_that_is_missing_keeps_the_history_that_holds_it(self, old: BareStore) -> None:
        (old.path / "content/Eng/page0.md").unlink()

        assert (sweep(old).segments, len(old.segments())) == (0, 13)

    def test_a_registry_that_lost_a_line_keeps_the_history_that_holds_it(self, old: BareStore) -> None:
        file = old.path / "content/Eng/.registry.jsonl"
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join([*lines[:1], *lines[2:]]))
        old.reopen()

        swept = sweep(old)

        assert swept.segments == 0
        assert swept.kept is not None

    def test_an_entry_saved_again_since_needs_nothing_of_old_history(self, bare: BareStore) -> None:
        bare.save("page.md", "old\n")
        bare.save("gone.md", "old\n")
        bare.begin_segment()
        bare.save("page.md", "new\n")
        bare.delete("gone.md")
        bare.begin_segment()

        with time_machine.travel(clock.now() + 730 * DAY, tick=True):
            swept = sweep(bare)

        assert (swept.segments, swept.kept) == (1, None)
        bare.reopen()
        assert bare.text_of("page.md") == "new\n"
        with bare.store.snapshot() as view:
            assert [line.name for line in view.root.tombstones.values()] == ["gone.md"]
        assert bare.disagreements() == []

    def test_damaged_history_is_kept_and_said_to_be(self, old: BareStore) -> None:
        segment = min(old.log.iterdir())
        data = bytearray(segment.read_bytes())
        data[-40] ^= 1
        segment.write_bytes(data)

        swept = sweep(old)

        assert swept.segments == 0
        assert swept.kept is not None
        assert segment.name in swept.kept

    def test_an_outcome_younger_than_seven_days_must_be_whole_too(self, bare: BareStore) -> None:
        answer(bare, request_named("one"))
        bare.begin_segment()
        bare.save("page.md", "text\n")
        [file] = (bare.path / "private/outcomes").rglob("*.json")
        kept = file.read_bytes()
        file.unlink()
        refused = sweep(bare, most_bytes=1)
        file.write_bytes(kept)

        swept = sweep(bare, most_bytes=1)

        assert (refused.segments, swept.segments) == (0, 1)

    def test_nothing_of_the_history_goes_where_a_media_fault_is_marked(self, old: BareStore) -> None:
        (old.path / "private/fault").write_text(json.dumps({"reason": "a test"}))

        swept = sweep(old)

        assert (swept.segments, swept.kept is not None) == (0, True)

    def test_other_processes_go_on_reading_where_history_went_from_under_them(self, old: BareStore) -> None:
        other = open_store(old.data_dir)
        with other.snapshot() as view:
            before = view.lsn
        old.save("Eng/new.md", "new\n")
        for day in range(30):
            with time_machine.travel(clock.now() + day * 11 * DAY, tick=True):
                sweep(old)

        with other.snapshot() as view:
            assert view.lsn > before
            folder = view.folder_at(["Eng"])
            assert folder is not None
            assert folder.entry_named("new.md") is not None
        other.close()

    def test_the_quarter_of_the_volume_is_the_default(
        self, bare: BareStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(12):
            bare.save(f"page{number}.md", f"text {number}\n" * 100)
            bare.begin_segment()
        whole = sum(file.stat().st_size for file in bare.log.iterdir())
        real = os.fstatvfs

        def small_volume(descriptor: int) -> os.statvfs_result:
            values = list(real(descriptor))
            values[1], values[2] = 1, 4 * whole - 4
            return os.statvfs_result(values)

        assert sweep(bare, most_bytes=None).segments == 0
        monkeypatch.setattr(os, "fstatvfs", small_volume)
        assert sweep(bare, most_bytes=None).segments == 1
