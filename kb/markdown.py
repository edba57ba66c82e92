"""The one Markdown parser: what is a heading, a link or code is decided here for rendering and selecting alike.

CommonMark with tables, strikethrough, task lists, footnotes, front matter, dollar math and bare web addresses.
The reasons stand in docs/explanation/rendering.md; change nothing here without the tests of both users.
"""

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

BYTE_ORDER_MARK = "\ufeff"
# The preset's 20 would drop deeper text without a word.
NESTING_MAX = 100


def parser() -> MarkdownIt:
    """A parser of the caller's own: its search for web addresses keeps state, so two threads never share one.

    Feed it text with LF line endings and without the byte order mark (``without_mark``). ``html`` is on, since
    otherwise a heading inside an HTML block would be one; nh3 makes the result safe, not this.
    """
    markdown = MarkdownIt("commonmark", {"html": True, "linkify": True, "maxNesting": NESTING_MAX})
    markdown.enable(["table", "strikethrough", "linkify"])
    markdown.use(front_matter_plugin)
    markdown.use(footnote_plugin)
    markdown.use(tasklists_plugin)
    # "$5 and $6" is money; so is a price list with blanks around its dollars.
    markdown.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False)
    # With a scheme only: "deployment.md" is a file of ours, not a host in Moldova.
    assert markdown.linkify is not None
    markdown.linkify.set({"fuzzy_link": False, "fuzzy_ip": False})
    return markdown


def without_mark(content: str) -> str:
    """The content without the one byte order mark it may begin with. The stored bytes keep it."""
    return content.removeprefix(BYTE_ORDER_MARK)
