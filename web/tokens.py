"""One's own connections: what they are, new ones, and ending them. An administrator sees those of anybody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from access.authorizer import Sight
from access.models import Connection, Identity
from access.principals import Principal, principal_of_session
from access.services.issue_token import FolderScope, issue_token
from access.services.list_tokens import TokenState, find_token, list_tokens, state_of
from access.services.revoke_token import revoke_token
from access.services.rotate_token import rotate_token
from core import limits, log
from core.errors import BrainError, InvalidArgument, LimitExceeded, NotFound
from core.types import Capability, ConnectionKind, FolderLocator, FolderRef, Role
from kb.services.browse_folders import browse_folders
from kb.services.locate_folder import locate_folder
from kb.services.locate_folders import locate_folders
from mcpapi.clients import recipes
from web import one_time

logger = log.get_logger(__name__)

SCOPE_ROWS = 3
EXPIRY_DAYS = ("7", "30", "90", "180", "365", "")
OVERLAP_HOURS = (0, 1, 24, 7 * 24, limits.TOKEN_OVERLAP_MAX_HOURS)
REACHES = ("all", "some", "none")
WHOLE = "/"


@dataclass(frozen=True, slots=True)
class Cap:
    """One folder of a token's caps. ``now`` is what the holder's present role leaves of the cap."""

    path: str | None
    role: Role
    now: Role | None


@dataclass(frozen=True, slots=True)
class Row:
    """A token as the list shows it."""

    connection: Connection
    state: TokenState
    caps: tuple[Cap, ...] | None

    @property
    def works(self) -> bool:
        """Whether whoever shows it is let in."""
        return self.state in (TokenState.ACTIVE, TokenState.REPLACED)

    @property
    def can_be_rotated(self) -> bool:
        """Whether it may have a successor."""
        is_first = self.connection.replaced_by_id is None and not self.connection.is_oauth
        return is_first and self.state is not TokenState.REVOKED


@dataclass(slots=True)
class Wish:
    """The form for a new token as it was filled in. ``field`` and ``problem`` tell what is wrong with it."""

    name: str = ""
    capability: str = Capability.READ.value
    kind: str = ConnectionKind.EXTERNAL.value
    reach: str = "all"
    expires: str = "90"
    scopes: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""
    field: str = ""

    def __post_init__(self) -> None:
        self.scopes += [("", Role.READER.word)] * (SCOPE_ROWS - len(self.scopes))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def tokens(request: HttpRequest) -> HttpResponse:
    """The list and the form; a POST issues a token."""
    principal = _principal(request)
    holder = _holder(request, principal)
    if request.method != "POST":
        return _page(request, principal, holder, Wish())
    wish = _wish(request)
    if "more" in request.POST:
        wish.scopes += [("", Role.READER.word)] * SCOPE_ROWS
        return _page(request, principal, holder, wish)
    try:
        issued = _issue(principal, holder, wish)
    except (InvalidArgument, LimitExceeded) as refused:
        wish.field, wish.problem = refused.details["field"], _sentence(refused)
        return _page(request, principal, holder, wish)
    return _shown_next(request, issued.connection, issued.token)


@require_safe
@login_required
def shown_once(request: HttpRequest, key: str) -> HttpResponse:
    """The new token and what to do with it. The second time the page only says that it was shown."""
    principal = _principal(request)
    kept = one_time.take(request, key)
    context: dict[str, Any] = {"tokens_url": _tokens_url(None)}
    if kept is not None:
        connection = find_token(principal, kept["connection"])
        url = f"{settings.PUBLIC_URL}/mcp"
        context = {
            "token": kept["token"],
            "connection": connection,
            "replaced": Connection.objects.filter(replaced_by=connection).first(),
            "mcp_url": url,
            "recipes": recipes(url, kept["token"]),
            "tokens_url": _tokens_url(_other(principal, connection.identity)),
        }
    return render(request, "tokens/shown.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def rotate(request: HttpRequest, connection_id: str) -> HttpResponse:
    """Ask how long the old token shall still work, then make its successor."""
    principal = _principal(request)
    connection = find_token(principal, connection_id)
    if request.method == "POST":
        given = request.POST.get("overlap", "")
        hours = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else -1
        issued = rotate_token(principal, connection.id, overlap_hours=hours)
        return _shown_next(request, issued.connection, issued.token)
    return _question(request, principal, connection, "tokens/rotate.html", {"overlaps": OVERLAP_HOURS})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def revoke(request: HttpRequest, connection_id: str) -> HttpResponse:
    """Ask once more, then end the token."""
    principal = _principal(request)
    connection = find_token(principal, connection_id)
    if request.method == "POST":
        revoke_token(principal, connection.id)
        return HttpResponseRedirect(_tokens_url(_other(principal, connection.identity)))
    return _question(request, principal, connection, "tokens/revoke.html", {})


def _principal(request: HttpRequest) -> Principal:
    assert isinstance(request.user, Identity)
    return principal_of_session(request.user)


def _holder(request: HttpRequest, principal: Principal) -> Identity:
    # Whose tokens the page is about. Others than one's own are found by administrators alone.
    username = request.GET.get("identity", "").lower()
    wanted = {"username": username} if username else {"id": principal.identity_id}
    identity = Identity.objects.filter(**wanted, organization_id=principal.organization_id).first()
    if identity is None:
        raise NotFound
    list_tokens(principal, identity.id)
    return identity


def _other(principal: Principal, identity: Identity) -> Identity | None:
    return identity if identity.id != principal.identity_id else None


def _tokens_url(other: Identity | None) -> str:
    query = f"?{urlencode({'identity': other.username})}" if other else ""
    return reverse("tokens") + query


def _page(request: HttpRequest, principal: Principal, holder: Identity, wish: Wish) -> HttpResponse:
    rows = _rows(principal, holder)
    context = {
        "holder": holder,
        "other": _other(principal, holder),
        "at_tokens": True,
        "working": None if rows is None else [row for row in rows if row.works],
        "ended": None if rows is None else [row for row in rows if not row.works],
        "wish": wish,
        "expiries": EXPIRY_DAYS,
        "suggestions": _suggestions(principal),
        "more_rows": len(wish.scopes) < limits.FOLDER_SCOPES_MAX,
        "name_max": limits.TOKEN_NAME_MAX_CHARACTERS,
    }
    return render(request, "tokens/tokens.html", context, status=400 if wish.problem else 200)


def _rows(principal: Principal, holder: Identity) -> list[Row] | None:
    # None where the list cannot be had: a new token can be made all the same, and often that is what is wanted.
    try:
        found = list_tokens(principal, holder.id)
        scoped = {scope["folder_id"] for one in found.connections for scope in one.folder_scopes or ()}
        folders = locate_folders(principal, scoped)
        return [
            Row(connection, state_of(connection), _caps(connection, folders, found.holder))
            for connection in found.connections
        ]
    except NotFound:
        raise
    except (BrainError, DatabaseError, OSError) as error:
        logger.error("the list of tokens cannot be shown", exc_info=error)
        return None


def _caps(connection: Connection, folders: Mapping[str, FolderRef], holder: Sight) -> tuple[Cap, ...] | None:
    if connection.folder_scopes is None:
        return None
    caps = []
    for scope in connection.folder_scopes:
        folder, role = folders.get(scope["folder_id"]), Role.from_word(scope["max_role"])
        held = holder.role_on(folder) if folder else None
        caps.append(Cap(folder.path or WHOLE if folder else None, role, min(role, held) if held else None))
    return tuple(sorted(caps, key=lambda cap: cap.path or ""))


def _suggestions(principal: Principal) -> Sequence[str]:
    # Folders for the fields to offer; without them they are typed.
    try:
        page = browse_folders(principal, recursive=True, limit=limits.PAGE_MAX)
    except (BrainError, OSError):
        return ()
    return [folder.path for folder in page.items if folder.role is not None]


def _wish(request: HttpRequest) -> Wish:
    posted = request.POST
    paths, roles = posted.getlist("folder"), posted.getlist("role")
    return Wish(
        name=posted.get("name", "").strip(),
        capability=posted.get("capability", ""),
        kind=posted.get("kind", ""),
        reach=posted.get("reach", ""),
        expires=posted.get("expires", ""),
        scopes=list(zip((path.strip() for path in paths), roles, strict=False))[
            : limits.FOLDER_SCOPES_MAX + 1
        ],
    )


def _issue(principal: Principal, holder: Identity, wish: Wish) -> Any:
    if wish.capability not in set(Capability):
        raise InvalidArgument("capability", "Choose whether the token may change anything.")
    if wish.kind not in set(ConnectionKind):
        raise InvalidArgument("kind", "Choose who holds the token.")
    if wish.expires and not (wish.expires.isascii() and wish.expires.isdigit() and len(wish.expires) < 9):
        raise InvalidArgument("expires", "Choose how long the token lasts.")
    return issue_token(
        principal,
        holder.id,
        name=wish.name,
        capability=Capability(wish.capability),
        kind=ConnectionKind(wish.kind),
        folder_scopes=_scopes(principal, wish),
        expires_in_days=int(wish.expires) if wish.expires else None,
    )


def _scopes(principal: Principal, wish: Wish) -> list[FolderScope] | None:
    if wish.reach not in REACHES:
        raise InvalidArgument("reach", "Choose what the token reaches.")
    filled = [(path, word) for path, word in wish.scopes if path]
    if wish.reach == "all":
        if filled:
            raise InvalidArgument(
                "reach", "Folders are named below. Choose “only these folders”, or empty the fields."
            )
        return None
    if wish.reach == "none":
        return []
    if not filled:
        raise InvalidArgument("folder_scopes", "Name at least one folder.")
    return [(_folder(principal, path), _cap(word)) for path, word in filled]


def _folder(principal: Principal, path: str) -> FolderRef:
    try:
        return locate_folder(principal, FolderLocator(folder_path=path.strip("/")))
    except (NotFound, InvalidArgument, LimitExceeded) as error:
        raise InvalidArgument(
            "folder_scopes", f"There is no folder “{path}”, or you do not have access to it."
        ) from error


def _cap(word: str) -> Role:
    if word not in (Role.READER.word, Role.EDITOR.word):
        raise InvalidArgument("folder_scopes", "A cap is reader or editor.")
    return Role.from_word(word)


def _sentence(refused: InvalidArgument | LimitExceeded) -> str:
    where = "Name: " if refused.details["field"] == "name" else ""
    if isinstance(refused, LimitExceeded):
        return f"{where}At most {refused.details['limit']:,} {refused.details['unit']}."
    return f"{where}{refused.details['problem']}"


def _shown_next(request: HttpRequest, connection: Connection, token: str) -> HttpResponse:
    key = one_time.put_away(request, {"connection": connection.id, "token": token})
    response = HttpResponseRedirect(reverse("token-shown", args=[key]))
    response.status_code = 303
    return response


def _question(
    request: HttpRequest, principal: Principal, connection: Connection, template: str, context: dict[str, Any]
) -> HttpResponse:
    other = _other(principal, connection.identity)
    row = Row(connection, state_of(connection), None)
    context |= {"row": row, "connection": connection, "other": other, "tokens_url": _tokens_url(other)}
    return render(request, template, context)
