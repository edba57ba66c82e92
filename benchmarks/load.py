"""Send one HTTP request over and over on connections that stay open, and count the answers.

    python -m benchmarks.load PORT SECONDS CONNECTIONS < request

A process of its own: one thread, plain sockets, so that as little as possible of the machine goes into asking. Prints
answers a second.
"""

import re
import selectors
import socket
import sys
import time

LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
PIECE_BYTES = 256 * 1024


class Asking:
    """One connection: what is still missing of the answer that it waits for."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._head = b""
        self._missing = -1

    def ask(self) -> None:
        """Send the request."""
        self._head, self._missing = b"", -1
        self.socket.sendall(self._request)

    def take(self) -> bool:
        """Take what has come; whether the answer is complete. Raises SystemExit for another status than 200."""
        piece = self.socket.recv(PIECE_BYTES)
        if not piece:
            sys.exit("the server closed a connection")
        if self._missing >= 0:
            self._missing -= len(piece)
            return self._missing == 0
        self._head += piece
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return False
        length = LENGTH.search(self._head, 0, end)
        if length is None or not self._head.startswith(b"HTTP/1.1 200"):
            sys.exit(f"a strange answer: {self._head[:500]!r}")
        self._missing = end + 4 + int(length[1]) - len(self._head)
        return self._missing == 0


def count_answers(port: int, request: bytes, seconds: float, connections: int) -> tuple[int, float]:
    """How many complete answers come, and in what time, on connections that all always wait for one."""
    selector = selectors.DefaultSelector()
    askings = [Asking(port, request) for _ in range(connections)]
    for asking in askings:
        selector.register(asking.socket, selectors.EVENT_READ, asking)
        asking.ask()
    count, begin = 0, time.perf_counter()
    end = begin + seconds
    while (now := time.perf_counter()) < end:
        for key, _ in selector.select(timeout=1):
            if key.data.take():
                count += 1
                key.data.ask()
    for asking in askings:
        asking.socket.close()
    return count, now - begin


if __name__ == "__main__":
    _, port, seconds, connections = sys.argv
    count, taken = count_answers(int(port), sys.stdin.buffer.read(), float(seconds), int(connections))
    print(count / taken)
