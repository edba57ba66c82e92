"""A diff of two texts turns one into the other to the byte, whatever the texts hold and whoever wrote the diff."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import PatchFailed
from kb.patching.applying import apply_diff, apply_edits
from kb.patching.unified import unified_diff
from tests.patching.programs import WRITERS, difflib_diff
from tests.patching.texts import pairs, texts

PATH = "Payments/deployment.md"

any_pair = st.one_of(pairs(), st.tuples(texts(), texts()), st.tuples(texts(1), texts(1)))


@pytest.mark.parametrize("writer", WRITERS)
@given(pair=any_pair)
@settings(max_examples=150, deadline=None)
@example(("", "a"))
@example(("a", ""))
@example(("a", "a\n"))
@example(("a\n", "a"))
@example(("\n", ""))
@example(("x\u2028y\n", "x\u2028z\n"))
def test_a_diff_with_context_gives_exactly_the_new_text(writer: str, pair: tuple[str, str]) -> None:
    old, new = pair
    diff = WRITERS[writer](old, new, 3)
    if diff == "":
        assert old == new
        return

    patched = apply_diff(old, diff, path=PATH)

    assert (patched.text, patched.offsets) == (new, ())


@pytest.mark.parametrize("writer", WRITERS)
@given(pair=any_pair, context=st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_a_diff_with_little_context_gives_the_new_text_or_is_refused(
    writer: str, pair: tuple[str, str], context: int
) -> None:
    old, new = pair
    diff = WRITERS[writer](old, new, context)
    if diff == "":
        return

    try:
        patched = apply_diff(old, diff, path=PATH)
    except PatchFailed as refused:
        reasons = {failure["reason"] for failure in refused.details["failures"]}
        assert context == 0
        assert reasons <= {"no_context", "ambiguous"}
    else:
        assert patched.text == new


@given(pair=any_pair)
@settings(max_examples=300, deadline=None)
def test_our_own_diff_gives_the_new_text_and_reads_like_any_other(pair: tuple[str, str]) -> None:
    old, new = pair

    diff = unified_diff(old, new, filename="deployment.md", max_bytes=1 << 30)

    assert diff.is_whole
    assert (diff.text == "") == (old == new)
    if diff.text:
        assert apply_diff(old, diff.text, path=PATH).text == new


@given(pair=pairs(told_apart=True), shift=st.integers(-40, 40))
@settings(max_examples=200, deadline=None)
def test_wrong_line_numbers_give_the_new_text_or_a_refusal(pair: tuple[str, str], shift: int) -> None:
    old, new = pair
    diff = difflib_diff(old, new)
    if diff == "":
        return

    try:
        patched = apply_diff(old, _with_starts_moved(diff, shift), path=PATH)
    except PatchFailed:
        return

    assert patched.text == new


@given(text=texts(), data=st.data())
@settings(max_examples=200, deadline=None)
def test_an_edit_replaces_one_passage_and_leaves_the_rest(text: str, data: st.DataObject) -> None:
    if text == "":
        return
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    old_text, new_text = text[start:end], data.draw(texts(3))
    occurrences = sum(text.startswith(old_text, at) for at in range(len(text)))

    if occurrences == 1:
        assert apply_edits(text, [(old_text, new_text)]).text == text[:start] + new_text + text[end:]
    else:
        with pytest.raises(PatchFailed) as refused:
            apply_edits(text, [(old_text, new_text)])
        assert refused.value.details["failures"][0]["reason"] == "ambiguous"


def _with_starts_moved(diff: str, shift: int) -> str:
    def moved(header: re.Match[str]) -> str:
        return f"@@ -{max(0, int(header[1]) + shift)}"

    return re.sub(r"^@@ -(\d+)", moved, diff, flags=re.MULTILINE)
