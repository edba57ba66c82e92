"""SIGKILL before every step: the state is the one before or the one after, nothing is left, a request acts once."""

from collections.abc import Callable

import pytest

from tests.store.kills import CASES, Case, kill_beside_a_reader, kill_everywhere, kill_the_recovery
from tests.store.small import Small

Tried = Callable[[str, int], None]
EACH = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
# How many of the steps of each recovery the short form tries.
RECOVERY_STRIDE = 13


@EACH
def test_a_process_killed_at_any_step_leaves_the_state_before_or_after(
    past: Small, case: Case, tried: Tried
) -> None:
    findings = kill_everywhere(past, case, stride=case.stride)

    assert findings.violations == []
    assert findings.kills > 10
    tried("kills", findings.kills)


@EACH
def test_a_reader_that_started_before_the_kill_reads_at_once_after_it_and_then_saves(
    past: Small, case: Case, tried: Tried
) -> None:
    findings = kill_beside_a_reader(past, case, stride=case.stride)

    assert findings.violations == []
    assert findings.kills > 3
    tried("kills beside a reader", findings.kills)


@EACH
def test_a_recovery_killed_at_any_step_is_finished_by_the_next(past: Small, case: Case, tried: Tried) -> None:
    findings = kill_the_recovery(past, case, stride=RECOVERY_STRIDE * case.stride**2)

    assert findings.violations == []
    assert findings.kills > 10
    tried("kills in recovery", findings.kills)


@pytest.mark.long(reason="every step of the recovery after every step of every change: ten thousand kills")
@EACH
def test_a_recovery_killed_at_every_step_is_finished_by_the_next(
    past: Small, case: Case, tried: Tried
) -> None:
    findings = kill_the_recovery(past, case)

    assert findings.violations == []
    tried("kills in recovery", findings.kills)
