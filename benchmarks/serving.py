"""Calls over HTTP and what the server's processes hold, on a real server with the tree in it."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.conf import settings

from benchmarks.corpus import NOWHERE
from benchmarks.rows import Row
from benchmarks.timing import ratio_in_the_middle
from benchmarks.tree import ADMIN, Tree
from core import limits
from kb.search.pack import SUFFIX
from kb.store import stores
from mcpapi import modern
from tests.server import PATIENCE_SECONDS, ROOT, environment, free_port

ROUNDS = 5
ROUND_SECONDS = 2.0
CONNECTIONS = 16
UNBOUNDED = 1_000_000_000
PAGE_PATH = "eight-kilobytes.md"
PAGE = "A line of Markdown, as long as people write them, more or less.\n" * 125
READ = ("read_knowledgebase", {"action": "entry", "path": PAGE_PATH})
SEARCH = ("read_knowledgebase", {"action": "search", "query": NOWHERE})
PRIVATE_MB = 100
MEGABYTE = 1_000_000


def calls(tree: Tree) -> list[Row]:
    """An authenticated call and a read beside the least that Django does for a token, on as many connections."""
    tree.world.entry(PAGE_PATH, PAGE)
    token = tree.world.token(ADMIN, name="benchmark")
    with ExitStack() as stack:
        brain = stack.enter_context(brain_server())
        bare = stack.enter_context(bare_wsgi())
        uvicorn = stack.enter_context(bare_asgi())
        who = request_of("GET", "/who", token)
        asked = {
            "discover": (brain, modern_request(token, "server/discover")),
            "read": (brain, modern_request(token, "tools/call", READ)),
            "read, handshake": (brain, handshake_request(token, READ)),
            "bare": (bare, who),
            "uvicorn": (uvicorn, who),
        }
        rates: dict[str, list[float]] = {name: [] for name in asked}
        for number in range(ROUNDS + 1):
            for name, (port, request) in asked.items():
                rate = answers_a_second(port, request)
                if number:
                    rates[name].append(rate)
    return [
        _rates("read of 8 kB over HTTP beside a token's look-up", rates, "read", "bare", ">= 0.7"),
        _rates("authenticated call beside a bare Django view", rates, "discover", "bare", ">= 0.8"),
        _rates("authenticated call beside Django on uvicorn", rates, "discover", "uvicorn", ">= 8"),
        _rates("read of 8 kB, older MCP, beside a token's look-up", rates, "read, handshake", "bare"),
    ]


def memory(tree: Tree) -> list[Row]:
    """What the workers hold when each has read, searched and listed: together, and each for itself."""
    token = tree.world.token(ADMIN, name="memory")
    stores.close_all()
    with brain_server() as port:
        workers = _workers_with_pack(port, token)
        found = [_memory_of(pid) for pid in workers]
    whole = sum(one["Pss"] for one in found)
    private = max(one["Private_Clean"] + one["Private_Dirty"] for one in found)
    allowed = 1.2 * tree.text_bytes + PRIVATE_MB * MEGABYTE * len(workers)
    return [
        _sizes(f"memory of {len(workers)} workers beside 1.2 x text + 100 MB each", whole, allowed, "<= 1"),
        _sizes("memory of one worker alone beside 100 MB", private, PRIVATE_MB * MEGABYTE),
    ]


BENCHMARKS: Sequence[Callable[[Tree], list[Row]]] = (calls, memory)


@contextmanager
def brain_server() -> Iterator[int]:
    """Brain on this data directory; its port."""
    port = free_port()
    variables = {"BRAIN_PORT": str(port), "BRAIN_CALLS_PER_MINUTE": str(UNBOUNDED)}
    with _server(port, "/readyz", [sys.executable, "-m", "brain.serve"], **variables):
        yield port


@contextmanager
def bare_wsgi() -> Iterator[int]:
    """``benchmarks.bare`` on the same server, with as many processes and threads."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--log-level", "warning"]
    command += ["--worker-class", "gthread", "--workers", str(settings.WORKERS), "--preload"]
    command += ["--threads", str(limits.WORKER_THREADS), "--no-control-socket", "benchmarks.bare_view:wsgi"]
    with _server(port, "/who", command, DJANGO_SETTINGS_MODULE="benchmarks.bare"):
        yield port


@contextmanager
def bare_asgi() -> Iterator[int]:
    """``benchmarks.bare`` on uvicorn: one process, since with more of them it answers some callers 40 ms late."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--port", str(port), "--log-level", "warning"]
    command += ["--no-access-log", "benchmarks.bare_view:asgi"]
    with _server(port, "/who", command, DJANGO_SETTINGS_MODULE="benchmarks.bare"):
        yield port


def modern_request(token: str, method: str, call: tuple[str, Mapping[str, object]] | None = None) -> bytes:
    """A request of MCP 2026-07-28."""
    meta = {modern.VERSION_KEY: modern.VERSION, modern.CAPABILITIES_KEY: {}}
    params: dict[str, object] = {"_meta": meta}
    headers = {modern.VERSION_HEADER: modern.VERSION, modern.METHOD_HEADER: method}
    if call is not None:
        params |= {"name": call[0], "arguments": call[1]}
        headers[modern.NAME_HEADER] = call[0]
    return _post(token, method, params, headers)


def handshake_request(token: str, call: tuple[str, Mapping[str, object]]) -> bytes:
    """A request of the newest revision that begins with ``initialize``."""
    params = {"name": call[0], "arguments": call[1]}
    return _post(token, "tools/call", params, {modern.VERSION_HEADER: modern.HANDSHAKE_VERSIONS[-1]})


def request_of(
    method: str, path: str, token: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> bytes:
    """The bytes of a request."""
    whole = {"Host": "127.0.0.1", "Authorization": f"Bearer {token}", **(headers or {})}
    if body:
        whole |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in whole.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def answers_a_second(port: int, request: bytes) -> float:
    """How many answers a second come from there."""
    command = [sys.executable, "-m", "benchmarks.load", str(port), str(ROUND_SECONDS), str(CONNECTIONS)]
    done = subprocess.run(command, cwd=ROOT, input=request, check=True, stdout=subprocess.PIPE)
    return float(done.stdout)


def _post(token: str, method: str, params: Mapping[str, object], headers: Mapping[str, str]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    accepted = {"Accept": "application/json, text/event-stream", **headers}
    return request_of("POST", "/mcp", token, accepted, body)


@contextmanager
def _server(port: int, path: str, command: Sequence[str], **more: str) -> Iterator[subprocess.Popen[bytes]]:
    variables = environment(settings.DATA_DIR, **more)
    with (settings.DATA_DIR / "server.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not _answers(f"http://127.0.0.1:{port}{path}"):
            assert process.poll() is None, f"the server ended: {command}"
            assert time.monotonic() < deadline, f"the server does not answer: {command}"
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except urllib.error.HTTPError as refused:
        return refused.code < 500
    except OSError:
        return False


def _workers_with_pack(port: int, token: str) -> list[int]:
    # Each worker listens to whoever comes; ask until all of them have searched, then let all read and list.
    request = modern_request(token, "tools/call", SEARCH)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answers_a_second(port, request)
        workers = [pid for pid in _processes() if SUFFIX in Path(f"/proc/{pid}/maps").read_text()]
        if len(workers) == settings.WORKERS:
            break
        assert time.monotonic() < deadline, "not every worker searches"
    answers_a_second(port, modern_request(token, "tools/call", READ))
    return workers


def _processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if str(settings.DATA_DIR).encode() in Path(f"/proc/{name}/environ").read_bytes():
                    yield int(name)
            except OSError:
                continue


def _memory_of(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}


def _rates(name: str, rates: Mapping[str, Sequence[float]], value: str, baseline: str, goal: str = "") -> Row:
    middle = {one: sorted(of)[len(of) // 2] for one, of in rates.items()}
    ratio = ratio_in_the_middle(rates[value], rates[baseline])
    return Row(name, f"{middle[value]:.0f}/s", f"{middle[baseline]:.0f}/s", ratio, goal)


def _sizes(name: str, value: float, baseline: float, goal: str = "") -> Row:
    return Row(name, f"{value / MEGABYTE:.0f} MB", f"{baseline / MEGABYTE:.0f} MB", value / baseline, goal)
