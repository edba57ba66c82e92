"""MCP over Streamable HTTP at /mcp: stateless, JSON answers, a bearer token on each request and nothing else.

One view for every revision. It reads the message strictly, then hands it to ``modern`` or, for the revisions that
begin with ``initialize``, to django-mcp-server, subclassed as far as Brain needs it (docs/decisions/0001). The library
never sees the arguments of a tool: they stay with the exchange and go to the dispatcher as they were decoded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple, get_args
from urllib.parse import urlsplit

import msgspec
from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from django.http.request import UnreadablePostError
from mcp import types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import McpError
from mcp_server.djangomcp import DjangoMCP, django_request_ctx
from mcp_server.views import MCPServerStreamableHttpView
from pydantic import ValidationError
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import PermissionDenied, UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from access.credentials import authenticate_header
from access.oauth import insufficient_scope
from access.principals import Principal
from core import limits
from core.errors import BrainError, RateLimited
from mcpapi import catalog, dispatch, introduction, messages, modern
from mcpapi.envelope import ToolResult, UnknownTool
from mcpapi.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MalformedMessage, Message

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"http": 80, "https": 443}
JSON = "application/json"


class BrainBearer(BaseAuthentication):
    """``Authorization: Bearer …``. Everything else, cookies too, is no credential."""

    def authenticate(self, request: Request) -> tuple[None, Principal]:
        """The principal, as DRF's ``request.auth``. Raises Unauthenticated, which brain.refusals makes a 401."""
        return None, authenticate_header(request.headers.get("Authorization", ""))


class TakesAnything(BaseContentNegotiation):
    """Whatever a client accepts: the answer is JSON."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        """Never asked: the view reads the body itself."""
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """JSON."""
        return next(iter(renderers)), JSON


@dataclass(slots=True)
class Exchange:
    """One message of a handshake revision on its way through the library, which takes it for a Django request."""

    principal: Principal
    message: Message
    refusal: BrainError | None
    data: Mapping[str, Any]
    path: str
    headers: Mapping[str, str]
    method: str = "POST"
    META: Mapping[str, str] = field(default_factory=lambda: {"QUERY_STRING": "", "REMOTE_ADDR": ""})

    def get_full_path(self) -> str:
        """As Django's."""
        return self.path

    def is_secure(self) -> bool:
        """As Django's; nothing depends on it."""
        return False

    def get_host(self) -> str:
        """As Django's; nothing depends on it."""
        return "localhost"

    def get_port(self) -> str:
        """As Django's; nothing depends on it."""
        return "0"


class BrainMCP(DjangoMCP):  # type: ignore[misc]
    """The library's server with Brain's catalog and dispatcher in it, and nothing else of its own."""

    def __init__(self) -> None:
        super().__init__(introduction.NAME, introduction.INSTRUCTIONS, stateless=True)
        server = self._mcp_server
        server.version = introduction.VERSION
        # Our own handlers, past the library's: those keep tools in a cache that all tokens share.
        server.request_handlers = {
            types.PingRequest: server.request_handlers[types.PingRequest],
            types.ListToolsRequest: _list_tools,
            types.CallToolRequest: _call_tool,
        }

    @property
    def session_manager(self) -> StreamableHTTPSessionManager:
        """A new one for each request: no session outlives it."""
        return StreamableHTTPSessionManager(
            app=self._mcp_server,
            json_response=True,
            stateless=True,
            max_request_body_size=limits.MCP_BODY_MAX_BYTES,
        )

    def answer(self, exchange: Exchange) -> HttpResponse:
        """Let the library answer the message."""
        response: HttpResponse = self.handle_django_request(exchange)
        return response


async def _list_tools(request: types.ListToolsRequest) -> types.ServerResult:
    if request.params is not None and request.params.cursor is not None:
        raise _error(INVALID_PARAMS, "The list has one page; there is no such cursor.")
    tools = [types.Tool.model_validate(tool) for tool in catalog.listing(_exchange().principal)]
    return types.ServerResult(types.ListToolsResult(tools=tools))


async def _call_tool(request: types.CallToolRequest) -> types.ServerResult:
    asked = modern.tool_arguments(_exchange().message.params)
    if isinstance(asked, str):
        raise _error(INVALID_PARAMS, asked)
    # thread_sensitive: on the thread of the request, where its database connection and its locks are.
    try:
        result = await sync_to_async(_dispatch, thread_sensitive=True)(_exchange(), *asked)
    except UnknownTool as unknown:
        raise _error(INVALID_PARAMS, unknown.sentence) from None
    return types.ServerResult(
        types.CallToolResult(
            content=[types.TextContent(type="text", text=result.text)],
            structuredContent=dict(result.structured),
            isError=result.is_error,
        )
    )


def _dispatch(exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> ToolResult:
    return dispatch.call_tool(exchange.principal, name, arguments, refusal=exchange.refusal)


def _exchange() -> Exchange:
    exchange: Exchange = django_request_ctx.get()
    return exchange


def _error(code: int, sentence: str) -> McpError:
    return McpError(types.ErrorData(code=code, message=sentence))


class BrainMCPView(MCPServerStreamableHttpView):  # type: ignore[misc]
    """The agents' door. POST alone; GET and DELETE are 405, once the caller is known."""

    mcp_server = BrainMCP()
    http_method_names = ("post",)
    authentication_classes = (BrainBearer,)
    permission_classes = ()
    parser_classes = ()
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = TakesAnything

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Judge what can be judged before the body is read: the page it comes from, and who asks."""
        _check_origin(request)
        super().initial(request, *args, **kwargs)

    def post(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer one message."""
        if request._request.content_type != JSON:
            raise UnsupportedMediaType(request._request.content_type or "none")
        try:
            body = request._request.body
        except UnreadablePostError:
            return _json(
                _protocol_error(messages.PARSE_ERROR, "The body could not be read."), HTTPStatus.BAD_REQUEST
            )
        with dispatch.admitted(_principal(request), len(body)) as refusal:
            try:
                message = messages.read_message(body)
            except MalformedMessage as malformed:
                found = _protocol_error(malformed.code, malformed.sentence, malformed.request_id)
                return _json(found, HTTPStatus.BAD_REQUEST)
            if isinstance(refusal, RateLimited) and message.method != "tools/call":
                raise refusal  # there is no tool's result to say it with
            if refusal is None:
                _check_scope(_principal(request), message)
            if modern.is_spoken_by(request.headers, message):
                return _answer_modern(request, message, refusal)
            return self._answer_handshake(request, message, refusal)

    def handle_exception(self, exc: Exception) -> Response:
        """A refusal of DRF's as the body that JSON-RPC clients understand. A BrainError rises to brain.refusals."""
        response: Response = super().handle_exception(exc)
        error = {"code": INVALID_REQUEST, "message": str(response.data["detail"])}
        response.data = {"jsonrpc": "2.0", "id": None, "error": error}
        return response

    def _answer_handshake(
        self, request: Request, message: Message, refusal: BrainError | None
    ) -> HttpResponse:
        if message.is_notification:
            return HttpResponse(status=HTTPStatus.ACCEPTED)
        # Judged here, since the library writes what it refuses into the log.
        plain = {key: value for key, value in message.params.items() if key != "arguments"}
        try:
            types.ClientRequest.model_validate({"method": message.method, "params": plain})
        except ValidationError:
            code, sentence = _why_invalid(message)
            return _json(_protocol_error(code, sentence, message.request_id), HTTPStatus.OK)
        headers = {"accept": f"{JSON}, text/event-stream", "content-type": JSON}
        if modern.VERSION_HEADER in request.headers:
            headers[modern.VERSION_HEADER] = request.headers[modern.VERSION_HEADER]
        exchange = Exchange(
            principal=_principal(request),
            message=message,
            refusal=refusal,
            data={"jsonrpc": "2.0", "id": message.request_id, "method": message.method, "params": plain},
            path=request.path,
            headers=headers,
        )
        return self.mcp_server.answer(exchange)


def _answer_modern(request: Request, message: Message, refusal: BrainError | None) -> HttpResponse:
    answer = modern.handle(
        request.headers,
        message,
        list_tools=lambda: catalog.listing(_principal(request)),
        call_tool=lambda name, arguments: dispatch.call_tool(
            _principal(request), name, arguments, refusal=refusal
        ),
    )
    return HttpResponse(status=answer.status) if answer.body is None else _json(answer.body, answer.status)


def _principal(request: Request) -> Principal:
    principal = request.auth
    assert isinstance(principal, Principal)
    return principal


def _check_scope(principal: Principal, message: Message) -> None:
    # An answer of HTTP, before the tool's: clients take it for the sign to ask their person for more.
    asked = modern.tool_arguments(message.params) if message.method == "tools/call" else ""
    if not isinstance(asked, str) and catalog.lacks_scope(principal, asked[0], asked[1].get("action")):
        raise insufficient_scope()


def _check_origin(request: Request) -> None:
    # Browsers send it. A page of another site must not speak to a server on somebody's own machine.
    origin = request.headers.get("Origin")
    if origin is None:
        return
    asked = _place(origin)
    if asked is not None:
        own = _place(f"{asked.scheme}://{request.get_host()}")
        if asked == _place(settings.PUBLIC_URL) or (asked == own and asked.host in LOOPBACK):
            return
    raise PermissionDenied("This Origin may not speak to Brain.")


class _Place(NamedTuple):
    scheme: str
    host: str
    port: int


def _place(url: str) -> _Place | None:
    # Scheme, host and port, spelled out; None for what is no such address.
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (KeyError, ValueError):
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment or parts.username is not None:
        return None
    return _Place(parts.scheme, parts.hostname, port)


def _why_invalid(message: Message) -> tuple[int, str]:
    known = [kind.model_fields["method"].default for kind in get_args(types.ClientRequestType)]
    if message.method in known:
        return INVALID_PARAMS, "The params do not fit this method."
    return METHOD_NOT_FOUND, "This server has no such method."


def _protocol_error(code: int, sentence: str, request_id: str | int | None = None) -> dict[str, Any]:
    error = {"code": code, "message": sentence}
    return {"jsonrpc": "2.0", "id": modern.encoded_id(request_id), "error": error}


def _json(body: Mapping[str, Any], status: int) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(body), status=status, content_type=JSON)
