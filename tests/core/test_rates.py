"""Limits on how much in how long, over the processes of one server."""

import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest

from core import clock, rates
from core.errors import RateLimited
from core.rates import Counters, Rate, Rows

CALLS = Rate("calls", most=10, seconds=60)


class Clock:
    """Seconds since some start, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 600_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(clock, "monotonic", moved)
    return moved


def spend(counters: Counters, times: int, *, subject: str = "con_a", rate: Rate = CALLS) -> int:
    """How many of so many were let through."""
    done = 0
    for _ in range(times):
        try:
            counters.spend(rate, subject)
        except RateLimited:
            continue
        done += 1
    return done


def wait_told(counters: Counters, rate: Rate = CALLS, subject: str = "con_a") -> int:
    with pytest.raises(RateLimited) as refused:
        counters.spend(rate, subject)
    wait = refused.value.retry_after_seconds
    assert wait is not None
    return wait


def test_as_many_as_the_limit_pass_and_no_more(time: Clock) -> None:
    assert spend(Counters(), 25) == 10


def test_each_subject_and_each_rate_counts_by_itself(time: Clock) -> None:
    counters = Counters()
    spend(counters, 25)

    assert spend(counters, 25, subject="con_b") == 10
    assert spend(counters, 25, rate=Rate("turns", most=3, seconds=60)) == 3


def test_a_refused_one_does_not_count(time: Clock) -> None:
    counters = Counters()
    spend(counters, 10)
    time.seconds += 59
    spend(counters, 1_000)

    time.seconds += 7

    assert spend(counters, 25) == 10


@pytest.mark.parametrize("offset", [0.0, 2.5, 45.0, 59.9])
def test_no_minute_has_more_than_the_limit_whenever_it_begins(time: Clock, offset: float) -> None:
    counters = Counters()
    time.seconds += offset
    passed: list[float] = []

    for _ in range(2_000):
        if spend(counters, 1):
            passed.append(time.seconds)
        time.seconds += 0.1

    assert max(sum(1 for later in passed if at <= later < at + 60) for at in passed) == 10
    # 200 seconds, in which the limit is renewed after 66 at the latest.
    assert len(passed) >= 40


@pytest.mark.parametrize("offset", [0.0, 1.0, 30.0, 59.0])
@pytest.mark.parametrize("spread", [0.0, 3.0, 7.0])
def test_who_waits_as_told_gets_through_and_not_much_too_late(
    time: Clock, offset: float, spread: float
) -> None:
    counters = Counters()
    time.seconds += offset
    for _ in range(10):
        counters.spend(CALLS, "con_a")
        time.seconds += spread
    while spend(counters, 1):
        pass
    wait = wait_told(counters)

    assert 1 <= wait <= 66
    if wait > 1:
        time.seconds += wait - 1.001
        wait_told(counters)
        time.seconds += 1.001
    else:
        time.seconds += 1
    counters.spend(CALLS, "con_a")


def test_what_was_long_ago_is_forgotten(time: Clock) -> None:
    counters = Counters()
    spend(counters, 10)

    time.seconds += 120

    assert counters.used(CALLS, "con_a") == 0
    assert spend(counters, 25) == 10


def test_room_is_refused_only_once_all_of_it_is_used(time: Clock) -> None:
    counters = Counters()
    written = Rate("bytes", most=1_000, seconds=3_600)

    counters.require_room(written, "con_a")
    counters.add(written, "con_a", 999)
    counters.require_room(written, "con_a")
    counters.add(written, "con_a", 5_000)

    with pytest.raises(RateLimited) as refused:
        counters.require_room(written, "con_a")
    assert refused.value.details == {"rate": "bytes", "limit": 1_000, "per_seconds": 3_600}
    wait = refused.value.retry_after_seconds or 0
    assert 3_600 <= wait <= 3_960
    time.seconds += wait
    counters.require_room(written, "con_a")


def test_a_full_bucket_gives_up_what_is_soonest_of_no_account(
    time: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "BUCKETS", 1)
    counters = Counters()
    hourly = Rate("bytes", most=10, seconds=3_600)
    counters.add(hourly, "con_a", 10)

    for number in range(100):
        assert spend(counters, 1, subject=f"con_{number}") == 1

    with pytest.raises(RateLimited):
        counters.require_room(hourly, "con_a")
    assert counters.used(CALLS, "con_99") == 1


def in_children(count: int, work: Callable[[int], int]) -> list[int]:
    """What each of so many forked processes returns."""
    context = multiprocessing.get_context("fork")
    answers: Any = context.SimpleQueue()

    def run(number: int) -> None:
        answers.put(work(number))

    children = [context.Process(target=run, args=(number,)) for number in range(count)]
    for child in children:
        child.start()
    results = [answers.get() for _ in children]
    for child in children:
        child.join()
        assert child.exitcode == 0
    return results


def test_the_processes_of_a_server_count_together(time: Clock) -> None:
    counters = Counters(rows=4)
    rate = Rate("calls", most=1_000, seconds=60)

    def hammer(row: int) -> int:
        counters.use_row(row)
        return spend(counters, 600, rate=rate)

    passed = in_children(4, hammer)

    # Never one too many. Two that meet at the last place may both be refused, once each.
    assert 990 <= sum(passed) <= 1_000
    assert counters.used(rate, "con_a") == sum(passed)


def test_a_process_goes_on_in_the_row_of_one_that_ended(time: Clock) -> None:
    counters = Counters(rows=2)

    def six(row: int) -> int:
        counters.use_row(1)
        return spend(counters, 6)

    assert in_children(1, six) == [6]
    assert in_children(1, six) == [4]


def test_rows_are_handed_out_once_and_again_after_their_process_ended() -> None:
    rows = Rows()

    taken = [rows.take() for _ in range(rates.ROWS_MAX)]

    assert taken == list(range(rates.ROWS_MAX))
    assert rows.take() is None
    rows.give_back(7)
    assert (rows.take(), rows.take()) == (7, None)


def test_threads_of_a_process_count_each_call() -> None:
    from concurrent.futures import ThreadPoolExecutor

    counters = Counters()
    rate = Rate("calls", most=5_000, seconds=3_600)

    with ThreadPoolExecutor(8) as pool:
        passed = sum(pool.map(lambda _: spend(counters, 1_000, rate=rate), range(8)))

    assert passed == 5_000
