"""Texts of every kind that the text policy allows, and pairs of them as an edit makes them."""

from random import Random

from hypothesis import strategies as st

# Lines that have undone one patch program or another.
TRICKY = (
    "",
    " ",
    "\t",
    "-- note: x",
    "++ new: 2",
    "--- a/deployment.md",
    "+++ b/deployment.md",
    "@@ -1 +1 @@",
    "@@ -1,2 +1,2 @@ heading",
    "\\ No newline at end of file",
    "diff --git a/x b/y",
    "Index: x",
    "====",
    "*** Begin Patch",
    "<<<<<<< ours",
    "2c2",
    "1,3d",
    "```",
    "~~~",
    "- item",
    "+ item",
    "| a | b |",
    "x\u2028y",
    "\u2028",
    "\u2029",
    "\ufeff",
    "e\u0301",
    "\u00e9",
    "\u00a0",
    "\u4e2d\u6587",
    "\U0001f469\u200d\U0001f4bb",
    "trailing  ",
)
# Everything but control characters other than the tab, line feeds and lone surrogates.
CHARACTERS = st.characters(exclude_categories=["Cc", "Cs"], include_characters="\t")

line = st.one_of(
    st.sampled_from("ab"), st.sampled_from(TRICKY), st.text(CHARACTERS, max_size=8), st.sampled_from("ab")
)
ends = st.sampled_from(["", "\n", "\n"])


@st.composite
def texts(draw: st.DrawFn, max_lines: int = 30) -> str:
    """A text: empty, of one character, of lines that are often alike, with and without a newline at its end."""
    return _joined(draw(st.lists(line, max_size=max_lines)), draw(ends))


@st.composite
def pairs(draw: st.DrawFn, *, told_apart: bool = False) -> tuple[str, str]:
    """A text, and what a few changes of its lines make of it. ``told_apart``: no two lines of the old one are alike."""
    old = draw(st.lists(line, max_size=30))
    if told_apart:
        old = [f"{text} {number}" for number, text in enumerate(old)]
    new = list(old)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(new)))
        removed = draw(st.integers(0, 3))
        new[at : at + removed] = draw(st.lists(line, max_size=3))
    return _joined(old, draw(ends)), _joined(new, draw(ends))


def _joined(parts: list[str], end: str) -> str:
    return "\n".join(parts) + (end if parts else "")


def random_pair(random: Random) -> tuple[str, str]:
    """Such a pair for those who try millions of them and need no example made smaller."""
    old = [_random_line(random) for _ in range(random.choice((0, 1, 1, 2, 3, 5, 8, 20, 40)))]
    new = list(old)
    for _ in range(random.randint(0, 4)):
        at = random.randint(0, len(new))
        new[at : at + random.randint(0, 3)] = [_random_line(random) for _ in range(random.randint(0, 3))]
    return _joined(old, random.choice(("", "\n", "\n"))), _joined(new, random.choice(("", "\n", "\n")))


def _random_line(random: Random) -> str:
    if random.random() < 0.7:
        return random.choice((*TRICKY, "a", "b"))
    return "".join(
        random.choice("ab \t-+@\\\u00e9x\u2028\u2029\U0001f600") for _ in range(random.randint(0, 6))
    )
