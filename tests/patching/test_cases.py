"""Small cases, many of them restated from faults of other projects: each has one right outcome."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import PatchFailed
from kb.patching.applying import apply_diff, apply_edits

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data/patch_cases.json").read_text("utf-8")
)
PATH = "Payments/deployment.md"


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_case_has_the_outcome_that_is_right(case: dict[str, Any]) -> None:
    outcome: dict[str, Any]
    try:
        if "diff" in case:
            patched = apply_diff(case["before"], case["diff"], path=PATH)
        else:
            edits = [(edit["old_text"], edit["new_text"]) for edit in case["edits"]]
            patched = apply_edits(case["before"], edits)
        outcome = {"after": patched.text}
    except PatchFailed as refused:
        outcome = {"reason": refused.details["failures"][0]["reason"]}

    assert outcome == {key: case[key] for key in ("after", "reason") if key in case}
