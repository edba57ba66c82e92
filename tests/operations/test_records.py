import pytest

from core.types import SYSTEM_ACTOR
from kb.store import record
from kb.store.record import Append, Cause, Put
from tests.operations.bare import BareStore, record_cause

CAUSE = Cause("update", "2026-11-30T09:15:00.000000Z", SYSTEM_ACTOR)
SECRET = ("content", "Eng", "secret.md")
OTHER = ("content", "Eng", "other.md")
REGISTRY = ("content", "Eng", ".registry.jsonl")


def test_a_purged_record_is_whole_and_keeps_its_length_its_number_and_all_else() -> None:
    written = record.encode(
        7, CAUSE, [Put(SECRET, b"a password\n"), Put(OTHER, b"kept\n"), Append(REGISTRY, 5, b"a line\n")]
    )

    purged = record.purge(written, SECRET)

    found = record.decode_at(purged, 0, expected_lsn=7)
    assert found is not None
    assert found.operations == (
        Put(SECRET, bytes(11)),
        Put(OTHER, b"kept\n"),
        Append(REGISTRY, 5, b"a line\n"),
    )
    assert (len(purged), found.cause) == (len(written), CAUSE)
    assert b"password" not in purged


@pytest.mark.parametrize(
    ("data", "purged"), [(bytes(3), True), (b"", False), (b"text\n", False), (b"\0\0x", False)]
)
def test_an_image_of_nothing_but_nuls_was_purged(data: bytes, purged: bool) -> None:
    assert record.is_purged(data) is purged


def test_a_record_can_be_made_to_begin_a_segment(bare: BareStore) -> None:
    bare.save("a.md", "one\n")

    with bare.store.transaction() as transaction:
        bare.store.append(record_cause(transaction.time), [], new_segment=True)
    bare.save("b.md", "two\n")

    assert bare.segments() == [1, 3]
    bare.reopen()
    assert (bare.text_of("a.md"), bare.text_of("b.md")) == ("one\n", "two\n")
    assert bare.disagreements() == []
