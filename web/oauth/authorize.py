"""The page on which a person lets a client act for them, less than it asked for if they like, or refuses.

Anybody can register a client and send anybody here, so nothing leaves this page by itself: a request that is not in
order ends on it, with at most a link to follow, and the browser is sent back to a client only by the person's answer.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.encoding import iri_to_uri
from django.views.decorators.http import require_http_methods
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.models import Application
from oauth2_provider.views.mixins import OAuthLibMixin

from access import oauth
from access.models import AuthorizationCode, Identity, Organization
from access.principals import Principal, principal_of_session
from core import limits
from core.errors import BrainError, InvalidArgument, LimitExceeded, NotFound
from core.types import Capability, FolderLocator, FolderRef
from kb.entry import FolderView
from kb.services.browse_folders import browse_folders
from kb.services.locate_folder import locate_folder
from web.oauth import redirects
from web.oauth.clients import ShownClient, shown_client

ALLOW, DENY = "allow", "deny"
EVERYWHERE, SOME_FOLDERS = "everywhere", "folders"
MAX_STATE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class _Asked:
    """An authorization request that is in order."""

    client: ShownClient
    redirect_uri: str
    state: str | None
    capability: Capability
    credentials: dict[str, Any]


class _Refused(Exception):
    """The request is not in order. ``back`` is where the client waits to hear of it, where that is certain."""

    def __init__(self, sentence: str, *, client: ShownClient | None = None, back: str = "") -> None:
        self.sentence = sentence
        self.client = client
        self.back = back
        super().__init__(sentence)


@require_http_methods(["GET", "HEAD", "POST"])
def authorize(request: HttpRequest) -> HttpResponse:
    """Ask, and carry out the answer. The form keeps the address, so each step judges the whole request anew."""
    try:
        asked = _read(request)
    except _Refused as refused:
        return render(request, "oauth/refused.html", {"refused": refused}, status=HTTPStatus.BAD_REQUEST)
    if not isinstance(request.user, Identity):
        return redirect_to_login(request.get_full_path())
    principal = principal_of_session(request.user)
    decision = request.POST.get("decision")
    if decision == DENY:
        return _send_back(_address_back(asked.redirect_uri, asked.state, {"error": "access_denied"}))
    if decision != ALLOW:
        return _ask(request, principal, asked)
    try:
        capability = _capability(request, asked)
        return _send_back(_allow(request, asked, capability, _folders(request, principal)))
    except (InvalidArgument, LimitExceeded, NotFound) as error:
        return _ask(request, principal, asked, error)


def _read(request: HttpRequest) -> _Asked:
    core = OAuthLibMixin.get_oauthlib_core()
    try:
        _, credentials = core.validate_authorization_request(request)
    except (FatalClientError, ValueError):
        raise _Refused(
            "It names no client that is known here, or an address that the client has not registered. Start again "
            "from the program that sent you; if it stays, remove Brain there and add it again."
        ) from None
    except OAuthToolkitError as error:
        raise _not_in_order(request, error.oauthlib_error.error, error.oauthlib_error.description) from None
    resources = request.GET.getlist("resource")
    if not resources or not all(map(oauth.is_our_resource, resources)):
        raise _not_in_order(request, "invalid_target", f"The resource must be {oauth.resource()}.")
    if credentials.get("code_challenge_method") != AuthorizationCode.CODE_CHALLENGE_S256:
        raise _not_in_order(request, "invalid_request", "The code_challenge_method must be S256.")
    if request.GET.get("response_type") != "code" or request.GET.get("response_mode", "query") != "query":
        raise _not_in_order(request, "invalid_request", "The response comes as a code in the query.")
    if len(credentials["state"] or "") > MAX_STATE_CHARACTERS:
        raise _Refused(f"Its state is longer than {MAX_STATE_CHARACTERS:,} characters.")
    client = Application.objects.get(client_id=credentials["client_id"])
    del credentials["request"]
    return _Asked(
        client=shown_client(client.name, credentials["redirect_uri"]),
        redirect_uri=credentials["redirect_uri"],
        state=credentials["state"],
        capability=oauth.capability_of(request.GET.get("scope", "").split()),
        credentials=credentials,
    )


def _not_in_order(request: HttpRequest, error: str, description: str) -> _Refused:
    # The client and its address were judged before all else; they are judged again, since a link is made of them.
    client = Application.objects.filter(client_id=request.GET.get("client_id", "")).first()
    uri = request.GET.get("redirect_uri", "") or (client.redirect_uris if client else "")
    if client is None or redirects.problem_of(uri) is not None or not client.redirect_uri_allowed(uri):
        return _Refused(description)
    told = {"error": error, "error_description": description}
    back = _address_back(uri, request.GET.get("state"), told)
    return _Refused(description, client=shown_client(client.name, uri), back=back)


def _ask(
    request: HttpRequest, principal: Principal, asked: _Asked, problem: BrainError | None = None
) -> HttpResponse:
    page = browse_folders(principal, recursive=True, limit=limits.PAGE_MAX)
    chosen = request.POST.getlist("folder")
    response = render(
        request,
        "oauth/authorize.html",
        {
            "organization": Organization.objects.get(id=principal.organization_id),
            "client": asked.client,
            "may_write": asked.capability is Capability.WRITE,
            "is_to_write": request.POST.get("capability", asked.capability) == Capability.WRITE,
            "is_to_be_narrowed": request.POST.get("where") == SOME_FOLDERS,
            "folders": [_Choice(folder, folder.folder_id in chosen) for folder in page.items if folder.role],
            "has_more_folders": page.next_cursor is not None,
            "other_folders": request.POST.get("other_folders", ""),
            "problem": _in_words(problem),
            "idle_days": limits.OAUTH_IDLE_DAYS,
        },
        status=HTTPStatus.OK if problem is None else HTTPStatus.BAD_REQUEST,
    )
    # The answer to this form leads to the client, and Chromium holds the form to that as well.
    response._csp_update = {"form-action": [redirects.policy_source(asked.redirect_uri)]}  # type: ignore[attr-defined]
    return response


@dataclass(frozen=True, slots=True)
class _Choice:
    """A folder that the client may be held to."""

    folder: FolderView
    is_chosen: bool

    @property
    def depth(self) -> int:
        """How far it stands in, at most 6."""
        return min(self.folder.path.count("/"), 6)


def _in_words(problem: BrainError | None) -> str:
    if problem is None:
        return ""
    if isinstance(problem, NotFound):
        return (
            "One of the folders is not there, or you cannot read it. Write each path as the viewer shows it."
        )
    if isinstance(problem, LimitExceeded):
        return f"That is too much: at most {problem.details['limit']:,} {problem.details['unit']}."
    return str(problem.details["problem"])


def _capability(request: HttpRequest, asked: _Asked) -> Capability:
    try:
        capability = Capability(request.POST.get("capability", ""))
    except ValueError:
        raise InvalidArgument("capability", "Choose what the client may do.") from None
    if capability is Capability.WRITE and asked.capability is Capability.READ:
        raise InvalidArgument("capability", "The client asked for reading alone.")
    return capability


def _folders(request: HttpRequest, principal: Principal) -> list[FolderRef] | None:
    where = request.POST.get("where")
    if where not in (EVERYWHERE, SOME_FOLDERS):
        raise InvalidArgument("where", "Choose where the client may work.")
    locators = [FolderLocator(folder_id=folder_id) for folder_id in request.POST.getlist("folder")]
    paths = [line.strip().strip("/") for line in request.POST.get("other_folders", "").splitlines()]
    locators += [FolderLocator(folder_path=path) for path in paths if path]
    if where == EVERYWHERE:
        if locators:
            raise InvalidArgument(
                "where", "You chose folders, and everywhere. Say which of the two you mean."
            )
        return None
    if not locators:
        raise InvalidArgument("folder", "Choose at least one folder, or everything that you can reach.")
    if len(locators) > limits.FOLDER_SCOPES_MAX:
        raise LimitExceeded("folder", limit=limits.FOLDER_SCOPES_MAX, unit="folders")
    found = {folder.id: folder for folder in (locate_folder(principal, locator) for locator in locators)}
    return list(found.values())


def _allow(
    request: HttpRequest, asked: _Asked, capability: Capability, folders: list[FolderRef] | None
) -> str:
    core = OAuthLibMixin.get_oauthlib_core()
    credentials = asked.credentials | {"folders": folders}
    uri: str
    uri, *_ = core.create_authorization_response(
        request, oauth.SCOPES[capability].split(), credentials, allow=True
    )
    return uri


def _address_back(redirect_uri: str, state: str | None, told: dict[str, str]) -> str:
    fields = told | ({"state": state} if state else {}) | {"iss": oauth.issuer()}
    return f"{redirect_uri}{'&' if urlsplit(redirect_uri).query else '?'}{urlencode(fields)}"


def _send_back(address: str) -> HttpResponse:
    # 303, so that no browser sends the form along; not Django's redirect, which knows no program's scheme.
    response = HttpResponse(status=HTTPStatus.SEE_OTHER)
    response["Location"] = iri_to_uri(address)
    return response
