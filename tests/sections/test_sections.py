"""Selecting by heading: what a heading is, where its section ends, and what a caller is told when it is not there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import limits
from core.errors import AmbiguousSection, InvalidArgument, LimitExceeded, NotFound, SectionNotFound
from core.ids import sha256_hex
from core.text import count_lines
from core.types import EntryLocator, Role
from kb import render_process, sections
from kb.headings import outline
from kb.sections import Section, lines_of_section
from kb.services.read_entry import read_entry
from tests.world import World

NESTED = "# P\nintro\n## A\na1\n## B\nb\n### A\na2\n# Q\nq"


def lines(content: str, heading: str, occurrence: int | None = None) -> tuple[int, int]:
    return lines_of_section(
        content, sha256_hex(content.encode()), count_lines(content), Section(heading, occurrence)
    )


@pytest.mark.parametrize(
    ("heading", "occurrence", "expected"),
    [
        ("P", None, (1, 8)),
        ("A", 1, (3, 4)),
        ("A", 2, (7, 8)),
        ("B", None, (5, 8)),
        ("Q", None, (9, 10)),
        ("Q", 1, (9, 10)),
    ],
)
def test_a_section_ends_before_the_next_heading_of_its_rank_or_higher(
    heading: str, occurrence: int | None, expected: tuple[int, int]
) -> None:
    assert lines(NESTED, heading, occurrence) == expected


def test_a_heading_that_stands_twice_must_be_counted() -> None:
    with pytest.raises(AmbiguousSection) as refused:
        lines(NESTED, "A")

    assert refused.value.details == {
        "occurrences": [{"occurrence": 1, "line": 3}, {"occurrence": 2, "line": 7}],
        "total_occurrences": 2,
    }


@pytest.mark.parametrize(
    ("heading", "occurrence"), [("Z", None), ("A", 3), ("P", 2), ("a", None), ("p", None)]
)
def test_a_heading_that_is_not_there_gets_the_outline(heading: str, occurrence: int | None) -> None:
    with pytest.raises(SectionNotFound) as refused:
        lines(NESTED, heading, occurrence)

    assert refused.value.details["outline"][:2] == [
        {"level": 1, "text": "P", "line": 1},
        {"level": 2, "text": "A", "line": 3},
    ]
    assert refused.value.details["total_headings"] == 5


@pytest.mark.parametrize(
    ("content", "headings"),
    [
        ("```\n# code\n```\n\n    # indented\n\n# Real\n", ["Real"]),
        ("> # quoted\n\n- # listed\n\n# Real\n", ["Real"]),
        ("<div>\n# in html\n</div>\n\n# Real\n", ["Real"]),
        ("---\ntitle: x\n---\n# Real\n", ["Real"]),
        ("Setext *one*\n====\n\nTwo\n---\n", ["Setext one", "Two"]),
        ("# `code` and [a link](x.md) and ![an image](y.png) ##\n", ["code and a link and an image"]),
        ("# A &amp; B \\* C <b>bold</b>\n", ["A & B * C bold"]),
        ("# Install { #install }\n", ["Install { #install }"]),
        ("\ufeff# After a mark\n", ["After a mark"]),
        ("#not a heading\n####### nor this\n", []),
        ("#\n## \n", ["", ""]),
        ("# one\ttab  and   blanks\n", ["one tab and blanks"]),
        ("# price $5 and $6\n", ["price $5 and $6"]),
    ],
)
def test_only_what_a_reader_sees_as_a_heading_is_one(content: str, headings: list[str]) -> None:
    assert [heading.text for heading in outline(content)] == headings


def test_what_is_close_is_told_and_never_taken() -> None:
    content = "# Roll-Back\n# Install { #install }\n# caf\u00e9\n# `Deploy` *now*\n"

    for wanted, meant in [
        ("roll-back", ["Roll-Back"]),
        ("## Install", ["Install { #install }"]),
        ("cafe\u0301", ["caf\u00e9"]),
        ("`Deploy` *now*", ["Deploy now"]),
        ("nothing like it", []),
    ]:
        with pytest.raises(SectionNotFound) as refused:
            lines(content, wanted)
        assert refused.value.details["did_you_mean"] == meant


def test_an_outline_is_cut_to_what_an_agent_can_read() -> None:
    content = "".join(f"# {number} {'x' * 300}\n" for number in range(60))

    with pytest.raises(SectionNotFound) as refused:
        lines(content, "nothing")

    details = refused.value.details
    assert (len(details["outline"]), details["total_headings"]) == (limits.OUTLINE_MAX, 60)
    assert all(len(row["text"]) <= limits.OUTLINE_TEXT_MAX_CHARACTERS for row in details["outline"])


def test_a_heading_too_long_to_be_looked_at_still_ends_a_section() -> None:
    content = f"# A\na\n# {'*x* ' * 200}\nlong\n# B\nb\n"

    assert lines(content, "A") == (1, 2)
    assert lines(content, "B") == (5, 6)


def test_a_large_entry_is_looked_through_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "# First\n" + "text\n" * 40_000 + "# Second\nend\n"

    def never(_content: str) -> list[object]:
        raise AssertionError("this was to be done aside")

    monkeypatch.setattr(sections, "outline", never)

    assert lines(content, "Second") == (40_002, 40_003)


def test_an_entry_whose_headings_take_too_long_is_refused_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(render_process.the_outliner, "outline", lambda _content: None)

    with pytest.raises(InvalidArgument):
        lines("# other\n" + "x\n" * 40_000, "other")


@pytest.mark.parametrize(
    ("section", "refusal"),
    [
        (Section(""), InvalidArgument),
        (Section("a\nb"), InvalidArgument),
        (Section("A", 0), InvalidArgument),
        (Section("a" * 501), LimitExceeded),
    ],
)
def test_a_section_that_no_entry_could_have_is_refused_before_looking(
    section: Section, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        sections.check_section(section)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from("ABC"), st.integers(0, 2)), min_size=1, max_size=12)
)
def test_sections_of_one_rank_cover_the_text_without_overlap(parts: list[tuple[int, str, int]]) -> None:
    content = "".join(f"{'#' * level} {name}\n" + "text\n" * body for level, name, body in parts)
    counts: dict[str, int] = {}
    found = []
    for _, name, _ in parts:
        counts[name] = counts.get(name, 0) + 1
        found.append(lines(content, name, counts[name]))

    for (first, last), (level, _, body) in zip(found, parts, strict=True):
        number = found.index((first, last))
        behind = next(
            (
                start
                for (start, _), (other, _, _) in zip(found[number + 1 :], parts[number + 1 :], strict=True)
                if other <= level
            ),
            None,
        )
        assert last == (behind - 1 if behind else count_lines(content))
        assert last - first >= body


@pytest.mark.django_db
def test_a_section_is_read_with_the_version_of_the_whole_entry(world: World) -> None:
    entry = world.entry("guide.md", NESTED)

    reading = read_entry(world.system, EntryLocator(path="guide.md"), section=Section("A", 2))

    assert (reading.content, reading.start_line, reading.end_line) == ("### A\na2\n", 7, 8)
    assert reading.version == entry.version
    last = read_entry(world.system, EntryLocator(path="guide.md"), section=Section("Q"))
    assert (last.content, last.ends_with_newline) == ("# Q\nq", False)


@pytest.mark.django_db
def test_headings_of_a_hidden_entry_are_told_to_nobody(world: World) -> None:
    world.entry("Billing/secret.md", "# Layoffs\n")
    world.folder("Payments")
    priya = world.person("priya", role=Role.READER, on="Payments")

    for path in ("Billing/secret.md", "Billing/missing.md"):
        with pytest.raises(NotFound):
            read_entry(priya, EntryLocator(path=path), section=Section("Nothing"))


@pytest.mark.django_db
def test_lines_and_a_section_at_once_are_refused(world: World) -> None:
    world.entry("guide.md", NESTED)

    with pytest.raises(InvalidArgument):
        read_entry(world.system, EntryLocator(path="guide.md"), lines=(1, 1), section=Section("P"))
