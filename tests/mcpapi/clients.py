"""Other makers' MCP clients, each run as its users run it, told to make some calls and asked what it saw."""

import asyncio
import fcntl
import filecmp
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.server import ROOT

Call = tuple[str, dict[str, Any]]

FOLDER = ROOT / "tests" / "clients"
NODE_PACKAGES = FOLDER / "node_modules"
PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Answered:
    """What a client made of one answer."""

    structured: dict[str, Any]
    texts: list[str]
    is_error: bool


@dataclass(frozen=True)
class Seen:
    """What a client saw. ``version`` and ``instructions`` are None where it does not tell."""

    tools: list[dict[str, Any]]
    answers: list[Answered]
    version: str | None = None
    instructions: str | None = None


Run = Callable[[str, str, Sequence[Call]], Seen]


def python_handshake(url: str, token: str, calls: Sequence[Call]) -> Seen:
    """The official Python client of the library that Brain itself stands on."""
    return asyncio.run(_python_handshake(url, token, calls))


async def _python_handshake(url: str, token: str, calls: Sequence[Call]) -> Seen:
    async with (
        httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_SECONDS, follow_redirects=False
        ) as http_client,
        streamable_http_client(url, http_client=http_client) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        started = await session.initialize()
        tools = (await session.list_tools()).tools
        results = [await session.call_tool(name, arguments) for name, arguments in calls]
    return Seen(
        tools=[tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
        answers=[
            Answered(
                result.structuredContent or {},
                [block.text for block in result.content if block.type == "text"],
                result.isError,
            )
            for result in results
        ],
        version=str(started.protocolVersion),
        instructions=started.instructions,
    )


def python_modern(url: str, token: str, calls: Sequence[Call]) -> Seen:
    """The official Python client of the current revision, in an environment of its own."""
    return _told([str(modern_python()), str(FOLDER / "python_modern.py"), url, token], calls)


def typescript(url: str, token: str, calls: Sequence[Call]) -> Seen:
    """The official TypeScript client."""
    return _told([str(_node()), str(FOLDER / "typescript.mjs"), url, token], calls)


def inspector_handshake(url: str, token: str, calls: Sequence[Call]) -> Seen:
    """The Inspector's command line, in the era that it takes unasked."""
    return _inspector("legacy", url, token, calls)


def inspector_modern(url: str, token: str, calls: Sequence[Call]) -> Seen:
    """The Inspector's command line in the current era."""
    return _inspector("modern", url, token, calls)


CLIENTS: dict[str, Run] = {
    "python-1.30": python_handshake,
    "python-2.3": python_modern,
    "typescript-1.32": typescript,
    "inspector-handshake": inspector_handshake,
    "inspector-modern": inspector_modern,
}


def inspect(era: str, url: str, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One run of the Inspector's command line. Its settings go to a home that is thrown away."""
    home = Path(os.environ.get("TMPDIR", "/tmp")) / f"brain-inspector-{os.getpid()}"
    home.mkdir(exist_ok=True)
    try:
        return subprocess.run(
            [
                str(_node()),
                str(NODE_PACKAGES / ".bin" / "mcp-inspector"),
                "--cli",
                url,
                "--transport",
                "http",
                "--protocol-era",
                era,
                "--header",
                f"Authorization: Bearer {token}",
                "--format",
                "json",
                *arguments,
            ],
            env={"PATH": f"{NODE_PACKAGES / '.bin'}:{os.environ['PATH']}", "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _inspector(era: str, url: str, token: str, calls: Sequence[Call]) -> Seen:
    listed = inspect(era, url, token, "--method", "tools/list")
    assert listed.returncode == 0, listed.stderr
    answers = []
    for name, arguments in calls:
        called = inspect(
            era,
            url,
            token,
            "--method",
            "tools/call",
            "--tool-name",
            name,
            "--tool-args-json",
            json.dumps(arguments),
        )
        # 5 is the Inspector's status for a result that says isError.
        assert called.returncode in (0, 5), called.stderr
        result = json.loads(called.stdout)["result"]
        assert result["isError"] is (called.returncode == 5)
        texts = [block["text"] for block in result["content"]]
        answers.append(Answered(result["structuredContent"], texts, result["isError"]))
    return Seen(json.loads(listed.stdout)["result"]["tools"], answers)


def _told(command: list[str], calls: Sequence[Call]) -> Seen:
    run = subprocess.run(
        command, input=json.dumps(calls), capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout)
    return Seen(
        seen["tools"],
        [Answered(answer["structured"], answer["texts"], answer["isError"]) for answer in seen["results"]],
        seen["version"],
        seen["instructions"],
    )


def _node() -> Path:
    node = NODE_PACKAGES / ".bin" / "node"
    assert node.exists(), "the npm packages of tests/clients are missing; scripts/test-tools installs them"
    return node


def modern_python() -> Path:
    """The interpreter of the environment for ``mcp`` 2, made at its first use and whenever its lock changed."""
    lock = FOLDER / "requirements-mcp2.txt"
    place = ROOT / ".venv" / "mcp2"
    installed = place / "installed.txt"
    with (ROOT / ".venv" / "mcp2.lock").open("w") as only_one:
        fcntl.flock(only_one, fcntl.LOCK_EX)
        if not installed.exists() or not filecmp.cmp(lock, installed, shallow=False):
            uv = [sys.executable, "-m", "uv"]
            python = str(place / "bin" / "python")
            _run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place)])
            _run([*uv, "pip", "install", "--quiet", "--require-hashes", "--python", python, "-r", str(lock)])
            shutil.copyfile(lock, installed)
    return place / "bin" / "python"


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
