"""Clients that send slowly, or nothing, hold no thread for long."""

import http.client
import socket
import sys
from pathlib import Path

import pytest

from brain import pace
from brain.pace import PacedConnection
from core import limits
from tests.server import PATIENCE_SECONDS, running_brain

# The server itself, told to be less patient, so that the test need not be patient either.
IMPATIENT = "from brain import pace; pace.ARRIVAL_SECONDS = 1; from brain.serve import main; main()"
SLOW_CLIENTS = {
    "half a head": b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "no body": b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 500\r\n\r\nusername=",
}


@pytest.mark.server
@pytest.mark.parametrize("sent", SLOW_CLIENTS.values(), ids=SLOW_CLIENTS)
def test_more_silent_clients_than_threads_do_not_stop_the_server(tmp_path: Path, sent: bytes) -> None:
    impatient = (sys.executable, "-c", IMPATIENT)
    with running_brain(tmp_path / "data", command=impatient, BRAIN_WORKERS="1") as brain:
        address = ("127.0.0.1", int(brain.url.rpartition(":")[2]))
        silent = [socket.create_connection(address) for _ in range(limits.WORKER_THREADS + 4)]
        for connection in silent:
            connection.sendall(sent)
        asking = http.client.HTTPConnection(*address, timeout=PATIENCE_SECONDS)
        asking.request("GET", "/readyz")
        status = asking.getresponse().status
        asking.close()
        for connection in silent:
            connection.close()

    assert status == 200
    assert '"level": "error"' not in brain.log


def test_a_byte_now_and_then_is_no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("core.clock.monotonic", lambda: now)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        paced = PacedConnection(ours)
        for _ in range(pace.ARRIVAL_SECONDS):
            theirs.sendall(b"x")
            assert paced.recv(10) == b"x"
            now += 1
        theirs.sendall(b"x")
        now += 1

        with pytest.raises(ConnectionResetError):
            paced.recv(10)

        paced.begin_request()
        assert paced.recv(10) == b"x"


def test_a_body_that_keeps_coming_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("core.clock.monotonic", lambda: now)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        paced = PacedConnection(ours)
        for _ in range(3 * pace.ARRIVAL_SECONDS):
            theirs.sendall(b"x" * pace.LEAST_BYTES_PER_SECOND)
            left = pace.LEAST_BYTES_PER_SECOND
            while left:
                left -= len(paced.recv(left))
            now += 1


def test_a_shorter_time_of_somebody_else_stays_theirs() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        paced = PacedConnection(ours)
        paced.settimeout(0.01)

        with pytest.raises(TimeoutError):
            paced.recv(10)

        assert paced.gettimeout() == 0.01
