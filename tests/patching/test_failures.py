"""A refusal tells what is needed to repair the call in one go: all failures, the place, the difference; in 8 KiB."""

from typing import Any

import msgspec
import pytest

from core import limits
from core.errors import PatchFailed
from kb.patching.applying import apply_diff, apply_edits

PATH = "Payments/deployment.md"
STEPS = "".join(f"{number}. Do step {number} now\n" for number in range(1, 31))


def details_of(text: str, diff: str) -> dict[str, Any]:
    with pytest.raises(PatchFailed) as refused:
        apply_diff(text, diff, path=PATH)
    return refused.value.details


def failure_of(text: str, diff: str) -> dict[str, Any]:
    (failure,) = details_of(text, diff)["failures"]
    assert isinstance(failure, dict)
    return failure


def failure_of_edit(text: str, old_text: str, new_text: str = "new") -> dict[str, Any]:
    with pytest.raises(PatchFailed) as refused:
        apply_edits(text, [(old_text, new_text)])
    (failure,) = refused.value.details["failures"]
    assert isinstance(failure, dict)
    return failure


def test_a_refusal_is_definite_and_says_that_nothing_changed() -> None:
    with pytest.raises(PatchFailed) as refused:
        apply_diff(STEPS, "@@ -1 +1 @@\n-x\n+y\n", path=PATH)

    assert (refused.value.code, refused.value.http_status, refused.value.retryable) == (
        "PATCH_FAILED",
        409,
        False,
    )
    assert refused.value.details["total_lines"] == 30


def test_a_mismatch_tells_where_the_hunk_nearly_fits_and_what_differs_there() -> None:
    diff = "@@ -3,3 +3,4 @@\n 11. Do step 11 now\n 12. Do step 12 soon\n+new\n 13. Do step 13 now\n"

    assert failure_of(STEPS, diff) == {
        "hunk": 1,
        "reason": "context_mismatch",
        "problem": "The entry does not read like this hunk's unchanged and removed lines.",
        "diff_line": 1,
        "declared_line": 3,
        "nearest_line": 11,
        "first_difference": {
            "entry_line": 12,
            "expected": "12. Do step 12 soon",
            "actual": "12. Do step 12 now",
            "column": 16,
        },
        "window": {
            "start_line": 10,
            "lines": [f"{number}. Do step {number} now" for number in range(10, 16)],
        },
    }


@pytest.mark.parametrize(
    ("actual", "expected", "column", "actual_code", "expected_code"),
    [
        ("It's here", "It\u2019s here", 3, "U+0027", "U+2019"),
        ("a\u00a0b c", "a b c", 2, "U+00A0", "U+0020"),
        ("a b c  ", "a b c", 6, "U+0020", "end of line"),
        ("a b c", "a b c ", 6, "end of line", "U+0020"),
        ("\tcode here", "    code here", 1, "U+0009", "U+0020"),
        ("abc word", "\u0430bc word", 1, "U+0061", "U+0430"),
        ("caf\u00e9 word", "cafe\u0301 word", 4, "U+00E9", "U+0065"),
        ("\ufeff# Title", "# Title", 1, "U+FEFF", "U+0023"),
        ("dash \u2014 word", "dash - word", 6, "U+2014", "U+002D"),
    ],
)
def test_characters_that_look_alike_or_cannot_be_seen_are_told_by_code_point(
    actual: str, expected: str, column: int, actual_code: str, expected_code: str
) -> None:
    text = f"# Deploying\n{actual}\nrest\n"

    for failure in (
        failure_of(text, f"@@ -1,2 +1,3 @@\n # Deploying\n {expected}\n+new\n"),
        failure_of_edit(text, f"# Deploying\n{expected}\nrest"),
    ):
        difference = failure["first_difference"]
        assert (difference["entry_line"], difference["column"]) == (2, column)
        assert difference["actual_code_point"] == actual_code
        assert difference["expected_code_point"] == expected_code


def test_ordinary_letters_need_no_code_point() -> None:
    difference = failure_of("abc\nrest\n", "@@ -1,2 +1,3 @@\n abd\n+new\n rest\n")["first_difference"]

    assert difference == {"entry_line": 1, "expected": "abd", "actual": "abc", "column": 3}


def test_excerpts_write_out_what_cannot_be_seen() -> None:
    failure = failure_of("a\tb\u00a0c\u200b\u2028d\nrest\n", "@@ -1,2 +1,3 @@\n x\n+new\n rest\n")

    shown = "a<U+0009>b<U+00A0>c<U+200B><U+2028>d"
    assert failure["first_difference"]["actual"] == shown
    assert failure["window"]["lines"] == [shown, "rest"]


def test_a_long_line_is_cut_around_the_difference() -> None:
    line = "word " * 2_000
    other = line[:5_000] + "X" + line[5_001:]

    difference = failure_of(f"{line}\nrest\n", f"@@ -1,2 +1,3 @@\n {other}\n+new\n rest\n")[
        "first_difference"
    ]

    assert difference["column"] == 5_001
    for shown in (difference["expected"], difference["actual"]):
        assert len(shown) <= limits.PATCH_EXCERPT_MAX_CHARACTERS
        assert shown[0] == shown[-1] == "…"
    assert "X" in difference["expected"]
    assert "X" not in difference["actual"]


def test_a_skipped_blank_line_is_shown_as_the_difference() -> None:
    failure = failure_of(
        "intro text\n\nbody one\nbody two\n", "@@ -1,3 +1,3 @@\n intro text\n-body one\n+BODY\n body two\n"
    )

    assert failure["nearest_line"] == 1
    assert failure["first_difference"] == {"entry_line": 2, "expected": "body one", "actual": "", "column": 1}


def test_a_block_that_goes_on_behind_the_last_line_has_no_actual_line() -> None:
    failure = failure_of("one\ntwo\n", "@@ -1,3 +1,3 @@\n one\n two\n-three\n+THREE\n")

    assert failure["first_difference"] == {"entry_line": 3, "expected": "three", "column": 1}


def test_an_empty_entry_has_no_lines_to_show() -> None:
    failure = failure_of("", "@@ -1 +1 @@\n-one\n+two\n")

    assert failure["problem"] == "The entry is empty."
    assert failure.keys() == {"hunk", "reason", "problem", "diff_line", "declared_line"}


@pytest.mark.parametrize("declared", [5, 1, 25])
def test_a_change_that_was_made_before_is_told(declared: int) -> None:
    body = " 5. Do step 5 now\n-6. Do step six\n+6. Do step 6 now\n 7. Do step 7 now\n"

    failure = failure_of(STEPS, f"@@ -{declared},3 +{declared},3 @@\n{body}")

    assert (failure["already_applied"], failure["nearest_line"]) == (True, 5)
    assert failure["reason"] == "context_mismatch"


def test_an_edit_that_was_made_before_is_told() -> None:
    failure = failure_of_edit(STEPS, "Do step six", "Do step 6 now")

    assert (failure["already_applied"], failure["nearest_line"], failure["edit"]) == (True, 6, 1)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("@@ -11,9 +11,2 @@", "count_mismatch"),
        ("@@ -2,3 +2,9 @@", "count_mismatch"),
        ("@@ -11 +11 @@", "count_mismatch"),
        ("@@ ... @@", "bad_hunk_header"),
        ("@@", "bad_hunk_header"),
        ("@@ -11,3 @@", "bad_hunk_header"),
    ],
)
def test_a_header_that_is_wrong_or_missing_is_proposed(header: str, reason: str) -> None:
    body = " 11. Do step 11 now\n-12. Do step 12 now\n 13. Do step 13 now\n"

    failure = failure_of(STEPS, f"{header}\n{body}")

    assert (failure["reason"], failure["correct_header"]) == (reason, "@@ -11,3 +11,2 @@")
    assert apply_diff(STEPS, f"{failure['correct_header']}\n{body}", path=PATH).text == STEPS.replace(
        "12. Do step 12 now\n", ""
    )


def test_no_header_is_proposed_where_the_body_fits_nowhere_or_twice() -> None:
    assert "correct_header" not in failure_of("x1\nx1\n", "@@\n-x1\n+y\n")
    assert "correct_header" not in failure_of(STEPS, "@@\n-x1\n+y\n")


def test_a_header_for_a_first_text_begins_at_0() -> None:
    assert failure_of("", "@@\n+one\n+two\n")["correct_header"] == "@@ -0,0 +1,2 @@"


def test_a_miscounted_hunk_that_does_not_fit_either_tells_the_difference_too() -> None:
    failure = failure_of(STEPS, "@@ -11,9 +11,9 @@\n 11. Do step 11 now\n-12. Do step twelve\n+new\n")

    assert failure["reason"] == "count_mismatch"
    assert failure["first_difference"]["entry_line"] == 12


def test_all_failing_hunks_are_told_at_once_and_the_good_ones_are_not() -> None:
    hunks = [f"@@ -{n} +{n} @@\n-{n}. Do step {n} now{' not' if n % 2 else ''}\n+new\n" for n in range(1, 9)]

    told = details_of(STEPS, "".join(hunks))["failures"]

    assert [(failure["hunk"], failure["first_difference"]["entry_line"]) for failure in told] == [
        (1, 1),
        (3, 3),
        (5, 5),
        (7, 7),
    ]


def test_of_many_failures_the_first_ten_are_told_and_the_rest_counted() -> None:
    details = details_of(STEPS, "".join(f"@@ -{n} +{n} @@\n-missing {n}\n+new\n" for n in range(1, 31)))

    assert [failure["hunk"] for failure in details["failures"]] == list(range(1, 11))
    assert details["more_failures"] == 20


@pytest.mark.parametrize("character", ["x", "\u4e2d", "\U0001f600", "\u00a0", "\\"])
def test_details_never_grow_beyond_8_kib(character: str) -> None:
    lines = [f"Line {number} {character * 3_000}" for number in range(40)]
    text = "".join(f"{line}\n" for line in lines)
    hunks = [f"@@ -{n},2 +{n},3 @@\n {lines[n]}y\n+new\n {lines[n + 1]}\n" for n in range(1, 30, 2)]
    edits = [(f"{line}y", "new") for line in lines]

    with pytest.raises(PatchFailed) as of_edits:
        apply_edits(text, edits)

    for details in (details_of(text, "".join(hunks)), of_edits.value.details):
        assert len(msgspec.json.encode(details)) <= limits.PATCH_DETAILS_MAX_BYTES - 200
        assert len(details["failures"]) == 10
        # However short the room, the first failure is told whole.
        assert {"first_difference", "nearest_line", "reason"} <= details["failures"][0].keys()


def test_positions_are_told_even_where_there_is_no_room_for_excerpts() -> None:
    text = "".join(f"{number} {chr(0x1F600) * 300}\n" for number in range(40))
    hunks = [f"@@ -{n} +{n} @@\n-{n} {chr(0x1F600) * 300}y\n+new\n" for n in range(1, 11)]

    failures = details_of(text, "".join(hunks))["failures"]

    assert all("nearest_line" in failure and "diff_line" in failure for failure in failures)
    assert "first_difference" not in failures[-1]


def test_an_edit_tells_where_its_text_stops_to_agree() -> None:
    failure = failure_of_edit(STEPS, "step 12 now\n13. Do the step 13 now")

    assert (failure["edit"], failure["reason"], failure["nearest_line"]) == (1, "no_match", 12)
    assert failure["first_difference"] == {
        "entry_line": 13,
        "expected": "13. Do the step 13 now",
        "actual": "13. Do step 13 now",
        "column": 8,
    }


def test_an_edit_within_a_line_tells_the_column_of_the_line() -> None:
    difference = failure_of_edit('Deploy with "make run" today\n', "with “make run”")["first_difference"]

    assert (difference["column"], difference["actual_code_point"]) == (13, "U+0022")
    assert difference["expected_code_point"] == "U+201C"


def test_an_edit_of_something_else_entirely_shows_nothing_of_the_entry() -> None:
    failure = failure_of_edit(STEPS, "xyzzy")

    assert failure.keys() == {"edit", "reason", "problem"}
