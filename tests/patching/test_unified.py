"""The diffs that Brain writes: exact, ordinary to read, and no longer than they may be."""

from random import Random

import pytest

from kb.patching.applying import apply_diff
from kb.patching.unified import unified_diff
from tests.patching.pages import changed, handbook
from tests.patching.programs import difflib_diff

LINES = "".join(f"line {number}\n" for number in range(1, 41))


def written(old: str, new: str, *, max_bytes: int = 1 << 20) -> str:
    return unified_diff(old, new, filename="deployment.md", max_bytes=max_bytes).text


def test_a_change_is_shown_with_three_lines_around_it() -> None:
    assert written(LINES, LINES.replace("line 20\n", "LINE 20\nand more\n")) == (
        "--- a/deployment.md\n"
        "+++ b/deployment.md\n"
        "@@ -17,7 +17,8 @@\n"
        " line 17\n line 18\n line 19\n-line 20\n+LINE 20\n+and more\n line 21\n line 22\n line 23\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "hunk"),
    [
        ("", "a\n", "@@ -0,0 +1,1 @@\n+a\n"),
        ("a\n", "", "@@ -1,1 +0,0 @@\n-a\n"),
        (
            "a",
            "b",
            "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        ),
        ("a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"),
        (
            "a\nb",
            "A\nb",
            "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n",
        ),
        ("x\u2028y\n", "x\u2028z\n", "@@ -1,1 +1,1 @@\n-x\u2028y\n+x\u2028z\n"),
    ],
)
def test_ends_of_texts_are_shown_as_diff_shows_them(old: str, new: str, hunk: str) -> None:
    assert written(old, new) == f"--- a/deployment.md\n+++ b/deployment.md\n{hunk}"


def test_equal_texts_have_an_empty_diff() -> None:
    assert unified_diff(LINES, LINES, filename="deployment.md", max_bytes=0).is_whole
    assert written(LINES, LINES, max_bytes=0) == ""


def test_changes_that_are_near_share_a_hunk_and_others_do_not() -> None:
    near = LINES.replace("line 10\n", "").replace("line 17\n", "")
    far = LINES.replace("line 10\n", "").replace("line 18\n", "")

    assert written(LINES, near).count("@@ -") == 1
    assert written(LINES, far).count("@@ -") == 2


def test_a_diff_that_is_too_long_ends_with_a_whole_hunk_and_says_so() -> None:
    new = LINES.replace("line 5\n", "LINE 5\n").replace("line 30\n", "LINE 30\n")
    whole = written(LINES, new)
    first = whole[: whole.index("@@ -27")]

    for max_bytes in (len(whole) - 1, len(first)):
        cut = unified_diff(LINES, new, filename="deployment.md", max_bytes=max_bytes)
        assert (cut.text, cut.is_whole) == (first, False)
    assert apply_diff(LINES, first, path="deployment.md").text == LINES.replace("line 5\n", "LINE 5\n")
    assert written(LINES, new, max_bytes=len(first) - 1) == ""


def test_diffs_of_pages_are_about_as_short_as_those_of_others() -> None:
    random = Random(1)
    ours = theirs = 0
    for page in handbook() * 5:
        new = changed(page, random)
        ours += len(written(page, new))
        theirs += len(difflib_diff(page, new))

    assert ours <= theirs * 1.1
