"""Which spellings of a diff are accepted, and which are refused with which reason at which line."""

from typing import Any

import pytest

from core.errors import PatchFailed
from kb.patching.applying import apply_diff

PATH = "Engineering/Payments/deployment.md"
OLD = "one\ntwo\nthree\nfour\n"
NEW = "one\nTWO\nthree\nfour\n"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
NAMES = "--- a/deployment.md\n+++ b/deployment.md\n"


def refusal_of(diff: str, text: str = OLD) -> list[dict[str, Any]]:
    with pytest.raises(PatchFailed) as refused:
        apply_diff(text, diff, path=PATH)
    failures: list[dict[str, Any]] = refused.value.details["failures"]
    return failures


@pytest.mark.parametrize(
    "diff",
    [
        HUNK,
        NAMES + HUNK,
        f"\n\n \t\n{NAMES}{HUNK}\n\n",
        f"```diff\n{NAMES}{HUNK}```\n",
        f"\n````\n{HUNK}\n````  \n\n",
        f"~~~ diff title\n{HUNK}~~~~\n",
        f"diff --git a/deployment.md b/deployment.md\nindex 5626abf..814f4a4 100644\n{NAMES}{HUNK}",
        f"Index: deployment.md\n{'=' * 67}\n{NAMES}{HUNK}",
        f"{NAMES}\n{HUNK}",
        HUNK.removesuffix("\n"),
        HUNK.replace("@@\n", "@@ ## Deploying @@\n"),
        HUNK.replace("-1,3", "-01,3"),
    ],
    ids=[
        "a hunk alone",
        "names",
        "blank lines around",
        "a fence",
        "a longer fence",
        "a fence of tildes",
        "git",
        "svn",
        "a blank line before the hunk",
        "no newline at its end",
        "a heading behind the numbers",
        "a leading zero",
    ],
)
def test_the_usual_spellings_mean_the_same(diff: str) -> None:
    assert apply_diff(OLD, diff, path=PATH).text == NEW


@pytest.mark.parametrize(
    "name",
    [
        "deployment.md",
        "a/deployment.md",
        "b/deployment.md",
        "i/deployment.md",
        "w/deployment.md",
        "./deployment.md",
        "Payments/deployment.md",
        "a/Engineering/Payments/deployment.md",
        "Engineering/Payments/deployment.md",
        "PAYMENTS/Deployment.MD",
        '"a/deployment.md"',
        "a/deployment.md\t2026-11-30 09:15:00.000000000 +0000",
        "deployment.md  ",
        "",
    ],
)
def test_a_header_may_name_the_filename_or_the_end_of_the_path(name: str) -> None:
    assert apply_diff(OLD, f"--- {name}\n+++ {name}\n{HUNK}", path=PATH).text == NEW


@pytest.mark.parametrize(
    "name",
    [
        "rollback.md",
        "ployment.md",
        "yments/deployment.md",
        "Billing/deployment.md",
        "/Engineering/Payments/deployment.md",
        "../Payments/deployment.md",
        "../../etc/passwd",
        "Other/Engineering/Payments/deployment.md",
        "deployment",
        "deployment.md.orig",
        "c/a/deployment.md",
        "deployment.md x",
    ],
)
@pytest.mark.parametrize("side", ["old", "new"])
def test_a_header_that_names_another_file_is_refused(name: str, side: str) -> None:
    old, new = (name, "b/deployment.md") if side == "old" else ("a/deployment.md", name)

    (failure,) = refusal_of(f"--- {old}\n+++ {new}\n{HUNK}")

    assert (failure["reason"], failure["diff_line"]) == ("wrong_target", 1 if side == "old" else 2)
    assert name not in failure["problem"]


def test_the_name_of_an_entry_may_hold_blanks() -> None:
    diff = f"diff --git a/Month end.md b/Month end.md\n--- a/Month end.md\n+++ b/Month end.md\n{HUNK}"

    assert apply_diff(OLD, diff, path="Billing/Month end.md").text == NEW


@pytest.mark.parametrize(
    ("diff", "reason", "line"),
    [
        (f"diff --git a/x.md b/x.md\n{NAMES}{HUNK}", "wrong_target", 1),
        (f"diff --git a/{'x' * 5000}.md b/deployment.md\n{HUNK}", "wrong_target", 1),
        (f"Index: x.md\n{NAMES}{HUNK}", "wrong_target", 1),
        (f"{NAMES}{HUNK}--- a/rollback.md\n+++ b/rollback.md\n{HUNK}", "wrong_target", 8),
        (f"{NAMES}{HUNK}{NAMES}@@ -4 +4 @@\n-four\n+FOUR\n", "unsupported", 8),
        (f"{NAMES}{NAMES}{HUNK}", "unsupported", 3),
        (f"{NAMES}{HUNK}diff --git a/deployment.md b/deployment.md\n", "unsupported", 8),
        (f"--- /dev/null\n+++ b/deployment.md\n{HUNK}", "unsupported", 1),
        (f"--- a/deployment.md\n+++ /dev/null\n{HUNK}", "unsupported", 2),
        (f"old mode 100644\nnew mode 100755\n{NAMES}{HUNK}", "unsupported", 1),
        (f"new file mode 100644\n{NAMES}{HUNK}", "unsupported", 1),
        ("similarity index 100%\nrename from deployment.md\nrename to x.md\n", "unsupported", 1),
        ("Binary files a/deployment.md and b/deployment.md differ\n", "unsupported", 1),
        ("GIT binary patch\nliteral 4\nLcmZQzfB\n", "unsupported", 1),
        ("*** Begin Patch\n*** End Patch\n", "wrong_format", 1),
        ("*** deployment.md\n--- deployment.md\n***************\n", "wrong_format", 1),
        ("<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n", "wrong_format", 1),
        ("2c2\n< two\n---\n> TWO\n", "wrong_format", 1),
        ("1,3d\n", "wrong_format", 1),
        ("d1 3\n", "wrong_format", 1),
        ("@@@ -1,3 -1,3 +1,3 @@@\n  one\n", "wrong_format", 1),
        ("Please change two to TWO.\n", "wrong_format", 1),
        (f"Here it is:\n{HUNK}", "wrong_format", 1),
        (NAMES, "wrong_format", 2),
        ("```\n```\n", "wrong_format", 2),
        (f"```diff\n{HUNK}", "wrong_format", 1),
        (f"```diff\n{HUNK}```\nDone.\n", "trailing_text", 8),
        (f"{HUNK}```\n", "trailing_text", 6),
        (f"{HUNK}\nDone.\n", "trailing_text", 7),
        (f"{HUNK}\t\n", "trailing_text", 6),
        (f"{HUNK}Now this:\n@@ -4 +4 @@\n-four\n+FOUR\n", "wrong_format", 6),
        ("-two\n+TWO\n", "bad_hunk_header", 1),
        (f"{NAMES}-two\n+TWO\n", "bad_hunk_header", 3),
        ("@@\n-two\n+TWO\n", "bad_hunk_header", 1),
        ("@@ ... @@\n-two\n+TWO\n", "bad_hunk_header", 1),
        ("@@ -2 @@\n-two\n+TWO\n", "bad_hunk_header", 1),
        ("@@ -2,1 +2,1\n-two\n+TWO\n", "bad_hunk_header", 1),
        ("@@ -1234567890,1 +2,1 @@\n-two\n+TWO\n", "bad_hunk_header", 1),
        ("@@ -2,1 +2,1 @@x\n-two\n+TWO\n", "bad_hunk_header", 1),
        ("@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n", "count_mismatch", 1),
        ("@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n three\n", "count_mismatch", 1),
        ("@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n\n three\n", "count_mismatch", 1),
        ("@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n \n", "count_mismatch", 1),
        ("@@ -1,3 +1,3 @@\n one\n-two\n+TWO\nthree\n", "count_mismatch", 1),
        ("@@ -2 +2,2 @@\n-two\n+TWO\n\n", "count_mismatch", 1),
        ("@@ -1,0 +1,0 @@\n", "wrong_format", 1),
        ("@@ -1,2 +1,2 @@\n one\n two\n", "wrong_format", 1),
        ("@@ -2 +2 @@\n\\ No newline at end of file\n-two\n+TWO\n", "wrong_format", 1),
        ("@@ -2 +2 @@\n-two\n\\x\n+TWO\n", "wrong_format", 1),
        ("@@ -1,2 +1,2 @@\n-one\n\\ No newline at end of file\n-two\n+1\n+2\n", "wrong_format", 1),
        ("@@ -4 +4,2 @@\n four\n\\ No newline at end of file\n+five\n", "wrong_format", 1),
        ("@@ -4 +4,2 @@\n-four\n+five\n+\n\\ No newline at end of file\n", "wrong_format", 1),
    ],
)  # fmt: skip
def test_everything_else_is_refused_where_it_stands(diff: str, reason: str, line: int) -> None:
    failure = refusal_of(diff)[0]

    assert (failure["reason"], failure["diff_line"]) == (reason, line)


def test_a_removed_and_an_added_line_may_look_like_headers_as_long_as_counts_say_so() -> None:
    diff = "@@ -1,2 +1,2 @@\n--- a/rollback.md\n+++ b/rollback.md\n rest\n"

    assert apply_diff("-- a/rollback.md\nrest\n", diff, path=PATH).text == "++ b/rollback.md\nrest\n"


def test_what_stands_before_the_diff_does_not_hide_what_is_wrong_inside() -> None:
    failures = refusal_of("Here it is:\n@@ -1,2 +1,2 @@\n one\n-twoo\n+TWO\n")

    assert [failure["reason"] for failure in failures] == ["wrong_format", "context_mismatch"]
