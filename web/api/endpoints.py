"""The endpoints: each is one action of a tool, or the state of the backup, answered in the same shape as over MCP.

Which answer comes first: the credential, the pace, the method, the parameters, and then what the services say.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Literal

from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from access import oauth, throttle
from access.credentials import authenticate_header
from access.models import Identity
from access.principals import Principal, principal_of_session
from backup.services.show_status import show_status
from core import names
from core.errors import (
    AmbiguousSection,
    BrainError,
    Forbidden,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    RangeOutOfBounds,
    SectionNotFound,
    StorageUnavailable,
)
from mcpapi import arguments
from mcpapi.arguments import PageArguments, ToolArguments
from mcpapi.operations import Action, Tool
from mcpapi.tools import browse_knowledgebase, manage_knowledgebase_access, read_knowledgebase
from web.api import answers
from web.api.document import EndpointSchema, document
from web.api.parameters import Parameter, fields_named_as, parameters_of, read_query

JSON = "application/json"


class MethodNotAllowed(InvalidArgument):
    """Something else than reading."""

    http_status = 405


class SessionOrBearer(BaseAuthentication):
    """A token, or else the session of a person at the pages. No session makes up for a token that is no good."""

    def authenticate(self, request: Request) -> tuple[None, Principal]:
        """The principal, as DRF's ``request.auth``. Raises Unauthenticated, which brain.refusals makes a 401."""
        if "Authorization" in request.headers:
            return None, authenticate_header(request.headers["Authorization"])
        person = request._request.user
        if not isinstance(person, Identity):
            raise oauth.unauthenticated()
        return None, principal_of_session(person)


class AlwaysJSON(BaseContentNegotiation):
    """Whatever a client accepts: the answer is JSON."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        """Never asked: no body is read."""
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """JSON."""
        return next(iter(renderers)), JSON


class Endpoint(APIView):
    """GET and HEAD for somebody who is known, with the parameters that the endpoint has and no others.

    ``refusals`` are the ones of its own; ``answer`` is the shape of what it tells.
    """

    authentication_classes = (SessionOrBearer,)
    permission_classes = ()
    parser_classes = ()
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = AlwaysJSON
    http_method_names = ("get", "head")
    schema = EndpointSchema()

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    answer: ClassVar[type | None] = None
    refusals: ClassVar[tuple[type[BrainError], ...]] = ()

    def check_throttles(self, request: Request) -> None:
        """Count the call. Raises RateLimited."""
        throttle.admit(_principal(request))

    def handle_exception(self, exc: Exception) -> Response:
        """DRF's one refusal that is left here, as the error object. A BrainError rises to brain.refusals."""
        if not isinstance(exc, exceptions.MethodNotAllowed):
            return super().handle_exception(exc)
        refusal = MethodNotAllowed("method", "This API is for reading: GET and HEAD.")
        return Response({"error": refusal.as_dict()}, status=refusal.http_status)

    def get(self, request: Request, **in_path: str) -> Response:
        """The answer."""
        return Response(self.result(request, **in_path))

    def result(self, request: Request, **in_path: str) -> Mapping[str, Any]:
        """What the endpoint tells, as plain JSON values. Raises BrainError."""
        raise NotImplementedError

    @classmethod
    def query_parameters(cls) -> Sequence[Parameter]:
        """What may stand in the query."""
        return ()

    @classmethod
    def path_parameters(cls) -> Sequence[Parameter]:
        """What stands in the path."""
        return ()


class ActionEndpoint(Endpoint):
    """An action of a tool. ``renamed`` are parameters that have another name here."""

    action: ClassVar[Action]
    renamed: ClassVar[Mapping[str, str]] = {}
    left_out: ClassVar[Sequence[str]] = ()

    @classmethod
    def query_parameters(cls) -> Sequence[Parameter]:
        """The arguments of the action, as far as they do not stand in the path."""
        return _query_parameters(cls.action.arguments, tuple(cls.renamed.items()), tuple(cls.left_out))

    def result(self, request: Request, **in_path: str) -> Mapping[str, Any]:
        """What the action tells. Raises Forbidden for a connection that does not have it."""
        principal = _principal(request)
        if not self.action.is_visible_to(principal):
            raise Forbidden
        parameters = self.query_parameters()
        given = read_query(request.META.get("QUERY_STRING", ""), parameters)
        with fields_named_as(parameters, self.renamed):
            checked = arguments.check(self.action.arguments, {"action": self.action.name, **in_path, **given})
            return self.action.run(principal, checked)


def _action(tool: Tool, name: str) -> Action:
    (found,) = [action for action in tool.actions if action.name == name]
    return found


@cache
def _query_parameters(
    model: type[ToolArguments], renamed: tuple[tuple[str, str], ...], left_out: tuple[str, ...]
) -> tuple[Parameter, ...]:
    return parameters_of(model, renamed=dict(renamed), left_out=left_out)


class Folders(ActionEndpoint):
    """``folders`` of browse_knowledgebase."""

    name = "folders"
    summary = "The folders in a folder, or at any depth below it."
    answer = answers.FolderList
    refusals = (InvalidArgument, LimitExceeded, NotFound, StorageUnavailable)
    action = _action(browse_knowledgebase.TOOL, "folders")


class Entries(ActionEndpoint):
    """``entries`` of browse_knowledgebase."""

    name = "entries"
    summary = "The entries in a folder, or at any depth below it."
    answer = answers.EntryList
    refusals = (InvalidArgument, LimitExceeded, NotFound, StorageUnavailable)
    action = _action(browse_knowledgebase.TOOL, "entries")


class OneEntry(ActionEndpoint):
    """``read`` of read_knowledgebase. What stands in the path is told by its letters alone: ``.md`` ends a path."""

    name = "entry"
    summary = "An entry: whole, by lines, or one section."
    answer = answers.EntryReading
    refusals = (
        InvalidArgument,
        LimitExceeded,
        RangeOutOfBounds,
        AmbiguousSection,
        NotFound,
        SectionNotFound,
        StorageUnavailable,
    )
    action = _action(read_knowledgebase.TOOL, "read")
    renamed: ClassVar[Mapping[str, str]] = {"path": "entry", "entry_id": "entry", "section": "heading"}
    left_out = ("path", "entry_id")

    @classmethod
    def path_parameters(cls) -> Sequence[Parameter]:
        """The path or the id of the entry."""
        schema = {"type": "string", "minLength": 1}
        said = "Its path, with or without its slashes encoded, in any case; or its id."
        return (Parameter("entry", ("entry",), schema, said, is_required=True),)

    def result(self, request: Request, **in_path: str) -> Mapping[str, Any]:
        """The entry."""
        entry = in_path["entry"].removesuffix("/")
        is_path = names.fold(entry).endswith(names.ENTRY_SUFFIX)
        return super().result(request, **{"path" if is_path else "entry_id": entry})


class Search(ActionEndpoint):
    """``search`` of read_knowledgebase."""

    name = "search"
    summary = "The entries that hold a literal text."
    answer = answers.SearchResults
    refusals = (InvalidArgument, LimitExceeded, NotFound, StorageUnavailable)
    action = _action(read_knowledgebase.TOOL, "search")
    renamed: ClassVar[Mapping[str, str]] = {"query": "q"}


class StatusArguments(PageArguments):
    """What the state of the backup is asked for."""

    action: Literal["status"]


def _status(principal: Principal, arguments: StatusArguments) -> dict[str, Any]:
    is_named = arguments.folder_id is not None or arguments.folder_path is not None
    folder = arguments.folder if is_named else None
    return show_status(principal, folder, limit=arguments.limit, cursor=arguments.cursor)


class Backup(ActionEndpoint):
    """How far the backup is."""

    name = "backup"
    summary = "How far the backup of the entries at any depth below a folder is."
    answer = answers.BackupStatus
    refusals = (InvalidArgument, LimitExceeded, NotFound, StorageUnavailable)
    action = Action("status", StatusArguments, _status, summary, {"action": "status"})


class Access(ActionEndpoint):
    """``inspect`` of manage_knowledgebase_access."""

    name = "access"
    summary = "Who you are here, what you may do, and on a folder that you own who else can."
    answer = answers.Access
    refusals = (InvalidArgument, LimitExceeded, NotFound, StorageUnavailable)
    action = _action(manage_knowledgebase_access.TOOL, "inspect")


class Explain(ActionEndpoint):
    """``explain`` of manage_knowledgebase_access."""

    name = "access/explain"
    summary = (
        "Why you, or on a folder that you own somebody else, have a role, and what a grant would make of it."
    )
    answer = answers.Explanation
    refusals = (InvalidArgument, LimitExceeded, Forbidden, NotFound, StorageUnavailable)
    action = _action(manage_knowledgebase_access.TOOL, "explain")


class ListAccess(ActionEndpoint):
    """``list`` of manage_knowledgebase_access."""

    name = "access/list"
    summary = "People and service accounts, or the folders that you own; for those who own any."
    answer = answers.AccessList
    refusals = (InvalidArgument, LimitExceeded, Forbidden, StorageUnavailable)
    action = _action(manage_knowledgebase_access.TOOL, "list")


class Schema(Endpoint):
    """The OpenAPI document of all this."""

    name = "schema"
    summary = "This document."
    refusals = (InvalidArgument,)

    def result(self, request: Request, **in_path: str) -> Mapping[str, Any]:
        """The document."""
        read_query(request.META.get("QUERY_STRING", ""), ())
        return document()


class Nowhere(Endpoint):
    """Every other address below: known to nobody, and to strangers not even that."""

    def result(self, request: Request, **in_path: str) -> Mapping[str, Any]:
        """Nothing."""
        raise NotFound


def _principal(request: Request) -> Principal:
    principal = request.auth
    assert isinstance(principal, Principal)
    return principal
