import base64
import hmac
import itertools
import re
from typing import Any

import pytest

from core import ids

KEY = b"a data key of an instance"
KINDS = [ids.ENTRY, ids.FOLDER, ids.DELETION, ids.IDENTITY, ids.CONNECTION, ids.ORGANIZATION]


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_is_random_and_safe_in_urls_and_file_names(kind: str) -> None:
    made = {ids.new_id(kind) for _ in range(500)}

    assert len(made) == 500
    assert all(re.fullmatch(kind + "_[a-z2-7]{26}", one) for one in made)
    # 130 bits: every character of the alphabet turns up at every place.
    assert all(len(set(column)) > 16 for column in list(zip(*made, strict=True))[4:])


def test_a_version_depends_on_entry_sequence_content_and_key() -> None:
    base: dict[str, Any] = {"entry_id": "ent_a", "sequence": 1, "content_hash": "00"}
    others: list[dict[str, Any]] = [
        {"entry_id": "ent_b"},
        {"sequence": 2},
        {"sequence": 11},
        {"content_hash": "01"},
    ]

    versions = [ids.version_token(KEY, **(base | other)) for other in [{}, *others]]
    versions.append(ids.version_token(KEY + b"!", **base))

    assert len(set(versions)) == len(versions)
    assert ids.version_token(KEY, **base) == versions[0]
    assert all(re.fullmatch("v[a-z2-7]{26}", version) for version in versions)


def test_a_version_is_written_as_the_library_writes_base32() -> None:
    for sequence in range(500):
        digest = hmac.digest(KEY, f"version\0ent_a\0{sequence}\0".encode() + b"00", "sha256")
        written = base64.b32encode(digest).decode().lower()[:26]

        made = ids.version_token(KEY, entry_id="ent_a", sequence=sequence, content_hash="00")

        assert made == f"v{written}"


def test_keys_of_two_purposes_differ_and_are_no_version() -> None:
    made = [ids.derived_key(KEY, purpose) for purpose in ("cursor", "csrf", "")]

    assert len(set(made)) == 3
    assert {len(key) for key in made} == {32}
    assert ids.derived_key(KEY + b"!", "cursor") not in made


def test_a_request_key_belongs_to_one_organization_identity_tool_and_request() -> None:
    parts = {"organization_id": "a", "identity_id": "b", "tool": "c", "request_id": "d"}
    keys = {ids.request_key(**parts)}
    for name in parts:
        keys.add(ids.request_key(**(parts | {name: "x"})))
    # Not only the letters of all four together count, but which of them has which.
    for split in itertools.permutations(("", "a", "ab", "b")):
        keys.add(ids.request_key(**dict(zip(parts, split, strict=True))))

    assert len(keys) == 5 + 24
    assert all(re.fullmatch("[0-9a-f]{64}", key) for key in keys)


def test_what_stands_on_disk_or_with_clients_is_made_as_ever() -> None:
    # A change of these values makes stored outcomes unreachable and every version a conflict.
    assert (
        ids.version_token(KEY, entry_id="ent_a", sequence=1, content_hash="00")
        == "vabhri3acn3uwxqbw7fujbj54fp"
    )
    assert ids.request_key(organization_id="a", identity_id="b", tool="c", request_id="d") == (
        "cf92326f85f50aa865be765403a20d1b6772cd24f2628a15b31d53eb9150b043"
    )
    assert (
        ids.derived_key(KEY, "cursor").hex()
        == "9418621d78c91aabc8b83205e557b3b0470ece721ff2f52f563238738c0b0d01"
    )


@pytest.mark.parametrize(
    ("data", "blob"),
    [
        (b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
        (b"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"),
    ],
)
def test_the_blob_id_is_the_one_that_git_gives(data: bytes, blob: str) -> None:
    assert ids.git_blob_id(data) == blob


def test_the_content_hash_is_sha256_in_lowercase_hexadecimal() -> None:
    assert ids.sha256_hex(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
