"""Entries as HTML for the pages: rendered in a process of their own, kept for as long as there is room.

The only place that hands out HTML as safe: it has been through nh3 (kb/markup.py).
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from django.utils.safestring import SafeString, mark_safe  # noqa: TID251 - here and nowhere else

from core import clock, limits
from kb.markup import Heading, Markup
from kb.render_process import Busy, the_process

# Of HTML, in each server process.
CACHE_MAX_BYTES = 16 * 1024 * 1024
# So long a text that failed is not tried again: each try may cost its whole time.
FAILURE_SECONDS = 60
FAILURES_MAX = 1_000

Key = tuple[str, str]

_NOTHING = SafeString()


@dataclass(frozen=True, slots=True)
class Rendered:
    """An entry as HTML, in the parts that a page places by itself.

    ``opening`` is the heading of first rank that the text begins with. Without HTML (``too_large``, ``failed``) a page
    shows the source and says so.
    """

    front_matter: SafeString = _NOTHING
    opening: SafeString = _NOTHING
    body: SafeString = _NOTHING
    headings: tuple[Heading, ...] = ()
    too_large: bool = False
    failed: bool = False

    @property
    def html(self) -> SafeString:
        """All of it."""
        return self.front_matter + self.opening + self.body

    @property
    def size_bytes(self) -> int:
        """What it takes in the cache, roughly."""
        return len(self.html.encode()) + sum(200 + len(heading.text) for heading in self.headings)


class _Cache:
    """Rendered entries, the last used ones, up to a number of bytes; and for a while the ones that failed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, tuple[Rendered, int]] = OrderedDict()
        self._bytes = 0
        self._failures: OrderedDict[Key, float] = OrderedDict()

    def get(self, key: Key) -> Rendered | None:
        """What is known of the key."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            if clock.monotonic() < self._failures.get(key, 0):
                return Rendered(failed=True)
        return None

    def keep(self, key: Key, rendered: Rendered) -> None:
        """Remember, and forget what was not used for longest."""
        with self._lock:
            if rendered.failed:
                self._failures[key] = clock.monotonic() + FAILURE_SECONDS
                self._failures.move_to_end(key)
                if len(self._failures) > FAILURES_MAX:
                    self._failures.popitem(last=False)
            elif key not in self._kept:
                self._kept[key] = (rendered, rendered.size_bytes)
                self._bytes += rendered.size_bytes
                while self._bytes > CACHE_MAX_BYTES:
                    _, (_, size) = self._kept.popitem(last=False)
                    self._bytes -= size

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._failures.clear()
            self._bytes = 0


_cache = _Cache()


def render(content: str, content_hash: str, *, folder_path: str) -> Rendered:
    """The HTML of an entry in this folder: relative links start there.

    Waits at most twice ``limits.RENDER_SECONDS``: for its turn, then for the text itself.
    """
    if len(content) > limits.RENDER_MAX_BYTES or len(content.encode()) > limits.RENDER_MAX_BYTES:
        return Rendered(too_large=True)
    key = (content_hash, folder_path)
    known = _cache.get(key)
    if known is not None:
        return known
    try:
        markup = the_process.render(content, folder_path)
    except Busy:
        return Rendered(failed=True)
    rendered = _safe(markup) if markup is not None else Rendered(failed=True)
    _cache.keep(key, rendered)
    return rendered


def _safe(markup: Markup) -> Rendered:
    return Rendered(
        front_matter=mark_safe(markup.front_matter),  # noqa: S308 - nh3's, of markup._cleaner
        opening=mark_safe(markup.opening),  # noqa: S308
        body=mark_safe(markup.body),  # noqa: S308
        headings=tuple(markup.headings),
    )
