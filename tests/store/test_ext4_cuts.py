"""The same on a real ext4: what its journal keeps after a cut is enough, and without a sync it is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kb.store import steps
from tests.store.ext4 import cut_an_image

Tried = Callable[[str, int], None]


def test_an_ext4_that_is_cut_loses_and_tears_nothing(ram: Path, small_reserve: None, tried: Tried) -> None:
    findings = cut_an_image(ram, changes=12, stride=2)

    assert findings.violations == []
    assert findings.states > 50
    tried("cuts of an ext4", findings.states)


@pytest.mark.long(reason="a cut of a real ext4 at every step of twenty changes")
def test_an_ext4_that_is_cut_at_every_step_loses_and_tears_nothing(
    ram: Path, small_reserve: None, tried: Tried
) -> None:
    findings = cut_an_image(ram, changes=20, stride=1)

    assert findings.violations == []
    tried("cuts of an ext4", findings.states)


@pytest.mark.parametrize("left_out", ["sync_data", "sync_file"])
def test_an_ext4_shows_what_a_sync_that_is_left_out_costs(
    ram: Path, small_reserve: None, monkeypatch: pytest.MonkeyPatch, left_out: str
) -> None:
    if left_out == "sync_file":
        # The checkpoint's; path by path, and nothing of the log waits longer than the tree.
        monkeypatch.setattr("kb.store.checkpoint.PATHS_MAX", 64)
    monkeypatch.setattr(steps, left_out, lambda descriptor, place: None)

    findings = cut_an_image(ram, changes=9, stride=4)

    assert findings.bad > 0, f"{findings.states} cuts"
