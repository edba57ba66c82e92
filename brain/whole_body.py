"""A body that ends before its Content-Length is no body: half a message must not be carried out as a whole one.

A server hands on what came before the client went away. Whoever reads it gets an error here instead of the end.
"""

import errno
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


class OnlyWholeBodies:
    """A WSGI application around another one."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        declared = environ.get("CONTENT_LENGTH") or ""
        # What is no number is refused further in.
        if declared.isascii() and declared.isdigit():
            environ["wsgi.input"] = _WholeBody(environ["wsgi.input"], int(declared))
        return self._application(environ, start_response)


class _WholeBody:
    """The input, which raises ConnectionResetError where it ends with bytes still to come."""

    def __init__(self, body: Any, length: int) -> None:
        self._body = body
        self._left = length

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        return self._counted(self._body.read(wanted), is_short=lambda piece: len(piece) < wanted)

    def readline(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        return self._counted(
            self._body.readline(wanted), is_short=lambda line: len(line) < wanted and not line.endswith(b"\n")
        )

    def _counted(self, piece: bytes, *, is_short: Any) -> bytes:
        if is_short(piece):
            raise ConnectionResetError(errno.ECONNRESET, "the body ended before its Content-Length")
        self._left -= len(piece)
        return piece
