"""From Markdown to HTML that may stand in a page: what it may hold, and what becomes of the rest.

Runs in the process of kb/render_process.py and knows no database, no store and no other entry. nh3 comes last and
lets through only what this page lists; whatever is done to tokens before it is for reading, never for safety.
"""

import re
from collections.abc import MutableMapping, Sequence
from functools import cache
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import msgspec
import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from kb import highlighting, links
from kb.headings import plain_text
from kb.markdown import parser, without_mark

# Colour is a kindness; past these a text is long enough to be read without.
HIGHLIGHT_BLOCK_MAX = 64 * 1024
HIGHLIGHT_TEXT_MAX = 256 * 1024
# Longer lines may need scrolling, and what scrolls must be reachable by keyboard.
WIDE_LINE = 70

TAGS = """
    a abbr b bdi bdo blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption figure
    h2 h3 h4 h5 h6 hr i ins kbd li mark ol p pre q rp rt ruby s samp section small span strong sub summary sup
    table tbody td tfoot th thead time tr u ul var wbr
"""
# Gone with all that is in them; of every other tag the text stays.
TAGS_WITHOUT_TEXT = """
    applet embed frame frameset iframe math noembed noframes noscript object script select style svg template
    textarea title xmp
"""
ATTRIBUTES = {
    "*": {"dir", "id", "lang", "title"},
    "a": {"href"},
    "col": {"span"},
    "colgroup": {"span"},
    "details": {"open"},
    "li": {"value"},
    "ol": {"reversed", "start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "time": {"datetime"},
}
CLASSES = {
    "a": {"image", "footnote-back"},
    "code": {"math"},
    "details": {"front-matter"},
    "div": {"wide"},
    "li": {"task"},
    "pre": {"math", "mermaid"},
    "section": {"footnotes"},
    "small": {"host"},
    "span": {"image", "task-box", *highlighting.CLASSES.values()},
    "sup": {"footnote"},
    "td": {"left", "center", "right"},
    "th": {"left", "center", "right"},
    "ul": {"tasks"},
    "ol": {"tasks"},
}
FIXED_VALUES = {
    "a": {"aria-label": {"Back to the text"}},
    "div": {"tabindex": {"0"}, "role": {"group"}, "aria-label": {"Table"}},
    "pre": {"tabindex": {"0"}},
    "span": {"role": {"img"}, "aria-label": {"Done", "Not done"}},
}

_HEADING_ID = re.compile(r"\s*\{\s*#([A-Za-z0-9_.:-]+)\s*\}\s*$")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
# An image or a heading of first rank in raw HTML, or the begin or end of a link around it.
_RAW_TAG = re.compile(r"<(/?)(img|a|h1)\b((?:[^>\"']|\"[^\"]*\"|'[^']*'){0,4000})>", re.IGNORECASE)


class Heading(msgspec.Struct, frozen=True):
    """A heading outside quotes and lists. ``anchor`` is its id in the page, ``line`` its first line from 1 on."""

    level: int
    text: str
    anchor: str
    line: int


class Markup(msgspec.Struct, frozen=True):
    """An entry as HTML, in the parts that a page places by itself; each may be empty.

    ``opening`` is the heading of first rank that the text begins with: often the entry's title over again.
    """

    front_matter: str
    opening: str
    body: str
    headings: list[Heading]


def to_markup(content: str, folder_path: str) -> Markup:
    """The HTML of an entry in this folder. Costs seconds and much memory for a text made to do so."""
    markdown = _markdown()
    env: dict[str, Any] = {}
    tokens = markdown.parse(without_mark(content), env)
    start = 1 if tokens and tokens[0].type == "front_matter" else 0
    has_opening = len(tokens) > start and tokens[start].type == "heading_open" and tokens[start].tag == "h1"
    opening = start + 3 if has_opening else start
    headings = _Rewriting(rank_shift=_rank_shift(tokens[opening:])).rewrite(tokens)
    cleaner = _cleaner(folder_path)

    def html(part: Sequence[Token]) -> str:
        return cleaner.clean(str(markdown.renderer.render(part, markdown.options, env)))

    return Markup(
        front_matter=html(tokens[:start]),
        opening=html(tokens[start:opening]),
        body=html(tokens[opening:]),
        headings=headings,
    )


def _rank_shift(tokens: list[Token]) -> int:
    # The page has a title above the text, so the text's highest rank becomes the second, whatever it was.
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open" and token.level == 0]
    return 2 - min(levels, default=2)


class _Rewriting:
    """One pass over an entry's tokens: anchors, ranks of headings, images as links, alignment as classes."""

    def __init__(self, *, rank_shift: int) -> None:
        self._rank_shift = rank_shift
        self._headings: list[Heading] = []
        self._anchors: dict[str, int] = {}

    def rewrite(self, tokens: list[Token]) -> list[Heading]:
        """Change the tokens in place and return the headings of the outline."""
        for number, token in enumerate(tokens):
            match token.type:
                case "heading_open":
                    self._heading(token, tokens[number + 1])
                case "heading_close":
                    token.tag = self._shifted(token.tag)
                case "th_open" | "td_open":
                    _align(token)
                case "html_block":
                    token.content = _RawImages().rewrite(token.content)
                case "list_item_open" if "class" in token.attrs:
                    token.attrSet("class", "task")
                case "bullet_list_open" | "ordered_list_open" if "class" in token.attrs:
                    token.attrSet("class", "tasks")
            if token.children:
                _inline(token.children)
        return self._headings

    def _heading(self, token: Token, inline: Token) -> None:
        level = int(token.tag[1])
        token.tag = self._shifted(token.tag)
        given = _take_id(inline)
        if token.level == 0:
            text = plain_text(inline)
            anchor = self._free(given or _slug(text))
            token.attrSet("id", anchor)
            line = token.map[0] + 1 if token.map else 1
            self._headings.append(Heading(level, text, links.ID_PREFIX + anchor, line))

    def _shifted(self, tag: str) -> str:
        return f"h{min(max(int(tag[1]) + self._rank_shift, 2), 6)}"

    def _free(self, wanted: str) -> str:
        # "a", "a-1", "a-2": a counter for each wanted one, so that 20,000 equal headings cost 20,000 steps.
        anchor = wanted
        while anchor in self._anchors:
            self._anchors[wanted] += 1
            anchor = f"{wanted}-{self._anchors[wanted]}"
        self._anchors[anchor] = 0
        return anchor


class _RawImages:
    """Raw HTML's images as links, its headings of first rank a rank lower; remembers whether a link is open."""

    def __init__(self) -> None:
        self._is_in_link = False

    def rewrite(self, html: str) -> str:
        return _RAW_TAG.sub(self._tag, html)

    def _tag(self, tag: re.Match[str]) -> str:
        closing, name = tag[1], tag[2].lower()
        if name == "h1":
            return f"<{closing}h2{tag[3]}>"
        if name == "a":
            self._is_in_link = not closing
            return tag[0]
        attributes = _attributes(tag[0])
        return _image(attributes.get("src", ""), attributes.get("alt", ""), is_in_link=self._is_in_link)


def _inline(children: list[Token]) -> None:
    raw = _RawImages()
    depth = 0
    for child in children:
        match child.type:
            case "link_open":
                depth += 1
            case "link_close":
                depth -= 1
            case "image":
                child.content = _image(str(child.attrs["src"]), plain_text(child), is_in_link=depth > 0)
                child.type = "html_inline"
            case "html_inline" if child.content.startswith('<input class="task-list-item-checkbox"'):
                child.content = _task_box(is_done="checked=" in child.content)
            case "html_inline":
                child.content = raw.rewrite(child.content)


def _image(source: str, alt: str, *, is_in_link: bool) -> str:
    # Never loaded: a page that fetched pictures would tell their hosts who reads what.
    try:
        address = urlsplit(source.strip())
        host = address.hostname if address.scheme in ("http", "https", "") else None
    except ValueError:
        host = None
    text = escapeHtml(" ".join(alt.split()) or "Image")
    if host is None:
        return f'<span class="image">{text}</span>'
    where = f'<small class="host">image at {escapeHtml(host)}</small>'
    if is_in_link:
        return f'<span class="image">{text} {where}</span>'
    return f'<a class="image" href="{escapeHtml(source)}">{text} {where}</a>'


def _task_box(*, is_done: bool) -> str:
    label, sign = ("Done", "☑") if is_done else ("Not done", "☐")
    return f'<span class="task-box" role="img" aria-label="{label}">{sign}</span>'


def _align(token: Token) -> None:
    style = str(token.attrs.pop("style", ""))
    if style.startswith("text-align:"):
        token.attrSet("class", style.removeprefix("text-align:"))


def _slug(text: str) -> str:
    return _NOT_IN_SLUG.sub("", text.lower()).strip().replace(" ", "-") or "section"


def _take_id(inline: Token) -> str | None:
    # "# Deploy { #deploy }", as several documentation tools write it.
    last = inline.children[-1] if inline.children else None
    found = _HEADING_ID.search(last.content) if last is not None and last.type == "text" else None
    if last is None or found is None or (found.start() == 0 and len(inline.children or []) == 1):
        return None
    last.content = last.content[: found.start()]
    return found[1]


class _Attributes(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found = {name: value or "" for name, value in attrs}


def _attributes(tag: str) -> dict[str, str]:
    reader = _Attributes()
    reader.feed(tag)
    return reader.found


@cache
def _markdown() -> MarkdownIt:
    markdown = parser()
    rules: dict[str, Any] = {
        "code_block": _code_block,
        "fence": _fence,
        "front_matter": _front_matter,
        "math_inline": _math_inline,
        "math_block": _math_block,
        "table_open": lambda *_: '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>\n',
        "table_close": lambda *_: "</table></div>\n",
        "footnote_ref": _footnote_ref,
        "footnote_block_open": lambda *_: '<section class="footnotes"><ol>\n',
        "footnote_block_close": lambda *_: "</ol></section>\n",
        "footnote_open": lambda _self, tokens, index, *_: f'<li id="fn{tokens[index].meta["id"] + 1}">',
        "footnote_anchor": _footnote_anchor,
    }
    for name, rule in rules.items():
        markdown.add_render_rule(name, rule)
    return markdown


def _code_block(
    _self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    return _code(tokens[index].content, "", env)


def _fence(
    _self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    language = (tokens[index].info.strip().split() or [""])[0].strip("{}.").lower()
    return _code(tokens[index].content, language, env)


def _front_matter(
    _self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    code = _code(tokens[index].content, "yaml", env)
    return f'<details class="front-matter"><summary>Front matter</summary>{code}</details>'


def _code(content: str, language: str, env: MutableMapping[str, Any]) -> str:
    kind = ' class="mermaid"' if language == "mermaid" else ""
    coloured = _highlighted(content, language, env)
    return f"<pre{_reach(content)}{kind}><code>{coloured}</code></pre>\n"


def _reach(content: str) -> str:
    is_wide = any(len(line) > WIDE_LINE for line in content.split("\n"))
    return ' tabindex="0"' if is_wide else ""


def _highlighted(content: str, language: str, env: MutableMapping[str, Any]) -> str:
    left = env.setdefault("highlight", HIGHLIGHT_TEXT_MAX)
    if not language or len(content) > min(left, HIGHLIGHT_BLOCK_MAX):
        return escapeHtml(content)
    env["highlight"] = left - len(content)
    return highlighting.highlighted(content, language)


def _math_inline(_self: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    return f'<code class="math">{escapeHtml(tokens[index].content)}</code>'


def _math_block(_self: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    content = tokens[index].content.strip("\n")
    return f'<pre{_reach(content)} class="math"><code>{escapeHtml(content)}</code></pre>\n'


def _footnote_ref(_self: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    number, again = _footnote(tokens[index])
    return f'<sup class="footnote"><a href="#fn{number}" id="fnref{number}{again}">{number}</a></sup>'


def _footnote_anchor(_self: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    number, again = _footnote(tokens[index])
    return f' <a class="footnote-back" href="#fnref{number}{again}" aria-label="Back to the text">↩\ufe0e</a>'


def _footnote(token: Token) -> tuple[int, str]:
    again = token.meta.get("subId", 0)
    return token.meta["id"] + 1, f"-{again}" if again else ""


def _cleaner(folder_path: str) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=set(TAGS.split()),
        clean_content_tags=set(TAGS_WITHOUT_TEXT.split()),
        attributes=ATTRIBUTES,
        tag_attribute_values=FIXED_VALUES,
        allowed_classes=CLASSES,
        strip_comments=True,
        link_rel="noopener noreferrer nofollow",
        url_schemes=set(links.SCHEMES),
        url_relative=lambda href: links.resolve(href, folder_path),
        id_prefix=links.ID_PREFIX,
    )
