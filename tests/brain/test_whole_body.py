"""Half a message is never carried out as a whole one."""

import io
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from brain.whole_body import OnlyWholeBodies


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answers what it reads, in three ways of reading."""
    body = environ["wsgi.input"]
    return [body.read(2), body.readline(), body.read()]


def ask(sent: bytes, declared: str | None) -> list[bytes]:
    environ = {"wsgi.input": io.BytesIO(sent)} | ({} if declared is None else {"CONTENT_LENGTH": declared})
    return list(OnlyWholeBodies(application)(environ, lambda *args, **more: lambda data: None))


@pytest.mark.parametrize("sent", [b"ab", b"abc", b"abc\n", b"abc\nd", b"abc\nd\ne\n"])
def test_a_whole_body_is_handed_on(sent: bytes) -> None:
    assert b"".join(ask(sent, str(len(sent)))) == sent


@pytest.mark.parametrize("sent", [b"", b"a", b"ab", b"abc", b"abc\n", b"abc\nd", b"abc\nd\ne\n"])
def test_a_body_that_ends_early_is_an_error_and_no_end(sent: bytes) -> None:
    with pytest.raises(ConnectionResetError):
        ask(sent, str(len(sent) + 1))


def test_what_comes_after_the_body_is_not_read() -> None:
    assert b"".join(ask(b"abc\nnext request", "4")) == b"abc\n"


@pytest.mark.parametrize("declared", [None, "", "junk"])
def test_a_body_of_unknown_length_is_left_to_those_who_refuse_it(declared: str | None) -> None:
    assert ask(b"abc", declared) == [b"ab", b"c", b""]
