"""Headings of an entry: found by the same parser that renders it, never by looking for ``#``."""

import re
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

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


@cache
def _blocks() -> MarkdownIt:
    # The block structure alone: a tenth of the work of parsing every line's inline markup.
    blocks = parser()
    blocks.core.ruler.enableOnly(["normalize", "block"])
    return blocks
