"""The Files pages: folders, and the entries in them, read-only."""

from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from access.models import Identity
from access.principals import Principal, principal_of_session
from core import limits, names
from core.errors import NotFound
from core.types import EntryLocator, FolderLocator
from kb.links import address_of_entry, address_of_folder
from kb.markup import Heading
from kb.rendering import render as rendered
from kb.services.browse_entries import browse_entries
from kb.services.browse_folders import browse_folders
from kb.services.read_entry import Reading, read_entry
from kb.services.reveal_folder import reveal_folder
from web.source import page_of_source
from web.tree import crumbs_of, tree_of

View = Callable[[HttpRequest, Principal, str], HttpResponse]


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The way in."""
    return redirect("files")


@require_safe
@login_required
def files(request: HttpRequest, path: str = "") -> HttpResponse:
    """A folder or an entry. What the address means is told by its letters alone: ``.md`` ends an entry's."""
    is_entry = names.fold(path).endswith(names.ENTRY_SUFFIX)
    if path and not is_entry and not path.endswith("/"):
        return _moved(request, address_of_folder(path))
    path = path.removesuffix("/")
    refuse_impossible(path.split("/") if path else [], is_entry=is_entry)
    view: View = _entry_page if is_entry else _folder_page
    assert isinstance(request.user, Identity)
    return view(request, principal_of_session(request.user), path)


def _folder_page(request: HttpRequest, principal: Principal, path: str) -> HttpResponse:
    levels = reveal_folder(principal, FolderLocator(folder_path=path))
    here = levels[-1]
    if here.folder.path != path:
        return _moved(request, address_of_folder(here.folder.path))
    locator = FolderLocator(folder_id=here.folder.folder_id)
    more_folders, more_entries = request.GET.get("folders"), request.GET.get("entries")
    folders = entries = None
    if more_folders is not None:
        folders = browse_folders(principal, locator, limit=limits.PAGE_MAX, cursor=more_folders)
    elif more_entries is not None:
        entries = browse_entries(principal, locator, limit=limits.PAGE_MAX, cursor=more_entries)
    else:
        folders = here.children
        entries = browse_entries(principal, locator, limit=limits.PAGE_MAX)
    return render(
        request,
        "files/folder.html",
        {
            **_surroundings(levels),
            "folders": folders,
            "entries": entries,
            "is_continued": more_folders is not None or more_entries is not None,
            "is_empty": not (folders and folders.items) and not (entries and entries.items),
            "mcp_url": f"{settings.PUBLIC_URL}/mcp",
        },
    )


def _entry_page(request: HttpRequest, principal: Principal, path: str) -> HttpResponse:
    view = request.GET.get("view", "")
    if view not in ("", "source"):
        raise NotFound
    reading = read_entry(principal, EntryLocator(path=path))
    entry = reading.entry
    if entry.path != path:
        return _moved(request, address_of_entry(entry.path))
    asked = request.GET.get("line", "")
    if asked.isascii() and asked.isdigit() and len(asked) < 10 and 1 <= int(asked) <= entry.total_lines:
        return HttpResponseRedirect(_address_at(reading, int(asked), view))
    context = {
        **_surroundings(reveal_folder(principal, FolderLocator(folder_id=entry.folder_id))),
        "entry": entry,
        "address": address_of_entry(entry.path),
        "view": view,
    }
    context |= _source(request, reading) if view == "source" else _reading(request, reading)
    return render(request, "files/entry.html", context)


def _address_at(reading: Reading, line: int, view: str) -> str:
    # Where a line is seen: below its heading in the text as it is laid out, else in the source.
    entry = reading.entry
    address = address_of_entry(entry.path)
    if view != "source":
        html = rendered(reading.content, entry.content_hash, folder_path=entry.path.rpartition("/")[0])
        if not html.too_large and not html.failed:
            above = [heading for heading in html.headings if heading.line <= line]
            return f"{address}#{above[-1].anchor}" if above else address
    begin = "" if line <= page_of_source(reading.content, "").last else f"&from={line}"
    return f"{address}?view=source{begin}#L{line}"


def _reading(request: HttpRequest, reading: Reading) -> dict[str, Any]:
    entry = reading.entry
    html = rendered(reading.content, entry.content_hash, folder_path=entry.path.rpartition("/")[0])
    if html.too_large or html.failed:
        return {"html": html, **_source(request, reading)}
    opening = html.headings[0] if html.opening else None
    is_title = opening is not None and _alike(opening.text, entry.title)
    return {
        "html": html,
        # The page's heading is the entry's title; a text that begins with it need not say it twice.
        "title_anchor": opening.anchor if opening and is_title else "",
        "outline": _outline(html.headings[1:] if is_title else html.headings),
    }


def _outline(headings: Sequence[Heading]) -> list[tuple[Heading, int]]:
    # Each with how far it stands in: 1 to 3.
    highest = min((heading.level for heading in headings), default=1)
    return [(heading, min(heading.level - highest + 1, 3)) for heading in headings]


def _source(request: HttpRequest, reading: Reading) -> dict[str, Any]:
    return {"source": page_of_source(reading.content, request.GET.get("from", ""))}


def _surroundings(levels: list[Any]) -> dict[str, Any]:
    here = levels[-1].folder
    return {"tree": tree_of(levels), "crumbs": crumbs_of(levels), "folder": here, "role": here.role}


def _alike(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def _moved(request: HttpRequest, address: str) -> HttpResponse:
    # For the caller who can see what stands there under this spelling; not kept by the browser.
    query = request.META.get("QUERY_STRING", "")
    return HttpResponseRedirect(f"{address}?{query}" if query else address)


def refuse_impossible(steps: list[str], *, is_entry: bool) -> None:
    """Refuse names that no folder and no entry could have: an address like any other that leads nowhere.

    Raises NotFound.
    """
    stems = [*steps[:-1], steps[-1][: -len(names.ENTRY_SUFFIX)]] if is_entry else steps
    if len("/".join(steps).encode()) > limits.PATH_MAX_BYTES or not all(map(names.is_stem, stems)):
        raise NotFound
