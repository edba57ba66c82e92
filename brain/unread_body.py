"""Reading on after a refusal, so that whoever is still sending gets to see it.

A refused body is answered before it is read. If the server then closes the connection under a client that is still
sending, the client sees a broken pipe and never the answer. So the answer goes out first, and then the rest of the
body is read and thrown away, within bounds.
"""

import socket
from collections.abc import Iterable, Iterator
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from core import clock, limits

READ_ON_MAX_BYTES = 2 * limits.MCP_BODY_MAX_BYTES
READ_ON_SECONDS = 10
PIECE_BYTES = 256 * 1024


class SenderMayFinish:
    """A WSGI application around another one."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = self._application(environ, start_response)
        has_body = environ.get("CONTENT_LENGTH") not in (None, "", "0") or "HTTP_TRANSFER_ENCODING" in environ
        # Elsewhere than in a server that ends the stream with the body, reading on would wait for ever.
        if has_body and environ.get("wsgi.input_terminated"):
            return _AnswerThenRest(answer, environ)
        return answer


class _AnswerThenRest:
    """An answer that reads the rest of the request when the server has sent it and closes it."""

    def __init__(self, answer: Iterable[bytes], environ: WSGIEnvironment) -> None:
        self._answer = answer
        self._environ = environ

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._answer)

    def close(self) -> None:
        """Called by the server, after the last byte."""
        try:
            if callable(close := getattr(self._answer, "close", None)):
                close()
        finally:
            _read_on(self._environ)


def _read_on(environ: WSGIEnvironment) -> None:
    declared = environ.get("CONTENT_LENGTH") or ""
    if declared.isdigit() and int(declared) > READ_ON_MAX_BYTES:
        return
    connection: socket.socket | None = environ.get("gunicorn.socket")
    if connection is not None:
        connection.settimeout(READ_ON_SECONDS)  # a client that has read its answer may well send no more
    left = READ_ON_MAX_BYTES
    deadline = clock.monotonic() + READ_ON_SECONDS
    try:
        while left > 0 and clock.monotonic() < deadline:
            piece = environ["wsgi.input"].read(min(left, PIECE_BYTES))
            if not piece:
                return
            left -= len(piece)
    except OSError:
        return  # the sender is silent or gone
    finally:
        if connection is not None:
            connection.settimeout(None)
