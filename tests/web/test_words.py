"""How times are told, and how a long source is cut."""

import datetime

import pytest

from web.source import CHARACTERS_MAX, LINES_MAX, page_of_source
from web.templatetags.brain import ahead_in_words, in_words, moment

NOON = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        ({"seconds": -30}, "just now"),
        ({"seconds": 59}, "just now"),
        ({"seconds": 60}, "1 minute ago"),
        ({"minutes": 59, "seconds": 59}, "59 minutes ago"),
        ({"hours": 1}, "1 hour ago"),
        ({"hours": 23, "minutes": 59}, "23 hours ago"),
        ({"hours": 24}, "yesterday"),
        ({"hours": 48}, "2 days ago"),
        ({"days": 30}, "30 days ago"),
        ({"days": 31}, "30 October 2026"),
    ],
)
def test_a_time_is_told_in_words(ago: dict[str, int], words: str) -> None:
    assert in_words(NOON - datetime.timedelta(**ago), NOON) == words


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        ({"seconds": 1}, "in 1 minute"),
        ({"minutes": 59, "seconds": 20}, "in 59 minutes"),
        ({"minutes": 59, "seconds": 59}, "in 1 hour"),
        ({"hours": 23, "minutes": 20}, "in 23 hours"),
        ({"hours": 23, "minutes": 59}, "tomorrow"),
        ({"days": 30}, "in 30 days"),
        ({"days": 365}, "in 365 days"),
        ({"days": 400}, "on 4 January 2028"),
    ],
)
def test_a_time_to_come_is_told_in_words(ahead: dict[str, int], words: str) -> None:
    assert ahead_in_words(NOON + datetime.timedelta(**ahead), NOON) == words


def test_the_exact_time_stands_beside_the_words() -> None:
    html = moment("2020-02-03T04:05:06.000007Z")

    assert html == (
        '<time datetime="2020-02-03T04:05:06.000007Z" title="3 February 2020, 04:05:06 UTC">3 February 2020</time>'
    )


def test_a_short_source_is_one_page() -> None:
    page = page_of_source("a\n\nb", "")

    assert page.lines == [(1, "a"), (2, ""), (3, "b")]
    assert (page.first, page.last, page.total, page.previous, page.following) == (1, 3, 3, 0, 0)


def test_the_newline_at_the_end_makes_no_line() -> None:
    assert page_of_source("a\n", "").lines == [(1, "a")]
    assert page_of_source("\n", "").lines == [(1, "")]
    assert page_of_source("", "").lines == []


def test_pages_follow_each_other_without_gap_or_overlap() -> None:
    content = "".join(f"line {number}\n" for number in range(1, 2 * LINES_MAX + 2))
    found, begin = [], "1"
    while begin != "0":
        page = page_of_source(content, begin)
        found += page.lines
        begin = str(page.following)

    assert found == [(number, f"line {number}") for number in range(1, 2 * LINES_MAX + 2)]
    assert page_of_source(content, str(LINES_MAX + 1)).previous == 1


def test_long_lines_make_short_pages_and_none_is_cut() -> None:
    long = "x" * (CHARACTERS_MAX // 2 + 1)
    content = f"{long}\n{long}\n{long * 4}\n"

    first, last = page_of_source(content, "1"), page_of_source(content, "3")

    assert (first.last, first.following) == (1, 2)
    assert last.lines == [(3, long * 4)]


@pytest.mark.parametrize("begin", ["0", "-1", "4", "x", "٣", "1e9", "9" * 30])
def test_what_is_no_line_begins_at_the_first(begin: str) -> None:
    assert page_of_source("a\nb\nc\n", begin).first == 1
