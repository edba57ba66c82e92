"""Taking times in turn, so that what else the machine does falls on a figure and its baseline alike."""

import time
from collections.abc import Callable, Sequence

Work = Callable[[], object]


def timed(work: Work) -> float:
    """Seconds that the work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def in_turn(*works: Work, times: int, warm: int = 1) -> tuple[list[float], ...]:
    """Seconds of each work, each done so often, one after the other round by round; ``warm`` rounds do not count."""
    taken: tuple[list[float], ...] = tuple([] for _ in works)
    for number in range(warm + times):
        for work, list_of_times in zip(works, taken, strict=True):
            seconds = timed(work)
            if number >= warm:
                list_of_times.append(seconds)
    return taken


def ratio_in_the_middle(values: Sequence[float], baselines: Sequence[float]) -> float:
    """Of the ratios of each round the one in the middle."""
    ratios = sorted(value / baseline for value, baseline in zip(values, baselines, strict=True))
    return ratios[len(ratios) // 2]
