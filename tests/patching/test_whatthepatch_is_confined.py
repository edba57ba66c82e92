"""Of whatthepatch one function is used, in one place, on hunks that Brain has read and placed itself.

Its own reading and applying of diffs put changes into wrong places without a word; some of that is shown here, so that
nobody takes it for an old story.
"""

import ast

import whatthepatch
from whatthepatch.patch import parse_unified_diff

from tests.test_house.repository import ROOT, files

ALLOWED = {("kb/patching/applying.py", "whatthepatch.patch.parse_unified_diff")}
# They show or measure what the package does by itself.
MEASURE_IT = {
    "tests/patching/test_whatthepatch_is_confined.py",
    "benchmarks/diffs.py",
    "benchmarks/patching.py",
}


def test_one_function_of_it_is_imported_in_one_place() -> None:
    imported = set()
    for path in files(".py"):
        place = path.relative_to(ROOT).as_posix()
        if place in MEASURE_IT:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "whatthepatch":
                imported |= {(place, f"{node.module}.{alias.name}") for alias in node.names}
            elif isinstance(node, ast.Import):
                imported |= {
                    (place, alias.name) for alias in node.names if alias.name.split(".")[0] == "whatthepatch"
                }

    assert imported == ALLOWED


def test_that_function_turns_a_hunk_into_exactly_its_operations() -> None:
    body = [" a\u2028b", "--- note", "-", "+++ new", "+@@ -1 +1 @@", " "]

    changes = parse_unified_diff(["@@ -1,4 +1,4 @@", *body])

    assert [(change.old is not None, change.new is not None, change.line) for change in changes] == [
        (True, True, "a\u2028b"),
        (True, False, "-- note"),
        (True, False, ""),
        (False, True, "++ new"),
        (False, True, "@@ -1 +1 @@"),
        (True, True, ""),
    ]


def test_by_itself_it_puts_an_insertion_where_the_context_is_not() -> None:
    diff = "--- a/x.md\n+++ b/x.md\n@@ -1 +1,2 @@\n bogus\n+added\n"

    (parsed,) = whatthepatch.parse_patch(diff)

    assert whatthepatch.apply_diff(parsed, ["real"]) == ["real", "added"]
