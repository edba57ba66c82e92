"""The power goes at any moment: whatever an honest disk kept, nothing acknowledged is lost, nothing is torn."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.cuts import MIXES, Mix, cut_everywhere, cut_the_first_start
from tests.store.power import RENAMES
from tests.store.small import Small

Tried = Callable[[str, int], None]
EACH_MIX = pytest.mark.parametrize("mix", MIXES, ids=[mix.__name__ for mix in MIXES])
STATES = 340
STORIES = {"dead_writer": 12, "failed_log_sync": 6, "failed_tree_sync": 6, "beside_a_checkpoint": 4}


@EACH_MIX
@pytest.mark.parametrize("renames", RENAMES, ids=["whole", "split-between-folders", "split"])
def test_a_power_cut_at_any_moment_loses_and_tears_nothing(
    past: Small, mix: Mix, renames: int, tried: Tried
) -> None:
    findings = cut_everywhere(
        past, mix, states=STATES, stories=STORIES.get(mix.__name__, 1), seed=1, renames=renames
    )

    assert findings.violations == []
    tried(f"states after a power cut, {mix.__name__}", findings.states)


def test_a_power_cut_after_a_first_start_that_was_cut_off_loses_nothing(
    ram: Path, small_reserve: None, tried: Tried
) -> None:
    findings = cut_the_first_start(ram)

    assert findings.violations == []
    tried("states after a power cut, first start", findings.states)


@pytest.mark.long(reason="ten thousand states for each mix, other stories each time")
@EACH_MIX
def test_a_power_cut_at_any_of_ten_thousand_moments_loses_and_tears_nothing(
    past: Small, mix: Mix, tried: Tried
) -> None:
    for seed in range(10):
        findings = cut_everywhere(
            past, mix, states=900, stories=max(2, STORIES.get(mix.__name__, 2)), seed=seed, renames=seed % 3
        )

        assert findings.violations == []
        tried(f"states after a power cut, {mix.__name__}", findings.states)
