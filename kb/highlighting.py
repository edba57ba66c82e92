"""Colour for code: a dozen classes that the stylesheet knows, from Pygments' hundred kinds of token."""

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any

from markdown_it.common.utils import escapeHtml
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token

# Loaded once at the start: the process that renders can open no file afterwards, not even a module.
LANGUAGES = """
    bash c c++ console csharp css diff docker go graphql groovy html ini java javascript json jsx kotlin lua make
    markdown nginx perl php powershell protobuf pycon pytb python r ruby rust scala scss sql swift terraform toml tsx
    typescript xml yaml
"""
CLASSES = {
    Token.Comment: "c",
    Token.Generic.Deleted: "gd",
    Token.Generic.Heading: "gh",
    Token.Generic.Inserted: "gi",
    Token.Generic.Output: "go",
    Token.Generic.Prompt: "gp",
    Token.Generic.Subheading: "gh",
    Token.Keyword: "k",
    Token.Literal.Number: "m",
    Token.Literal.String: "s",
    Token.Name.Attribute: "na",
    Token.Name.Builtin: "nb",
    Token.Name.Class: "nf",
    Token.Name.Decorator: "nf",
    Token.Name.Function: "nf",
    Token.Name.Tag: "nt",
    Token.Operator.Word: "k",
}
# Many short words for ways to write shell and Python, beside Pygments' own names.
_ALSO_KNOWN_AS = {
    "jsonc": "json",
    "json5": "json",
    "py3": "python",
    "svg": "xml",
    "vue": "html",
    "htm": "html",
}


def highlighted(code: str, language: str) -> str:
    """The code as HTML with a span around each run of one class; only escaped when the language is unknown.

    As quick as the language's lexer, which for some texts is not quick at all.
    """
    lexer = lexers().get(_ALSO_KNOWN_AS.get(language, language))
    return escapeHtml(code) if lexer is None else "".join(_spans(lexer, code))


@cache
def lexers() -> dict[str, Lexer]:
    """The lexers of ``LANGUAGES`` by each of their names."""
    options: dict[str, Any] = {"stripnl": False, "ensurenl": False, "handlecodeblocks": False}
    loaded = [get_lexer_by_name(language, **options) for language in LANGUAGES.split()]
    return {alias: lexer for lexer in loaded for alias in lexer.aliases}


def _spans(lexer: Lexer, code: str) -> Iterator[str]:
    classed = ((_class(kind), value) for kind, value in lexer.get_tokens(code))
    for name, run in groupby(classed, key=lambda pair: pair[0]):
        text = escapeHtml("".join(value for _, value in run))
        yield f'<span class="{name}">{text}</span>' if name else text


@cache
def _class(kind: Any) -> str:
    while kind is not None and kind not in CLASSES:
        kind = kind.parent
    return CLASSES[kind] if kind is not None else ""
