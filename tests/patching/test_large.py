"""Large and hostile inputs come to an end: searches are bounded by characters looked at, not by a clock."""

import pytest

from core import limits, text
from core.errors import PatchFailed
from kb.patching.applying import apply_diff, apply_edits
from kb.patching.hints import GUESSERS_MAX, VOTERS_MAX, VOTES_EACH_MAX
from kb.patching.lines import BudgetSpent, Lines, SearchBudget
from kb.patching.unified import COMPARED_LINES_MAX, UnifiedDiff, unified_diff

PATH = "deployment.md"
MANY = 34_000


def page(lines: int) -> list[str]:
    return [f"Line {number} of a long page with a few words in it to make it long" for number in range(lines)]


def joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def hunks(lines: list[str], *, shift: int, every: int = 4) -> list[str]:
    return [
        f"@@ -{at + 1 + shift},2 +{at + 1},2 @@\n {lines[at]}\n-{lines[at + 1]}\n+{at}\n"
        for at in range(0, len(lines) - 1, every)
    ]


def test_thousands_of_hunks_on_a_page_of_9_mib_are_applied() -> None:
    lines = page(140_000)

    result = apply_diff(joined(lines), "".join(hunks(lines, shift=0)), path=PATH).text.split("\n")

    assert len(hunks(lines, shift=0)) >= MANY
    assert (result[0], result[1], result[5], result[-1]) == (lines[0], "0", "4", "")
    assert len(result) == len(lines) + 1


def test_thousands_of_misplaced_hunks_end_with_the_search_budget() -> None:
    lines = page(140_000)

    with pytest.raises(PatchFailed) as refused:
        apply_diff(joined(lines), "".join(hunks(lines, shift=7)), path=PATH)

    assert refused.value.details["failures"][0]["reason"] == "search_budget"
    assert refused.value.details["more_failures"] > MANY * 9 // 10


def test_a_few_misplaced_hunks_on_a_page_of_9_mib_are_found() -> None:
    lines = page(140_000)
    few = hunks(lines, shift=7)[1::9_000]

    result = apply_diff(joined(lines), "".join(few), path=PATH)

    assert [offset.found_line - offset.declared_line for offset in result.offsets] == [-7] * len(few)


@pytest.mark.parametrize("other", ["a" * 60 + "b", "b" + "a" * 60])
def test_lines_that_are_nearly_alike_do_not_slow_a_search_down(other: str) -> None:
    near = "a" * 61 + "\n"
    whole = near * (9 * limits.MIB // len(near))
    count = 1_000
    block = "".join(f" {line}\n" for line in ["a" * 61] * count)
    diff = f"@@ -5,{count + 1} +5,{count + 2} @@\n{block} {other}\n+new\n"

    with pytest.raises(PatchFailed) as refused:
        apply_diff(whole, diff, path=PATH)

    assert refused.value.details["failures"][0]["reason"] == "context_mismatch"
    placed = apply_diff(whole + f"{other}\nrest\n", diff, path=PATH)
    assert placed.text.endswith(f"{other}\nnew\nrest\n")


def test_a_hundred_edits_of_the_largest_entry_are_applied() -> None:
    lines = page(140_000)
    edits = [(f"{lines[number]}\n", f"{number}\n") for number in range(0, 140_000, 1_400)]

    result = apply_edits(joined(lines), edits).text

    assert len(edits) == limits.EDITS_MAX
    assert result.count("\n") == 140_000
    assert result.startswith("0\nLine 1 ")


def test_a_search_counts_what_it_looks_at_and_the_next_one_is_refused() -> None:
    budget = SearchBudget(250)
    lines = Lines("x\n" * 50, budget)

    assert lines.find("y", most=1) == []
    assert lines.find("x", most=3) == [0, 2, 4]
    assert budget.left == 250 - 100 - 5
    assert lines.find("y", most=1) == []
    assert lines.find("y", most=1) == []
    assert budget.left < 0
    with pytest.raises(BudgetSpent):
        lines.find("x", most=1)


def test_hints_for_ten_failures_stay_within_the_same_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[int] = []
    real = SearchBudget.spend

    def spend(budget: SearchBudget, characters: int) -> None:
        spent.append(characters)
        real(budget, characters)

    monkeypatch.setattr(SearchBudget, "spend", spend)
    whole = ("word " * 12 + "\n") * 150_000
    diff = "".join(f"@@ -{n} +{n} @@\n-{'words ' * 2_000}{n}\n+new\n" for n in range(1, 40))

    with pytest.raises(PatchFailed):
        apply_diff(whole, diff, path=PATH)

    assert sum(spent) <= limits.SEARCH_BUDGET_CHARACTERS + len(whole)
    assert VOTERS_MAX * VOTES_EACH_MAX + GUESSERS_MAX < 1_000


def test_one_line_of_10_mib_and_10_million_lines_are_texts_like_any_other() -> None:
    long = "x" * (limits.CONTENT_MAX_BYTES - 2) + "y\n"
    assert apply_edits(long, [("xy", "z")]).text == long[:-3] + "z\n"

    many = "\n" * (limits.CONTENT_MAX_BYTES - 2) + "y\n"
    last = many.count("\n")
    assert apply_diff(many, f"@@ -{last - 1},2 +{last - 1},2 @@\n \n-y\n+z\n", path=PATH).text[-3:] == "\nz\n"


def test_comparing_two_large_texts_ends_and_tells_when_it_is_not_whole() -> None:
    lines = page(140_000)
    for other in (lines[::-1], [f"{line}!" for line in lines], ["a", "b"] * 70_000):
        diff = unified_diff(
            joined(lines), joined(other), filename=PATH, max_bytes=limits.DIFF_SINCE_MAX_BYTES
        )
        assert not diff.is_whole
        assert len(diff.text.encode()) <= limits.DIFF_SINCE_MAX_BYTES

    one = unified_diff(
        "\n" * 9_000_000, "\n" * 8_000_000 + "x" + "\n" * 1_000_000, filename=PATH, max_bytes=1_000
    )
    assert one.is_whole
    assert apply_diff("\n" * 9_000_000, one.text, path=PATH).text == "\n" * 8_000_000 + "x" + "\n" * 1_000_000


def test_more_lines_than_are_compared_are_not_compared() -> None:
    lines = [f"{number}" for number in range(COMPARED_LINES_MAX + 10)]
    other = ["first", *lines[1:-1], "last"]

    assert unified_diff(joined(lines), joined(other), filename=PATH, max_bytes=1_000) == UnifiedDiff(
        "", is_whole=False
    )
    assert unified_diff(joined(lines), joined(lines[1:]), filename=PATH, max_bytes=1_000).is_whole


def test_a_diff_of_the_largest_size_is_read() -> None:
    body = "+x\n" * (limits.DIFF_MAX_BYTES // 3 - 20)
    count = body.count("\n")
    diff = f"@@ -1 +1,{count + 1} @@\n one\n{body}"

    assert (
        apply_diff("one\n", text.clean_content(diff, max_bytes=limits.DIFF_MAX_BYTES), path=PATH).text.count(
            "x"
        )
        == count
    )
