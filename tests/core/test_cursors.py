import base64

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import cursors, limits
from core.errors import InvalidArgument

unhurried = settings(deadline=None)

KEY = bytes(range(32))
QUERY = '["identity", "token", {"folder": "fld_1", "recursive": true}]'
PLACE = "Eng/Payments/hidden-project.md"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def is_refused(cursor: str, *, key: bytes = KEY, bound_to: str = QUERY) -> bool:
    """Whether the cursor is refused, as every bad cursor is: with one and the same answer."""
    try:
        cursors.unseal(key, cursor, bound_to=bound_to)
    except InvalidArgument as refusal:
        return refusal.details == {
            "field": "cursor",
            "problem": "This cursor belongs to another query or connection.",
        }
    return False


@unhurried
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    st.text(st.characters(exclude_categories=["Cs"])),
)
@example("", "")
@example("\0\0\0", "x")
@example("é" * 32, "x")
def test_a_cursor_gives_its_place_back_to_the_same_query(place: str, bound_to: str) -> None:
    cursor = cursors.seal(KEY, place, bound_to=bound_to)

    assert cursors.unseal(KEY, cursor, bound_to=bound_to) == place
    assert set(cursor) <= set(ALPHABET)


@pytest.mark.parametrize(
    "other",
    [
        QUERY.replace("identity", "another"),
        QUERY.replace('"token"', '"tokem"'),
        QUERY.replace("fld_1", "fld_2"),
        QUERY.replace("true", "false"),
        QUERY + " ",
        QUERY[:-1],
        "",
    ],
)
def test_a_cursor_is_refused_for_any_other_query_identity_or_connection(other: str) -> None:
    cursor = cursors.seal(KEY, PLACE, bound_to=QUERY)

    assert is_refused(cursor, bound_to=other)
    assert not is_refused(cursor)


def test_a_cursor_of_another_instance_is_refused() -> None:
    assert is_refused(cursors.seal(bytes(32), PLACE, bound_to=QUERY))
    assert is_refused(cursors.seal(KEY, PLACE, bound_to=QUERY), key=KEY[:-1])


def test_every_flipped_bit_of_a_cursor_is_refused() -> None:
    cursor = cursors.seal(KEY, PLACE, bound_to=QUERY)
    sealed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))

    for position in range(len(sealed)):
        for bit in range(8):
            flipped = bytearray(sealed)
            flipped[position] ^= 1 << bit
            assert is_refused(base64.urlsafe_b64encode(flipped).decode().rstrip("="))


def test_every_changed_missing_or_added_character_of_a_cursor_is_refused() -> None:
    cursor = cursors.seal(KEY, PLACE, bound_to=QUERY)

    for position, character in enumerate(cursor):
        for other in ALPHABET + "+/= \n.é\0\ud800":
            if other != character:
                assert is_refused(cursor[:position] + other + cursor[position + 1 :])
        assert is_refused(cursor[:position])
        assert is_refused(cursor[:position] + cursor[position + 1 :])
        assert is_refused(cursor[:position] + character + cursor[position:])
    for added in ("=", "==", "===", "\n", " ", "A", "AA", "AAAA"):
        assert is_refused(cursor + added)
        assert is_refused(added + cursor)


@unhurried
@given(st.one_of(st.text(max_size=300), st.text(st.sampled_from(ALPHABET + "=+/"), max_size=300)))
@example("")
@example("=")
@example("A")
@example("AAAA")
@example("A" * 16)  # a nonce and nothing else
@example("A" * 38)  # a nonce and a tag
@example("\ud800")
@example("é")
@example("-_" * 2048)
def test_noise_is_refused_and_never_an_error_of_another_kind(noise: str) -> None:
    assert is_refused(noise)


@unhurried
@given(st.binary(max_size=200))
def test_well_written_noise_is_refused_too(noise: bytes) -> None:
    assert is_refused(base64.urlsafe_b64encode(noise).decode().rstrip("="))


def test_two_cursors_of_one_place_differ() -> None:
    assert len({cursors.seal(KEY, PLACE, bound_to=QUERY) for _ in range(100)}) == 100


def test_the_length_of_a_cursor_tells_little_about_its_place() -> None:
    lengths = [len(cursors.seal(KEY, "x" * length, bound_to=QUERY)) for length in range(200)]

    assert len(set(lengths)) == 4
    assert lengths == sorted(lengths)


def test_a_cursor_holds_the_longest_path_within_its_own_limit() -> None:
    place = "é" * limits.PATH_MAX_BYTES

    cursor = cursors.seal(KEY, place, bound_to=QUERY)

    assert cursors.unseal(KEY, cursor, bound_to=QUERY) == place
    assert len(cursor) <= limits.CURSOR_MAX_CHARACTERS
