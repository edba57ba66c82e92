"""An agent that speaks MCP by hand, in either era, over Django's test client or a real server."""

import http.client
import itertools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.test import Client

from mcpapi import modern

Era = Literal["handshake", "modern"]
ERAS: tuple[Era, ...] = ("handshake", "modern")
HANDSHAKE_VERSION = "2025-11-25"
META = {modern.VERSION_KEY: modern.VERSION, modern.CAPABILITIES_KEY: {}}


@dataclass(frozen=True)
class Reply:
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Transport = Callable[[str, str, bytes, Mapping[str, str]], Reply]


def through_django(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
    """Through the whole of Django, middleware and all, without a server."""
    given = dict(headers)
    content_type = given.pop("Content-Type", "application/json")
    response = Client().generic(method, path, body, content_type=content_type, headers=given)
    return Reply(response.status_code, {k.lower(): v for k, v in response.items()}, response.content)


def through_network(port: int) -> Transport:
    """To a real server on the loopback address, one connection for each request."""

    def send(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    return send


@dataclass
class Agent:
    """Holds a token and speaks one era. ``call`` returns what a tool answered, and checks its form on the way."""

    token: str | None
    era: Era = "modern"
    transport: Transport = through_django
    path: str = "/mcp"
    ids: "itertools.count[int]" = field(default_factory=itertools.count)

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """What the era wants in the headers of this request."""
        headers = {"Accept": "application/json, text/event-stream"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.era == "handshake":
            if method != "initialize":
                headers["MCP-Protocol-Version"] = HANDSHAKE_VERSION
            return headers
        headers |= {"MCP-Protocol-Version": modern.VERSION, "Mcp-Method": method}
        if isinstance(params.get("name"), str):
            headers["Mcp-Name"] = params["name"]
        return headers

    def message(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request as this era writes it."""
        meta = {"_meta": META} if self.era == "modern" else {}
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": {**params, **meta}}

    def send(self, body: bytes, headers: Mapping[str, str], *, method: str = "POST") -> Reply:
        """Any body with any headers."""
        return self.transport(method, self.path, body, headers)

    def request(self, method: str, params: Mapping[str, Any] | None = None, **headers: str) -> Reply:
        """One request; ``headers`` with ``_`` for ``-`` come on top."""
        params = params or {}
        given = self.headers(method, params) | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return self.send(json.dumps(self.message(method, params)).encode(), given)

    def raw_call(self, tool: str, arguments: str) -> Reply:
        """A call whose arguments are this JSON text, valid or not."""
        message = json.dumps(self.message("tools/call", {"name": tool, "arguments": "ARGUMENTS"}))
        body = message.replace('"ARGUMENTS"', arguments).encode("utf-8", "surrogatepass")
        return self.send(body, self.headers("tools/call", {"name": tool}))

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What the tool answered."""
        return self.result(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def result(self, reply: Reply) -> dict[str, Any]:
        """The object in a tool's reply, which says it twice and alike."""
        assert reply.status == 200, reply.body[:500]
        result = reply.json["result"]
        (block,) = result["content"]
        assert block["type"] == "text"
        assert json.loads(block["text"]) == result["structuredContent"]
        assert result["isError"] == ("error" in result["structuredContent"])
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    def patient_update(self, **arguments: Any) -> dict[str, Any]:
        """As ``update``, repeated as the answer says while the store is too busy."""
        while True:
            answer = self.update(**arguments)
            if not answer.get("error", {}).get("retryable"):
                return answer
            time.sleep(0.05)

    def browse(self, **arguments: Any) -> dict[str, Any]:
        return self.call("browse_knowledgebase", **arguments)

    def read(self, **arguments: Any) -> dict[str, Any]:
        return self.call("read_knowledgebase", action="read", **arguments)

    def update(self, **arguments: Any) -> dict[str, Any]:
        return self.call("update_knowledgebase", **arguments)

    def inspect(self, **arguments: Any) -> dict[str, Any]:
        return self.call("manage_knowledgebase_access", action="inspect", **arguments)

    def tools(self) -> list[dict[str, Any]]:
        """The tools that the token sees."""
        reply = self.request("tools/list")
        assert reply.status == 200, reply.body[:500]
        tools: list[dict[str, Any]] = reply.json["result"]["tools"]
        return tools
