"""What a benchmark returns: a figure beside another one of the same run; speed by itself means nothing."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One figure. ``ratio`` is ``value`` by ``baseline``; ``goal`` says what it should be, such as ``<= 3``."""

    name: str
    value: str
    baseline: str
    ratio: float
    goal: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None where there is none."""
        if not self.goal:
            return None
        relation, _, bound = self.goal.partition(" ")
        return self.ratio <= float(bound) if relation == "<=" else self.ratio >= float(bound)


def milliseconds(seconds: float) -> str:
    """A duration as people read it."""
    return f"{seconds * 1000:.3f} ms"


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which ``part`` of all lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """The value in the middle."""
    return quantile(values, 0.5)


def compared(
    name: str,
    values: Sequence[float],
    baselines: Sequence[float],
    of: Callable[[Sequence[float]], float],
    goal: str = "",
) -> Row:
    """One figure of the seconds beside the same one of the baselines."""
    value, baseline = of(values), of(baselines)
    return Row(name, milliseconds(value), milliseconds(baseline), value / baseline, goal)
