# mypy: ignore-errors
"""The official Python client of revision 2026-07-28, which knows nothing but the address and finds the rest by OAuth.

Prints the address that a browser is to open, waits for the browser to come back, makes the calls on standard input and
tells what it saw. Where a tool's call wants more scope, it asks the browser again by itself.

usage: python python_oauth.py URL [SCOPE] < calls.json
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata


class Memory(TokenStorage):
    """Keeps what was given for the length of this run."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Callback:
    """A small server on the loopback address, where the browser comes back to."""

    def __init__(self):
        self.heard = asyncio.Queue()

    async def listen(self):
        self.server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def _answer(self, reader, writer):
        line = (await reader.readline()).decode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")
        await writer.drain()
        writer.close()
        target = line.split(" ")[1]
        if target.startswith("/callback?"):
            await self.heard.put(parse_qs(urlsplit(target).query))


def tell(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(url, scope=None):
    calls = json.load(sys.stdin)
    memory, callback = Memory(), Callback()
    port = await callback.listen()

    async def open_browser(address):
        tell(address)

    async def wait_for_browser():
        heard = await asyncio.wait_for(callback.heard.get(), 120)
        one = {name: values[0] for name, values in heard.items()}
        return AuthorizationCodeResult(code=one["code"], state=one.get("state"), iss=one.get("iss"))

    provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="The official client",
            redirect_uris=[f"http://127.0.0.1:{port}/callback"],
            scope=scope,
        ),
        storage=memory,
        redirect_handler=open_browser,
        callback_handler=wait_for_browser,
    )
    async with (
        create_mcp_http_client(auth=provider) as http_client,
        Client(streamable_http_client(url, http_client=http_client)) as client,
    ):
        tools = (await client.list_tools()).tools
        results = [await client.call_tool(name, arguments) for name, arguments in calls]
        seen = {
            "version": client.protocol_version,
            "tools": [tool.name for tool in tools],
            "results": [result.structured_content for result in results],
            "scope": memory.tokens.scope,
            "has_refresh_token": memory.tokens.refresh_token is not None,
            "auth_method": memory.client.token_endpoint_auth_method,
        }
    tell(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
