"""The program in which entries become HTML, run by kb/render_process.py: a text in, markup out, until its input ends.

After its start it can open no file and no socket and write no file; it has bounds on memory and time that it cannot
lift. It is given nothing but the text: no environment, no database, no place of any data.
"""

import os
import resource
import signal

import msgspec

from core import limits
from kb.headings import OutlineHeading, outline
from kb.markup import Markup, to_markup

LENGTH_BYTES = 8
# Standard input, output and error: the highest number of an open file below which a new one would have to stand.
DESCRIPTORS_MAX = 3
# On top of the time that the server's side allows, so that this one only ends a process that was left alone.
LEFT_ALONE_SECONDS = 1

# Whatever loads a module at its first use has loaded it after this.
_EVERY_KIND = """---
title: warm
---
# One { #one }

[a](b.md) https://xn--bcher-kva.example <https://bücher.example> ![i](https://x.example/i.png) $a$ [^1]
<img src="x" alt="&amp;">

[^1]: note

- [x] done

|a|
|:-:|
|b|

```python
pass
```
"""


class Job(msgspec.Struct, frozen=True, tag=True):
    """A text to be made HTML."""

    content: str
    folder_path: str


class OutlineJob(msgspec.Struct, frozen=True, tag=True):
    """A text whose headings are wanted."""

    content: str


class Success(msgspec.Struct, frozen=True, tag=True):
    """The text as HTML."""

    markup: Markup


class Outlined(msgspec.Struct, frozen=True, tag=True):
    """The headings of a text."""

    headings: list[OutlineHeading]


class Failure(msgspec.Struct, frozen=True, tag=True):
    """Why there is no HTML: the type of what was raised. A message could quote the text."""

    reason: str


def main() -> None:
    """Serve until standard input ends."""
    to_markup(_EVERY_KIND, "Folder")
    outline(_EVERY_KIND)
    give_up_everything()
    write_frame(1, b"ready")
    while job := read_frame(0):
        wanted = msgspec.msgpack.decode(job, type=Job | OutlineJob)
        seconds = limits.RENDER_SECONDS if isinstance(wanted, Job) else limits.OUTLINE_SECONDS
        signal.setitimer(
            signal.ITIMER_REAL, seconds + LEFT_ALONE_SECONDS
        )  # unhandled, the alarm ends the process
        answer = _answer(wanted)
        signal.setitimer(signal.ITIMER_REAL, 0)
        write_frame(1, msgspec.msgpack.encode(answer))


def give_up_everything() -> None:
    """From here on: no new open file, no written byte but to the pipe, bounded memory. Cannot be undone."""
    for what, most in (
        (resource.RLIMIT_AS, limits.RENDER_MEMORY_BYTES),
        (resource.RLIMIT_NOFILE, DESCRIPTORS_MAX),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def read_frame(descriptor: int, max_bytes: int | None = None) -> bytes | None:
    """The next frame; None at the end of the input, and for one longer than ``max_bytes``."""
    header = _read(descriptor, LENGTH_BYTES)
    length = int.from_bytes(header, "big")
    if len(header) < LENGTH_BYTES or (max_bytes is not None and length > max_bytes):
        return None
    frame = _read(descriptor, length)
    return frame if len(frame) == length else None


def write_frame(descriptor: int, frame: bytes) -> None:
    """Send a frame. Raises BrokenPipeError when nobody reads any more."""
    rest = memoryview(len(frame).to_bytes(LENGTH_BYTES, "big") + frame)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _answer(job: Job | OutlineJob) -> Success | Outlined | Failure:
    try:
        if isinstance(job, OutlineJob):
            return Outlined(outline(job.content))
        return Success(to_markup(job.content, job.folder_path))
    except Exception as error:  # noqa: BLE001 - whatever a text does to a parser, this process is made for it
        return Failure(type(error).__name__)


def _read(descriptor: int, length: int) -> bytes:
    pieces = []
    while length > 0 and (piece := os.read(descriptor, length)):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
