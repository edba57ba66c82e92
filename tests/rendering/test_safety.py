"""Whatever an entry holds, its HTML may stand in a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.markup import Markup, to_markup
from tests.rendering.judge import faults_of, text_of
from tests.rendering.payloads import PAYLOADS

PIECES = st.sampled_from(
    [
        *PAYLOADS,
        *"<>\"'`&;#[](){}!|-_*~$^=:/\\\n\n\t ",
        "<a ",
        "href=",
        "javascript:",
        "<img src=",
        "alt=",
        "</",
        "<!--",
        "-->",
        "<![CDATA[",
        "<svg>",
        "<math>",
        "<style>",
        "<table>",
        "```",
        "| a |\n|---|\n",
        "[^1]",
        "[^1]: ",
        "- [x] ",
        "&#x6A;",
        "\u2028",
    ]
)


def _parts(markup: Markup) -> list[str]:
    return [markup.front_matter, markup.opening, markup.body]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_hostile_text_brings_nothing_into_the_page(payload: str) -> None:
    for content in (payload, f"# A\n\n{payload}\n\nEnd", f"> 1. {payload}"):
        markup = to_markup(content, "Engineering/Payments")

        assert [faults_of(part) for part in _parts(markup)] == [[], [], []]


@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_mixture_of_them_does(content: str) -> None:
    markup = to_markup(content, "Engineering")

    assert [faults_of(part) for part in _parts(markup)] == [[], [], []]


def test_what_follows_a_hostile_text_is_still_there() -> None:
    for payload in PAYLOADS:
        if "<plaintext>" not in payload:
            html = to_markup(f"Before.\n\n{payload}\n\n\nAfter *all*.\n", "").body
            assert "Before." in text_of(html), payload


def test_an_image_is_never_loaded() -> None:
    markup = to_markup(
        '![Budget](https://charts.example/b.png) <img alt="Logo" src=https://logo.example/l.png>', ""
    )

    assert faults_of(markup.body) == []
    assert text_of(markup.body) == "Budget image at charts.example Logo image at logo.example"
    assert markup.body.count('class="image" href="https://') == 2


def test_classes_of_the_page_are_not_for_entries() -> None:
    html = to_markup('<span class="card k">a</span> <div class="top wide">b</div>', "").body

    assert '<span class="k">' in html
    assert "card" not in html
    assert "top" not in html
