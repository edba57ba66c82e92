"""How long a client may take to send a request, and to take the answer.

A thread reads a request and waits for its bytes. Without a bound, as many silent connections as there are threads stop
the server for everybody, and nobody needs an account for that. So a request has to arrive at a pace, which also ends
those who send a byte now and then, and an answer has to be taken in time.
"""

import errno
import socket
import struct
from typing import Any

from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import ThreadWorker

from core import clock

# A request may take this long, and longer as far as its bytes keep coming: 64 MiB at the least pace take 34 minutes.
ARRIVAL_SECONDS = 20
LEAST_BYTES_PER_SECOND = 32 * 1024
# Without a byte of an answer taken.
STANDSTILL_SECONDS = 30


class PacedWorker(ThreadWorker):
    """gunicorn's worker of threads, with connections that read at a pace."""

    def handle(self, conn: Any) -> Any:
        """Called by gunicorn in a thread, once for each request."""
        if conn.parser is None:
            conn.sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", STANDSTILL_SECONDS, 0)
            )
            paced: Any = PacedConnection(conn.sock)  # as much of a socket as the parser asks for
            conn.parser = RequestParser(self.cfg, paced, conn.client)
        conn.parser.unreader.sock.begin_request()
        return super().handle(conn)


class PacedConnection:
    """The side of a connection that gunicorn reads from. One that is too slow counts as reset by the client."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.begin_request()

    def begin_request(self) -> None:
        """From now on the time of a new request counts."""
        self._begun = clock.monotonic()
        self._received = 0

    def recv(self, size: int) -> bytes:
        """As a socket's. Raises ConnectionResetError where the request has not arrived in time."""
        own = self._connection.gettimeout()
        left = self._begun + ARRIVAL_SECONDS + self._received / LEAST_BYTES_PER_SECOND - clock.monotonic()
        if left <= 0:
            raise _too_slow()
        # A shorter time that somebody else has set stays theirs, and so does its end.
        is_shorter = own is not None and own < left
        if not is_shorter:
            self._connection.settimeout(left)
        try:
            piece = self._connection.recv(size)
        except TimeoutError as error:
            if is_shorter:
                raise
            raise _too_slow() from error
        finally:
            if not is_shorter:
                self._connection.settimeout(own)
        self._received += len(piece)
        return piece

    def gettimeout(self) -> float | None:
        """As a socket's."""
        return self._connection.gettimeout()

    def settimeout(self, seconds: float | None) -> None:
        """As a socket's."""
        self._connection.settimeout(seconds)


def _too_slow() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, "the request has not arrived in time")
