# mypy: ignore-errors
"""The official Python client of revision 2026-07-28: makes the calls on standard input and tells what it saw.

Runs in an environment of its own (requirements-mcp2.txt). usage: python python_modern.py URL TOKEN < calls.json
"""

import asyncio
import json
import sys

from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


async def main(url: str, token: str) -> None:
    calls = json.load(sys.stdin)
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http_client,
        Client(streamable_http_client(url, http_client=http_client)) as client,
    ):
        tools = (await client.list_tools()).tools
        results = [await client.call_tool(name, arguments) for name, arguments in calls]
        seen = {
            "version": client.protocol_version,
            "instructions": client.instructions,
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
            "results": [
                {
                    "structured": result.structured_content,
                    "texts": [block.text for block in result.content],
                    "isError": bool(result.is_error),
                }
                for result in results
            ],
        }
    json.dump(seen, sys.stdout)


asyncio.run(main(*sys.argv[1:]))
