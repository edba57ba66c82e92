"""Where hunks and edits go: to the line they name, to the one place where they fit, or nowhere."""

from typing import Any

import pytest

from core.errors import PatchFailed
from kb.patching.applying import Offset, apply_diff, apply_edits

PATH = "Payments/deployment.md"
STEPS = "".join(f"step {number}\n" for number in range(1, 21))


def patched(text: str, diff: str) -> str:
    return apply_diff(text, diff, path=PATH).text


def failures_of(text: str, diff: str) -> list[dict[str, Any]]:
    with pytest.raises(PatchFailed) as refused:
        apply_diff(text, diff, path=PATH)
    failures: list[dict[str, Any]] = refused.value.details["failures"]
    return failures


def test_a_block_that_fits_at_its_line_stays_there_though_it_fits_elsewhere_too() -> None:
    text = "a\nb\n" * 3

    result = apply_diff(text, "@@ -3,2 +3,3 @@\n a\n+new\n b\n", path=PATH)

    assert (result.text, result.offsets) == ("a\nb\na\nnew\nb\na\nb\n", ())


def test_a_block_found_elsewhere_is_told_with_both_lines() -> None:
    result = apply_diff(STEPS, "@@ -3,2 +3,3 @@\n step 8\n+new\n step 9\n", path=PATH)

    assert result.text == STEPS.replace("step 9\n", "new\nstep 9\n")
    assert result.offsets == (Offset(hunk=1, declared_line=3, found_line=8),)


@pytest.mark.parametrize("declared", [0, 1, 7, 9, 20, 21, 999_999_999])
def test_a_block_that_stands_once_is_found_from_every_line(declared: int) -> None:
    assert patched(STEPS, f"@@ -{declared} +1 @@\n-step 8\n+new\n") == STEPS.replace("step 8\n", "new\n")


def test_occurrences_that_overlap_count() -> None:
    (failure,) = failures_of("x\nx\nx\n", "@@ -7,2 +7,3 @@\n x\n+new\n x\n")

    assert (failure["reason"], failure["candidate_lines"]) == ("ambiguous", [1, 2])


def test_a_block_is_whole_lines() -> None:
    for text in ("xstep\n", "stepx\n"):
        (failure,) = failures_of(text, "@@ -1 +1 @@\n-step\n+new\n")
        assert failure["reason"] == "context_mismatch"


def test_no_more_than_five_candidates_are_named() -> None:
    (failure,) = failures_of("x\n" * 9, "@@ -99 +99 @@\n-x\n+y\n")

    assert failure["candidate_lines"] == [1, 2, 3, 4, 5]
    assert failure["more_candidates"] is True


@pytest.mark.parametrize("block", ["", "---", "| | |", "   ", "***"])
def test_a_block_without_a_letter_or_digit_has_to_stand_at_its_line(block: str) -> None:
    text = f"one\n{block}\ntwo\n"

    assert patched(text, f"@@ -2 +2,2 @@\n {block}\n+new\n") == f"one\n{block}\nnew\ntwo\n"
    (failure,) = failures_of(text, f"@@ -3 +3,2 @@\n {block}\n+new\n")

    assert (failure["reason"], failure["candidate_lines"]) == ("no_context", [2])


@pytest.mark.parametrize(
    "difference", ["Step 8", "step 8 ", " step 8", "step\u00a08", "step  8", "ste\u0440 8"]
)
def test_nothing_that_only_looks_alike_is_taken(difference: str) -> None:
    (failure,) = failures_of(STEPS, f"@@ -8 +8,2 @@\n {difference}\n+new\n")

    assert failure["reason"] == "context_mismatch"


def test_composed_and_decomposed_letters_are_different() -> None:
    (failure,) = failures_of("caf\u00e9\n", "@@ -1 +1,2 @@\n cafe\u0301\n+new\n")

    assert failure["reason"] == "context_mismatch"


def test_hunks_are_all_placed_in_the_text_as_it_was() -> None:
    # The second one would fit twice after the first was applied.
    diff = "@@ -2 +2 @@\n-step 2\n+step 9\n@@ -3 +9,2 @@\n step 9\n+new\n"

    assert patched(STEPS, diff) == STEPS.replace("step 9\n", "step 9\nnew\n").replace("step 2\n", "step 9\n")


def test_hunks_may_touch() -> None:
    diff = "@@ -2 +2 @@\n-step 2\n+two\n@@ -3 +3 @@\n-step 3\n+three\n"

    assert patched(STEPS, diff) == STEPS.replace("step 2\n", "two\n").replace("step 3\n", "three\n")


def test_a_line_in_two_hunks_is_refused() -> None:
    diff = "@@ -2,2 +2,2 @@\n-step 2\n+two\n step 3\n@@ -3,2 +3,2 @@\n step 3\n-step 4\n+four\n"

    (failure,) = failures_of(STEPS, diff)

    assert (failure["hunk"], failure["reason"], failure["nearest_line"]) == (2, "overlap", 3)


def test_a_hunk_may_not_move_before_the_one_before_it() -> None:
    diff = "@@ -9 +9 @@\n-step 9\n+nine\n@@ -10,2 +10,3 @@\n step 3\n+new\n step 4\n"

    (failure,) = failures_of(STEPS, diff)

    assert (failure["hunk"], failure["reason"]) == (2, "out_of_order")


def test_two_first_texts_of_an_empty_entry_overlap() -> None:
    (failure,) = failures_of("", "@@ -0,0 +1 @@\n+one\n@@ -0,0 +2 @@\n+two\n")

    assert (failure["hunk"], failure["reason"]) == (2, "overlap")


@pytest.mark.parametrize(
    ("text", "diff", "result"),
    [
        ("a", "@@ -1 +1,2 @@\n a\n+b\n", "a\nb\n"),
        ("a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n", "A\nb"),
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\nB\n"),
        ("a\nb", "@@ -1,2 +1 @@\n a\n-b\n", "a\n"),
        ("a\nb\n", "@@ -1,2 +1 @@\n a\n-b\n", "a\n"),
        ("a\nb", "@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n", "a\n"),
        ("a\nb", "@@ -1,2 +1 @@\n-a\n-b\n\\ No newline at end of file\n+a\n\\ No newline at end of file\n", "a"),
        ("a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "a"),
        ("a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "a\n"),
        ("a", "@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n", "a\nb"),
        ("a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", "A\nb"),
        ("a", "@@ -1 +0,0 @@\n-a\n", ""),
        ("a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n", ""),
        ("", "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n", "a"),
        ("\n", "@@ -1 +1,2 @@\n \n+a\n", "\na\n"),
        ("x\na", "@@ -9 +9 @@\n-a\n\\ No newline at end of file\n+b\n", "x\nb\n"),
        ("a\nx\na", "@@ -3 +3 @@\n-a\n\\ No newline at end of file\n+b\n", "a\nx\nb\n"),
    ],
)  # fmt: skip
def test_the_newline_at_the_end_is_what_the_diff_says_or_stays(text: str, diff: str, result: str) -> None:
    assert patched(text, diff) == result


@pytest.mark.parametrize(
    ("text", "diff"),
    [
        ("a\nb\n", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"),
        ("a\nb\n", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+B\n"),
        ("a\nb\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n\\ No newline at end of file\n"),
        ("a\nb\nc", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n"),
    ],
)
def test_a_mark_of_a_missing_newline_that_is_not_true_is_refused(text: str, diff: str) -> None:
    (failure,) = failures_of(text, diff)

    assert failure["reason"] == "context_mismatch"


def test_a_mark_of_a_missing_newline_does_not_make_blank_lines_recognisable() -> None:
    diff = "@@ -{} +{} @@\n----\n\\ No newline at end of file\n+***\n"

    assert patched("one\n---", diff.format(2, 2)) == "one\n***\n"
    (failure,) = failures_of("one\n---", diff.format(1, 1))

    assert (failure["reason"], failure["candidate_lines"]) == ("no_context", [2])


def test_a_byte_order_mark_is_a_character_like_any_other() -> None:
    assert patched("\ufeffa\nb\n", "@@ -1,2 +1,2 @@\n \ufeffa\n-b\n+B\n") == "\ufeffa\nB\n"
    assert failures_of("\ufeffa\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n")[0]["reason"] == "context_mismatch"


def test_an_edit_takes_text_from_the_middle_of_lines_and_over_their_ends() -> None:
    edits = [("ep 2\nst", "EP TWO; ST"), ("20\n", "20"), ("step 11", "")]

    assert apply_edits(STEPS, edits).text == STEPS.replace("ep 2\nst", "EP TWO; ST").replace(
        "step 11", ""
    ).removesuffix("\n")


def test_edits_may_touch_and_come_in_any_order() -> None:
    assert apply_edits("one two", [("two", "2"), ("one ", "1 ")]).text == "1 2"


def test_every_edit_that_has_text_in_common_with_another_is_told() -> None:
    with pytest.raises(PatchFailed) as refused:
        apply_edits("abcdefgh", [("abcdef", "1"), ("bc", "2"), ("ef", "3"), ("gh", "4")])

    told = [(failure["edit"], failure["reason"]) for failure in refused.value.details["failures"]]
    assert told == [(2, "overlap"), (3, "overlap")]
