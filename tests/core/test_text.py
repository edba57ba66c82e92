import sys
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import limits, text
from core.errors import InvalidArgument, LimitExceeded

unhurried = settings(deadline=None)

CONTROLS = [chr(number) for number in range(sys.maxunicode + 1) if unicodedata.category(chr(number)) == "Cc"]
REFUSED_CONTROLS = [control for control in CONTROLS if control not in "\t\n\r"]

SURROGATES = ["\ud800", "\udbff", "\udc00", "\udfff", "\ude00\ud83d"]

near_characters = st.one_of(
    st.sampled_from("ab \t\n\r\r\n\u2028\u2029\ufeffé€😀"),
    st.sampled_from("ab \t\n\r\0\x0b\x0c\x1b\x1c\x7f\x80\x85\x9f\u00a0\ud800\udfff"),
    st.characters(),
    st.characters(categories=["Cs", "Cc"]),
)
any_text = st.text(near_characters, max_size=20)


# -- a second implementation: one character at a time ----------------------------------------------------------


class Verdict:
    """What the text policy says to a text: what is stored, or why it is refused, and where."""

    def __init__(self, given_text: str, max_bytes: int) -> None:
        self.stored = ""
        self.size = 0
        self.refused_characters: list[tuple[int, str]] = []
        line, before = 1, ""
        for character in given_text:
            number = ord(character)
            self.size += 1 if number < 0x80 else 2 if number < 0x800 else 3 if number < 0x10000 else 4
            if character == "\n" and before == "\r":
                pass  # the second half of CRLF; the first has ended the line
            elif character in "\r\n":
                self.stored += "\n"
                line += 1
            else:
                self.stored += character
                if unicodedata.category(character) in ("Cc", "Cs") and character != "\t":
                    self.refused_characters.append((line, f"U+{number:04X}"))
            before = character
        self.is_too_large = self.size > max_bytes
        self.is_taken = not self.refused_characters and not self.is_too_large


def judge(given_text: str, max_bytes: int) -> None:
    """Compare ``clean_content`` with the second implementation."""
    verdict = Verdict(given_text, max_bytes)
    try:
        stored = text.clean_content(given_text, field="the_field", max_bytes=max_bytes)
    except (InvalidArgument, LimitExceeded) as error:
        refusal = error
    else:
        assert verdict.is_taken
        assert stored == verdict.stored
        return
    if isinstance(refusal, LimitExceeded):
        assert verdict.is_too_large
        assert refusal.details == {"field": "the_field", "limit": max_bytes, "unit": "bytes"}
    else:
        assert refusal.details["field"] == "the_field"
        assert (refusal.details["line"], refusal.details["code_point"]) in verdict.refused_characters


@unhurried
@given(any_text, st.integers(min_value=0, max_value=30))
@example("\r\n", 1)
@example("é", 1)
@example("€€", 5)
@example("😀", 3)
@example("\r\r\n\n\r", 9)
@example("a\rb\r\n\x00", 9)
def test_content_is_judged_as_the_second_implementation_judges_it(given_text: str, max_bytes: int) -> None:
    judge(given_text, max_bytes)


@unhurried
@given(any_text)
def test_what_is_stored_is_clean_and_stays_as_it_is(given_text: str) -> None:
    verdict = Verdict(given_text, 100)
    if verdict.is_taken:
        stored = text.clean_content(given_text)
        assert text.clean_content(stored) == stored
        assert "\r" not in stored
        assert stored.encode().decode() == stored


# -- characters -----------------------------------------------------------------------------------------------


def test_there_are_62_refused_control_characters_and_every_one_is_refused_with_its_place() -> None:
    assert len(CONTROLS) == 65
    for control in REFUSED_CONTROLS:
        for around in ("", "é", "\u2028"):  # plain ASCII and other text go different ways
            with pytest.raises(InvalidArgument) as refused:
                text.clean_content(f"one\ntwo {around}{control}\nthree")
            assert refused.value.details["line"] == 2
            assert refused.value.details["code_point"] == f"U+{ord(control):04X}"
            assert refused.value.details["field"] == "content"


def test_no_other_character_of_unicode_is_refused_or_changed() -> None:
    kept = "".join(
        chr(number)
        for number in range(sys.maxunicode + 1)
        if unicodedata.category(chr(number)) not in ("Cc", "Cs")
    )

    assert text.clean_content(kept) == kept


@pytest.mark.parametrize("surrogate", SURROGATES, ids=ascii)
@pytest.mark.parametrize(
    "clean",
    [
        text.clean_content,
        text.clean_title,
        text.clean_display_name,
        text.clean_description,
        text.clean_reason,
    ],
)
def test_a_lone_surrogate_is_refused_everywhere(clean: Callable[[str], str], surrogate: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        clean("a" + surrogate)

    assert refused.value.details["code_point"] == f"U+{ord(surrogate[0]):04X}"
    with pytest.raises(InvalidArgument):
        text.clean_tags([surrogate])


def test_two_surrogates_that_make_a_character_are_still_refused() -> None:
    # JSON's decoder joins a pair, so a pair that arrives here was never one character.
    with pytest.raises(InvalidArgument):
        text.clean_content("\ud83d\ude00")


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("", ""),
        ("a", "a"),
        ("a\n", "a\n"),
        ("\r\n", "\n"),
        ("\r", "\n"),
        ("\n\r", "\n\n"),
        ("\r\r\n", "\n\n"),
        ("\r\n\n", "\n\n"),
        ("\r\n\r\n", "\n\n"),
        ("\r\r", "\n\n"),
        ("a\rb\r\nc\nd\r", "a\nb\nc\nd\n"),
        ("é\r\n\u2028\r", "é\n\u2028\n"),
        ("\ufeff# Title\r\n", "\ufeff# Title\n"),
    ],
)
def test_crlf_and_lone_cr_become_lf(given_text: str, stored: str) -> None:
    assert text.clean_content(given_text) == stored
    assert text.clean_description(given_text) == stored
    assert text.clean_reason(given_text) == stored


@pytest.mark.parametrize(
    "kept",
    [
        "\ufeff# Title\n",
        "a\u2028b\u2029c",
        "  a  \n\n\t\n",
        "e\u0301",
        "\u00e9",
        "\ufb01",
        "a\u200bb\u00ad",
        "\u202eabc",
        "\ufffe\uffff",
        "no newline at the end",
    ],
)
def test_nothing_else_is_changed(kept: str) -> None:
    assert text.clean_content(kept) == kept


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_refusal_counts_lines_as_they_would_be_stored(line_end: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        text.clean_content(line_end.join(["one", "two\u2028", "three \0"]))

    assert (refused.value.details["line"], refused.value.details["code_point"]) == (3, "U+0000")


# -- the size of content --------------------------------------------------------------------------------------

TEN_MIB = 10 * 1024 * 1024


@pytest.mark.parametrize(
    "unit", ["a", "\n", "é", "€", "😀", "\u2028", "\ufeff"], ids=lambda unit: f"U+{ord(unit):04X}"
)
def test_content_of_ten_mib_is_taken_and_one_byte_more_is_not(unit: str) -> None:
    width = len(unit.encode())
    fitting = unit * (TEN_MIB // width)
    fitting += "b" * (TEN_MIB - width * len(fitting))
    assert len(fitting.encode()) == TEN_MIB == limits.CONTENT_MAX_BYTES

    assert text.clean_content(fitting) == fitting
    for beyond in (fitting + "b", "b" + fitting):
        with pytest.raises(LimitExceeded) as refused:
            text.clean_content(beyond)
        assert refused.value.details == {"field": "content", "limit": TEN_MIB, "unit": "bytes"}


def test_the_size_is_measured_before_line_ends_are_normalised() -> None:
    half = TEN_MIB // 2

    assert text.clean_content("\r\n" * half) == "\n" * half
    with pytest.raises(LimitExceeded):
        text.clean_content("\r\n" * half + "\n")
    with pytest.raises(LimitExceeded):
        text.clean_content("é" * (half - 1) + "\r\na")


def test_what_is_far_too_large_is_refused_before_its_characters_are_looked_at() -> None:
    with pytest.raises(LimitExceeded):
        text.clean_content("\0" * 11, max_bytes=10)


# -- titles, names, tags: one line ----------------------------------------------------------------------------


def clean_tag(tag: str) -> str:
    return text.clean_tags([tag])[0]


ONE_LINE = [
    pytest.param(text.clean_title, 200, id="title"),
    pytest.param(text.clean_display_name, 120, id="display-name"),
    pytest.param(clean_tag, 64, id="tag"),
]


@pytest.mark.parametrize(("clean", "limit"), ONE_LINE)
@pytest.mark.parametrize("unit", ["a", "é", "😀", "\u0301"], ids=lambda unit: f"U+{ord(unit):04X}")
def test_a_line_is_measured_in_characters(clean: Callable[[str], str], limit: int, unit: str) -> None:
    assert clean(unit) == unit
    assert clean(unit * limit) == unit * limit
    with pytest.raises(LimitExceeded) as refused:
        clean(unit * (limit + 1))
    assert (refused.value.details["limit"], refused.value.details["unit"]) == (limit, "characters")


@pytest.mark.parametrize(("clean", "limit"), ONE_LINE)
@pytest.mark.parametrize(
    "blank", ["", " ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028", " \t "]
)
def test_a_line_is_not_blank(clean: Callable[[str], str], limit: int, blank: str) -> None:
    with pytest.raises(InvalidArgument):
        clean(blank)


@pytest.mark.parametrize(("clean", "limit"), ONE_LINE)
def test_a_line_has_no_control_character_at_all(clean: Callable[[str], str], limit: int) -> None:
    for control in CONTROLS:
        for line in (f"a{control}b", f"{control}a", f"a{control}", control):
            with pytest.raises(InvalidArgument):
                clean(line)


@pytest.mark.parametrize(("clean", "limit"), ONE_LINE)
def test_a_line_is_not_trimmed_or_normalised(clean: Callable[[str], str], limit: int) -> None:
    for kept in (" a ", "e\u0301", "\u00e9", "\ufeffa", "a\u2028b", "A  a"):
        assert clean(kept) == kept


@unhurried
@given(st.text(near_characters, max_size=6))
def test_titles_are_judged_as_a_second_implementation_judges_them(title: str) -> None:
    is_good = (
        not title.isspace()
        and title != ""
        and all(unicodedata.category(character) not in ("Cc", "Cs") for character in title)
    )
    try:
        assert text.clean_title(title) == title
    except InvalidArgument:
        assert not is_good
    else:
        assert is_good


def test_an_argument_of_one_line_may_be_blank_but_holds_no_control_character() -> None:
    for good in ("", "  ", "a\u2028b", "\ufeff"):
        text.refuse_unprintable(good, field="query")
    for bad in [*CONTROLS, *SURROGATES]:
        with pytest.raises(InvalidArgument) as refused:
            text.refuse_unprintable(f"a{bad}", field="query")
        assert refused.value.details["field"] == "query"


# -- descriptions and reasons ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clean", "field", "limit"),
    [(text.clean_description, "description", 4000), (text.clean_reason, "reason", 500)],
)
def test_a_block_of_text_is_measured_in_characters_before_line_ends_are_normalised(
    clean: Callable[[str], str], field: str, limit: int
) -> None:
    assert clean("") == ""
    assert clean("😀" * limit) == "😀" * limit
    assert clean("\r\n" * (limit // 2)) == "\n" * (limit // 2)
    for beyond in ("a" * (limit + 1), "\r\n" * (limit // 2) + "\r"):
        with pytest.raises(LimitExceeded) as refused:
            clean(beyond)
        assert refused.value.details == {"field": field, "limit": limit, "unit": "characters"}


@pytest.mark.parametrize("clean", [text.clean_description, text.clean_reason])
def test_a_block_of_text_has_no_control_character_but_tab_and_line_ends(clean: Callable[[str], str]) -> None:
    assert clean("a\tb\n\u2028") == "a\tb\n\u2028"
    for control in REFUSED_CONTROLS:
        with pytest.raises(InvalidArgument) as refused:
            clean(f"a\n{control}")
        assert (refused.value.details["line"], refused.value.details["code_point"]) == (
            2,
            f"U+{ord(control):04X}",
        )


# -- tags -----------------------------------------------------------------------------------------------------


def test_tags_keep_their_order_and_case() -> None:
    assert text.clean_tags([]) == []
    assert text.clean_tags(["b", "a", "B"]) == ["b", "a", "B"]


@pytest.mark.parametrize("tags", [["a", "a"], ["é", "b", "é"]])
def test_a_tag_that_stands_twice_is_refused(tags: list[str]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        text.clean_tags(tags)
    assert refused.value.details["field"] == "tags"


def test_tags_that_only_look_alike_are_two() -> None:
    assert text.clean_tags(["\u00e9", "e\u0301", "e"]) == ["\u00e9", "e\u0301", "e"]


def test_there_are_at_most_fifty_tags() -> None:
    fifty = [f"tag {number}" for number in range(50)]

    assert text.clean_tags(fifty) == fifty
    with pytest.raises(LimitExceeded) as refused:
        text.clean_tags([*fifty, "one more"])
    assert refused.value.details == {"field": "tags", "limit": 50, "unit": "tags"}


# -- lines ----------------------------------------------------------------------------------------------------


def lines_oracle(given_text: str) -> list[str]:
    """The lines, each with its LF where it has one, found one character at a time."""
    lines, line = [], ""
    for character in given_text:
        line += character
        if character == "\n":
            lines.append(line)
            line = ""
    return [*lines, line] if line else lines


texts_with_lines = st.text(st.sampled_from("ab\n\n\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029é"), max_size=30)


@unhurried
@given(texts_with_lines, st.data())
def test_lines_are_counted_and_cut_as_the_second_implementation_does(given_text: str, data: Any) -> None:
    lines = lines_oracle(given_text)
    first = data.draw(st.integers(min_value=1, max_value=len(lines) + 3))
    last = data.draw(st.integers(min_value=first, max_value=len(lines) + 5))

    assert text.count_lines(given_text) == len(lines)
    assert text.slice_lines(given_text, first, last) == "".join(lines[first - 1 : last])


@unhurried
@given(texts_with_lines)
def test_lines_put_together_again_are_the_text(given_text: str) -> None:
    total = text.count_lines(given_text)

    assert text.slice_lines(given_text, 1, total) == given_text
    assert "".join(text.slice_lines(given_text, line, line) for line in range(1, total + 1)) == given_text


@pytest.mark.parametrize(
    ("given_text", "count"),
    [
        ("", 0),
        ("\n", 1),
        ("a", 1),
        ("a\n", 1),
        ("a\nb", 2),
        ("a\n\n", 2),
        ("\n\n", 2),
        ("a\u2028b\u2029c\x85d", 1),
    ],
)
def test_a_line_ends_at_lf_and_nowhere_else(given_text: str, count: int) -> None:
    assert text.count_lines(given_text) == count


def test_an_empty_text_has_no_line_to_cut() -> None:
    assert text.slice_lines("", 1, 0) == ""
    assert text.slice_lines("", 1, 1) == ""
    assert text.slice_lines("a\nb\n", 3, 9) == ""
    assert text.slice_lines("a\nb\n", 2, 1) == ""
