"""The server's side of the process in which entries become HTML: starting it, asking it, ending it.

The process is started when the first page is asked for, isolated, and anew after it died. One serves a whole server
process; a lock lets one text in at a time. It ends with the server process, since its standard input ends then.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from core import limits, log
from kb.headings import OutlineHeading
from kb.markup import Markup
from kb.render_program import Failure, Job, Outlined, OutlineJob, Success, read_frame, write_frame

START_SECONDS = 30
ANSWER_MAX_BYTES = 32 * 1024 * 1024
# Python is started isolated, so it is told where our modules are; it learns of nothing else.
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from kb.render_program import main; main()"
PROJECT = str(Path(__file__).resolve().parent.parent)

T = TypeVar("T")
logger = log.get_logger(__name__)


class Busy(Exception):
    """Other texts kept the process for longer than one of them may."""


class RenderProcess:
    """A handle that threads may share. It starts the process when there is something to render."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def render(self, content: str, folder_path: str) -> Markup | None:
        """The markup; None for a text that took more than its time or memory, or made a library fail.

        Raises Busy.
        """
        answer = self._answer(Job(content, folder_path), limits.RENDER_SECONDS)
        return answer.markup if isinstance(answer, Success) else None

    def outline(self, content: str) -> list[OutlineHeading] | None:
        """The headings; None for a text that took more than its time or memory, or made a library fail.

        Raises Busy.
        """
        answer = self._answer(OutlineJob(content), limits.OUTLINE_SECONDS)
        return answer.headings if isinstance(answer, Outlined) else None

    def close(self) -> None:
        """End the process, if there is one. The next text starts another."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """In a forked child: the process belongs to the parent, and so may the lock's holder."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            _close_pipes(process)
            process.returncode = 0  # nobody waits for it here

    def _answer(self, job: Job | OutlineJob, seconds: int) -> Success | Outlined | Failure:
        frame = msgspec.msgpack.encode(job)
        if not self._lock.acquire(timeout=seconds):
            raise Busy
        try:
            answer = self._ask(frame, seconds)
            if isinstance(answer, Failure):
                self._end()
                logger.warning("an entry was not rendered", reason=answer.reason, bytes=len(frame))
            return answer
        finally:
            self._lock.release()

    def _ask(self, job: bytes, seconds: int) -> Success | Outlined | Failure:
        try:
            process = self._running()
            answer = _timed(process, seconds, lambda: _exchange(process, job))
        except OSError as error:
            return Failure(type(error).__name__)
        if answer is None:
            process.kill()
            return Failure(f"ended with {process.wait()}")  # -9: by us, at the end of its time
        return msgspec.msgpack.decode(answer, type=Success | Outlined | Failure)

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-X", "utf8", "-c", PROGRAM, PROJECT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # a traceback would quote the text
                bufsize=0,
                cwd="/",
                env={},
                start_new_session=True,  # a Ctrl-C at the terminal is for the server, which still answers
            )
            process = self._process
            if _timed(process, START_SECONDS, lambda: read_frame(_number(process.stdout))) is None:
                raise ChildProcessError("the render process did not start")
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            _close_pipes(process)


def _exchange(process: "subprocess.Popen[bytes]", job: bytes) -> bytes | None:
    write_frame(_number(process.stdin), job)
    return read_frame(_number(process.stdout), ANSWER_MAX_BYTES)


def _timed(process: "subprocess.Popen[bytes]", seconds: float, act: Callable[[], T]) -> T:
    # Killing it ends every wait for it: its pipes break.
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        return act()
    finally:
        timer.cancel()


def _number(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()


def _close_pipes(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


the_process = RenderProcess()
# Headings of a large entry take longer than a page may wait; they wait for each other alone.
the_outliner = RenderProcess()
os.register_at_fork(after_in_child=the_process.forget)
os.register_at_fork(after_in_child=the_outliner.forget)
