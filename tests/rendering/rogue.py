"""Stands in for the program that renders, and does what a text that has taken it over would try."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from kb.render_program import Failure, Job, give_up_everything, read_frame, write_frame


def main() -> None:
    """Answer each job by trying what it names; a failure's reason says how that went."""
    give_up_everything()
    write_frame(1, b"ready")
    while job := read_frame(0):
        what = msgspec.msgpack.decode(job, type=Job).content
        write_frame(1, msgspec.msgpack.encode(Failure(_try(what))))


def _try(what: str) -> str:
    try:
        result: Any = _DEEDS[what]()
    except (OSError, MemoryError) as error:
        return type(error).__name__
    return str(result)


def _allocate() -> int:
    return len(bytearray(2 * 1024**3))


_DEEDS: dict[str, Callable[[], object]] = {
    "open a file": lambda: os.open("/etc/hostname", os.O_RDONLY),
    "open a socket": socket.socket,
    "open a pipe": os.pipe,
    "copy an open file": lambda: os.dup(0),
    "allocate": _allocate,
    "environment": lambda: sorted(os.environ),
    "arguments": lambda: sys.argv,
    "working directory": os.getcwd,
    "own session": lambda: os.getsid(0) == os.getpid(),
    "hang": signal.pause,
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "chatter": lambda: os.write(1, b"\xff" * 4096),
}
