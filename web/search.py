"""The search page: a literal text in all that the caller may read. Its address holds everything that was asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from access.models import Identity
from access.pages import Page
from access.principals import Principal, principal_of_session
from core.errors import BrainError, InvalidArgument, LimitExceeded, NotFound
from core.types import EntryType, FolderLocator
from kb.entry import Entry, FolderView
from kb.links import address_of_entry
from kb.search.query import Query
from kb.services.reveal_folder import Level, reveal_folder
from kb.services.search_entries import SearchResult, search_entries

# Of a query with blanks, so many of its words are offered to look for one by one.
WORDS_OFFERED_MAX = 4

Pieces = list[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address of the page asks for, as it was written there."""

    query: str = ""
    folder: str = ""
    type: str = ""
    tags: str = ""
    is_case_sensitive: bool = False
    cursor: str = ""

    @property
    def tag_list(self) -> list[str]:
        """The tags, which commas part."""
        return [tag.strip() for tag in self.tags.split(",") if tag.strip()]

    @property
    def is_narrowed(self) -> bool:
        """Whether something besides the query decides what is found."""
        return bool(self.folder or self.type or self.tag_list or self.is_case_sensitive)

    @property
    def address(self) -> str:
        """The page that asks for this; what is not asked for does not stand in it."""
        fields = {
            "q": self.query,
            "folder": self.folder,
            "type": self.type,
            "tags": ", ".join(self.tag_list),
            "case": "1" if self.is_case_sensitive else "",
            "cursor": self.cursor,
        }
        given = urlencode({name: value for name, value in fields.items() if value})
        return f"{reverse('search')}?{given}" if given else reverse("search")


@dataclass(frozen=True, slots=True)
class Line:
    """A matching line. ``address`` leads to the heading above it, empty where none is known, ``source`` to itself."""

    number: int
    pieces: Pieces
    heading: str
    address: str
    source: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One entry that holds the query; pieces tell where. ``more_lines`` is how many match beside ``lines``."""

    entry: Entry
    address: str
    steps: list[str]
    title: Pieces
    filename: Pieces
    description: Pieces
    lines: list[Line]
    more_lines: int


@require_safe
@login_required
def search(request: HttpRequest) -> HttpResponse:
    """The form, and what it finds."""
    assert isinstance(request.user, Identity)
    principal = principal_of_session(request.user)
    asked = _asked(request.GET)
    levels = _reveal(principal, asked)
    asked = replace(asked, folder=levels[-1].folder.path)
    page: Page[SearchResult] | None = None
    problems: dict[str, str] = {}
    is_restarted = False
    if asked.query:
        try:
            page = _found(principal, asked)
        except (InvalidArgument, LimitExceeded) as refusal:
            if refusal.details["field"] == "cursor":
                # Of another query, somebody else's, or from before the key changed: the list begins again.
                is_restarted = True
                asked = replace(asked, cursor="")
                page = _found(principal, asked)
            else:
                problems[refusal.details["field"]] = _in_words(refusal)
    context = {
        "is_search": True,
        "asked": asked,
        "places": _places(levels),
        "types": list(EntryType),
        "problems": problems,
        "is_restarted": is_restarted,
        **(_results(asked, page) if page is not None else {}),
    }
    return render(request, "search.html", context, status=400 if problems else 200)


def _asked(given: QueryDict) -> Asked:
    return Asked(
        query=given.get("q", "").strip(),
        folder=given.get("folder", "").strip("/"),
        type=given.get("type", ""),
        tags=",".join(given.getlist("tags")),
        is_case_sensitive=given.get("case", "") == "1",
        cursor=given.get("cursor", ""),
    )


def _reveal(principal: Principal, asked: Asked) -> list[Level]:
    try:
        return reveal_folder(principal, FolderLocator(folder_path=asked.folder))
    except (InvalidArgument, LimitExceeded):
        # No folder could have this name: as for one that is not there.
        raise NotFound from None


def _found(principal: Principal, asked: Asked) -> Page[SearchResult]:
    return search_entries(
        principal,
        asked.query,
        FolderLocator(folder_path=asked.folder),
        type=asked.type or None,
        tags=asked.tag_list,
        case_sensitive=asked.is_case_sensitive,
        cursor=asked.cursor or None,
        with_headings=True,
    )


def _in_words(refusal: BrainError) -> str:
    if isinstance(refusal, LimitExceeded):
        return f"At most {refusal.details['limit']} {refusal.details['unit']}."
    return str(refusal.details["problem"])


def _places(levels: Sequence[Level]) -> list[FolderView]:
    """Where the form lets one search: along the way to the folder, and in the folders of it."""
    here = levels[-1]
    return [*(level.folder for level in levels[1:]), *here.children.items]


def _results(asked: Asked, page: Page[SearchResult]) -> dict[str, Any]:
    hits = [_hit(asked, result) for result in page.items]
    return {
        "hits": hits,
        "folder_count": len({hit.entry.folder_id for hit in hits}),
        "is_all": not asked.cursor and page.next_cursor is None,
        "next": replace(asked, cursor=page.next_cursor).address if page.next_cursor else "",
        "beginning": replace(asked, cursor="").address,
        "everywhere": Asked(query=asked.query).address if asked.is_narrowed else "",
        "words": [(word, replace(asked, query=word, cursor="").address) for word in _words(asked.query)],
    }


def _words(query: str) -> list[str]:
    words = list(dict.fromkeys(query.split()))
    # The longest ones tell most; they keep their order.
    longest = sorted(words, key=len, reverse=True)[:WORDS_OFFERED_MAX]
    return [word for word in words if word in longest] if len(words) > 1 else []


def _hit(asked: Asked, result: SearchResult) -> Hit:
    query = Query(asked.query, case_sensitive=asked.is_case_sensitive)
    entry = result.entry
    address = address_of_entry(entry.path)
    lines = [
        Line(
            number=match.line,
            pieces=query.marked(match.text),
            heading=heading,
            address=f"{address}?line={match.line}" if heading else "",
            source=f"{address}?view=source&line={match.line}",
        )
        for match, heading in zip(result.matches, result.headings, strict=True)
    ]
    described, _ = query.lines_in(entry.description)
    return Hit(
        entry=entry,
        address=address,
        steps=entry.path.split("/")[:-1],
        title=query.marked(entry.title),
        filename=query.marked(entry.filename),
        description=query.marked(described[0].text) if described else [],
        lines=lines,
        more_lines=result.match_count - len(lines),
    )
