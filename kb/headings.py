"""Headings of an entry: found by the same parser that renders it, never by looking for ``#``."""

import re
from itertools import pairwise

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from core import limits
from kb.markdown import parser, without_mark

# Where a first heading is looked for: in ever longer beginnings, since nearly all stand in the first.
_BEGINNINGS = (2_048, 32_768, 524_288)
_BLANKS = re.compile(r"[ \t\n]+")


def first_heading(content: str) -> str | None:
    """The plain text of the first top-level heading that has any, or None.

    Looks no further than half a million characters.
    """
    content = without_mark(content)
    for length in _BEGINNINGS:
        beginning = content[:length]
        if len(content) > length:
            beginning = beginning[: beginning.rfind("\n") + 1]
        tokens = _blocks().parse(beginning)
        for heading, inline in pairwise(tokens):
            if heading.type == "heading_open" and heading.level == 0:
                text = plain_text(_with_children(inline))
                if text:
                    return text
        if len(content) <= length:
            return None
    return None


class OutlineHeading(msgspec.Struct, frozen=True):
    """A top-level heading, one that is in no quote, list or HTML: its rank, its plain text, its first line from 1 on.

    ``selectable`` is False for one so long that its markup is not looked at; ``text`` is then empty.
    """

    level: int
    text: str
    line: int
    selectable: bool = True


def outline(content: str) -> list[OutlineHeading]:
    """Every top-level heading, in the order of the text. Takes seconds for some megabytes."""
    found = []
    tokens = _blocks().parse(without_mark(content))
    inlines = parser()
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open" and heading.level == 0 and heading.map is not None:
            selectable = len(inline.content) <= limits.HEADING_MAX_CHARACTERS
            text = plain_text(inlines.parseInline(inline.content)[0]) if selectable else ""
            found.append(OutlineHeading(int(heading.tag[1:]), text, heading.map[0] + 1, selectable))
    return found


def plain_text(inline: Token) -> str:
    """What a reader sees of an inline token: text, code, link texts and image descriptions, on one line."""
    return _BLANKS.sub(" ", "".join(_pieces(inline.children or []))).strip(" ")


def _pieces(children: list[Token]) -> list[str]:
    pieces = []
    for child in children:
        match child.type:
            case "text" | "code_inline" | "text_special" | "math_inline":
                pieces.append(child.content)
            case "softbreak" | "hardbreak":
                pieces.append(" ")
            case "image":
                pieces.extend(_pieces(child.children or []))
    return pieces


def _with_children(inline: Token) -> Token:
    return parser().parseInline(inline.content)[0]


def _blocks() -> MarkdownIt:
    # The block structure alone: a tenth of the work of parsing every line's inline markup.
    blocks = parser()
    blocks.core.ruler.enableOnly(["normalize", "block"])
    return blocks
