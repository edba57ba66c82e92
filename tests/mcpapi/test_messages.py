import json

import pytest

from mcpapi import messages
from mcpapi.messages import INVALID_REQUEST, PARSE_ERROR, MalformedMessage, read_message


def refusal_of(body: bytes) -> MalformedMessage:
    with pytest.raises(MalformedMessage) as refused:
        read_message(body)
    return refused.value


def request(**parts: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", **parts}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"jsonrpc":"2.0",}',
        b"{'jsonrpc':'2.0'}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing',
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}',
        b'{"jsonrpc":"2.0","id":1,"method":"pi\nng"}',
    ],
)
def test_what_is_no_json_in_utf_8_is_a_parse_error(body: bytes) -> None:
    assert refusal_of(body).code == PARSE_ERROR


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b"7",
        b'"ping"',
        b"{}",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}',
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(body: bytes) -> None:
    assert refusal_of(body).code == INVALID_REQUEST


@pytest.mark.parametrize("bad_id", ["null", "true", "1.5", "[]", "{}", r'"\ud800"', "1" * 5_000])
def test_an_id_is_a_string_or_a_whole_number(bad_id: str) -> None:
    refused = refusal_of(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % bad_id.encode())

    assert (refused.code, refused.request_id) == (INVALID_REQUEST, None)


@pytest.mark.parametrize("good_id", [0, -7, 10**300, "", "a", "ä€😀"])
def test_every_other_id_is_taken(good_id: str | int) -> None:
    assert read_message(request(id=good_id)).request_id == good_id


def test_a_message_without_an_id_is_a_notification() -> None:
    assert read_message(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').is_notification


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{},"arguments":{}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":[{"a":1,"a":1}]}}}',
    ],
)
def test_a_key_that_stands_twice_in_the_envelope_refuses_the_message(body: bytes) -> None:
    assert refusal_of(body).code == INVALID_REQUEST


def test_a_refusal_names_the_request_where_its_id_could_be_read() -> None:
    assert refusal_of(b'{"jsonrpc":"2.0","id":"x","method":7}').request_id == "x"
    assert refusal_of(b'{"jsonrpc":"2.0","id":"x","method":"p","params":{"a":1,"a":2}}').request_id == "x"


def test_a_key_that_stands_twice_in_the_arguments_is_left_to_the_tool() -> None:
    message = read_message(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        b'{"name":"x","arguments":{"metadata":{"title":"a","tags":[],"title":"b"}}}}'
    )

    assert list(messages.problems(message.params["arguments"])) == [
        ("metadata.title", "This key stands twice in one object.")
    ]


def test_problems_are_told_in_the_order_of_the_text() -> None:
    value = messages.read_json(b'{"a":{"b":null},"c":[1,null],"d":{"e":1,"e":1},"f":null}')

    assert [field for field, _ in messages.problems(value)] == ["a.b", "c", "d.e", "f"]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_ten_thousand_levels_are_refused_or_understood_but_never_break(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    deep = opening * 10_000 + "1" + closing * 10_000
    body = f'{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{deep}}}}}'.encode()

    assert refusal_of(body).code in (PARSE_ERROR, INVALID_REQUEST)


def test_depth_outside_the_arguments_has_a_bound_of_our_own() -> None:
    deep = "[" * 200 + "]" * 200
    outside = f'{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{"x":{deep}}}}}}}'
    inside = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{{"x":{deep}}}}}}}'

    assert refusal_of(outside.encode()).code == INVALID_REQUEST
    assert not list(messages.problems(read_message(inside.encode()).params["arguments"]))


def test_a_whole_number_of_any_length_is_read() -> None:
    value = messages.read_json(b'{"x": %s, "y": %s}' % (b"9" * 300, b"9" * 100_000))

    assert value["x"] == int("9" * 300)
    assert isinstance(value["y"], float)


def test_a_key_is_told_back_short_and_as_utf_8() -> None:
    shown = messages.shown_key("\ud800" + "k" * 1_000)

    assert shown.encode()
    assert len(shown) == messages.KEY_SHOWN_CHARACTERS + 1
