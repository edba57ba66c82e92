"""What models do to diffs leads to the text that was meant or to a refusal, as far as anybody could tell."""

from random import Random

import pytest

from core import text
from core.errors import PatchFailed
from kb.patching.applying import apply_diff
from tests.patching.mutations import MUTATIONS
from tests.patching.pages import changed, handbook
from tests.patching.plain import plain_apply
from tests.patching.programs import difflib_diff

PATH = "Engineering/deployment.md"
CHANGES_OF_A_PAGE = 12
# What is left may be a good diff, which says something else: a part of what was meant, or the same elsewhere.
MAY_READ_WELL = {
    "the last hunk is cut off",
    "the rest is cut off",
    "a removed line is forgotten",
    "a context line is skipped and not counted",
    "blank lines are skipped and not counted",
    "a mark of a missing newline is added",
}
NOT_IN_EVERY_PAGE = {"typographic becomes plain", "marks of a missing newline are lost"}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_spoilt_diff_gives_what_was_meant_or_is_refused(name: str) -> None:
    random = Random(name)
    tried = 0
    for page in handbook():
        for _ in range(CHANGES_OF_A_PAGE):
            meant = changed(page, random)
            diff = difflib_diff(page, meant)
            spoilt = MUTATIONS[name](diff, random) if diff else None
            if spoilt is None:
                continue
            tried += 1
            try:
                patched = apply_diff(page, text.clean_content(spoilt), path=PATH)
            except PatchFailed:
                continue
            if patched.text != meant:
                assert name in MAY_READ_WELL
                assert patched.text == plain_apply(page, spoilt)

    assert tried or name in NOT_IN_EVERY_PAGE
