import io
import socket
import threading
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from brain import unread_body
from brain.unread_body import SenderMayFinish


class Answer:
    """An answer that notes what was unread when it was closed."""

    def __init__(self, body: io.BytesIO) -> None:
        self.body = body
        self.read_before_close = -1

    def __iter__(self) -> Any:
        yield b"refused"

    def close(self) -> None:
        self.read_before_close = self.body.tell()


def ask(body: io.BytesIO, **environ: Any) -> tuple[Answer, Iterable[bytes]]:
    answer = Answer(body)

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return answer

    asked = {"wsgi.input": body, "wsgi.input_terminated": True, **environ}
    return answer, SenderMayFinish(application)(asked, lambda *args, **more: lambda data: None)


def test_the_answer_goes_out_before_the_rest_of_the_body_is_read() -> None:
    body = io.BytesIO(b"x" * 1000)
    answer, response = ask(body, CONTENT_LENGTH="1000")

    assert (list(response), body.tell()) == ([b"refused"], 0)
    response.close()  # type: ignore[attr-defined]

    assert (answer.read_before_close, body.tell()) == (0, 1000)


def test_a_request_without_a_body_is_left_as_it_is() -> None:
    answer, response = ask(io.BytesIO(b"x"))

    assert response is answer


def test_a_server_that_does_not_end_the_stream_is_not_read_on() -> None:
    answer, response = ask(io.BytesIO(b"x"), CONTENT_LENGTH="1", **{"wsgi.input_terminated": False})

    assert response is answer


def test_a_body_far_beyond_every_limit_is_not_waited_for() -> None:
    body = io.BytesIO(b"x" * 10)
    _, response = ask(body, CONTENT_LENGTH=str(unread_body.READ_ON_MAX_BYTES + 1))

    response.close()  # type: ignore[attr-defined]

    assert body.tell() == 0


def test_no_more_than_the_bound_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_body, "READ_ON_MAX_BYTES", 100)
    body = io.BytesIO(b"x" * 1000)
    _, response = ask(body, HTTP_TRANSFER_ENCODING="chunked")

    response.close()  # type: ignore[attr-defined]

    assert body.tell() == 100


def test_a_client_that_sends_no_more_does_not_hold_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_body, "READ_ON_SECONDS", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb", buffering=0) as body:
        wsgi = {"gunicorn.socket": ours, "wsgi.input": body}
        _, response = ask(io.BytesIO(), CONTENT_LENGTH="1000", **wsgi)
        closing = threading.Thread(target=response.close)  # type: ignore[attr-defined]
        closing.start()
        closing.join(30)

        assert not closing.is_alive()
        assert ours.gettimeout() is None
