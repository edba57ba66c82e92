"""Records, marks, registry lines and outcomes: what is written is what is read, and a flipped byte is refused."""

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import names
from core.types import SYSTEM_ACTOR, Actor, IdentityKind
from kb import registry
from kb.registry import EntryLine, FolderLine, OwnLine, SnapshotLine, TombstoneLine
from kb.store import marks, outcomes, record
from kb.store.marks import Mark
from kb.store.outcomes import DamagedOutcome, Outcome
from kb.store.record import Append, Cause, DamagedRecord, MakeFolder, Operation, Put, Remove, Subject

NUMBERS = st.integers(0, 2**63)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
STEMS = st.text(st.sampled_from("ABCabc019 _-"), min_size=1, max_size=12).filter(names.is_stem)
FOLDERS = st.lists(STEMS, max_size=4).map(tuple)
ACTORS = st.builds(Actor, id=TEXTS, name=TEXTS, kind=st.sampled_from(IdentityKind))
CAUSES = st.builds(
    Cause,
    action=TEXTS,
    time=TEXTS,
    actor=ACTORS,
    subjects=st.lists(st.builds(Subject, TEXTS, TEXTS, st.none() | TEXTS), max_size=3).map(tuple),
    request_key=st.none() | TEXTS,
    arguments_hash=st.none() | TEXTS,
    reason=st.none() | TEXTS,
)


def entry_path(folders: tuple[str, ...], stem: str) -> tuple[str, ...]:
    return ("content", *folders, stem + ".md")


def registry_path(folders: tuple[str, ...]) -> tuple[str, ...]:
    return ("content", *folders, registry.REGISTRY_NAME)


ENTRY_PATHS = st.builds(entry_path, FOLDERS, STEMS)
REGISTRY_PATHS = st.builds(registry_path, FOLDERS)
OUTCOME_PATHS = st.binary(min_size=32, max_size=32).map(lambda key: outcomes.outcome_path(key.hex()))
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(MakeFolder, st.builds(lambda above, name: ("content", *above, name), FOLDERS, STEMS)),
    st.builds(Put, ENTRY_PATHS | REGISTRY_PATHS | OUTCOME_PATHS, st.binary(max_size=40)),
    st.builds(Append, REGISTRY_PATHS, NUMBERS, st.binary(max_size=40)),
    st.builds(Remove, ENTRY_PATHS),
)
LINES = st.one_of(
    st.builds(OwnLine, lsn=NUMBERS, id=TEXTS, ever_backed_up=st.booleans()),
    st.builds(FolderLine, lsn=NUMBERS, id=TEXTS, name=TEXTS, created_at=TEXTS, created_by=ACTORS),
    st.builds(
        EntryLine,
        **dict.fromkeys(("id", "name", "title", "type", "description", "content_hash", "git_blob"), TEXTS),
        **dict.fromkeys(("lsn", "content_seq", "existence_seq", "size_bytes", "total_lines"), NUMBERS),
        tags=st.lists(TEXTS, max_size=3).map(tuple),
        created_at=TEXTS,
        created_by=ACTORS,
        updated_at=TEXTS,
        updated_by=ACTORS,
    ),
    st.builds(
        TombstoneLine,
        **dict.fromkeys(("id", "entry_id", "name", "content_hash", "git_blob", "deleted_at"), TEXTS),
        **dict.fromkeys(("lsn", "content_seq", "existence_seq"), NUMBERS),
        deleted_by=ACTORS,
        reserved=st.booleans(),
    ),
)
SMALL_CAUSE = Cause("create", "2026-11-30T00:00:00.000000Z", SYSTEM_ACTOR)
SMALL_OPERATIONS: list[Operation] = [
    MakeFolder(("content", "Eng")),
    Put(("content", "Eng", "a.md"), b"text\n"),
    Append(("content", registry.REGISTRY_NAME), 7, b"line\n"),
    Remove(("content", "old.md")),
]


def flips(data: bytes) -> list[bytes]:
    """The data with one bit of one byte turned, for every byte."""
    return [data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in range(len(data))]


# -- records ----------------------------------------------------------------------------------------------------


@given(NUMBERS, CAUSES, st.lists(OPERATIONS, max_size=5), st.binary(max_size=20), st.binary(max_size=20))
def test_a_record_is_read_as_it_was_written(
    lsn: int, cause: Cause, operations: list[Operation], before: bytes, behind: bytes
) -> None:
    data = record.encode(lsn, cause, operations)

    found = record.decode_at(before + data + behind, len(before), expected_lsn=lsn, base=1000)

    assert found is not None
    assert (found.lsn, found.cause, list(found.operations)) == (lsn, cause, operations)
    assert (found.start, found.end) == (1000 + len(before), 1000 + len(before) + len(data))


@given(NUMBERS, CAUSES, st.lists(OPERATIONS, max_size=5))
def test_the_head_of_a_record_names_what_it_touches(
    lsn: int, cause: Cause, operations: list[Operation]
) -> None:
    data = record.encode(lsn, cause, operations)
    length, found_lsn, header_length = record.head_lengths(data[: record.PREFIX_BYTES])

    header = data[record.PREFIX_BYTES : record.PREFIX_BYTES + header_length]
    head = record.decode_head(found_lsn, header, segment=3, end=length)

    assert (length, head.lsn, head.cause) == (len(data), lsn, cause)
    assert list(head.paths) == [operation.path for operation in operations]


def test_a_record_with_any_byte_flipped_is_none() -> None:
    data = record.encode(5, SMALL_CAUSE, SMALL_OPERATIONS)

    assert record.decode_at(data, 0, expected_lsn=5) is not None
    for flipped in flips(data):
        assert record.decode_at(flipped, 0, expected_lsn=None) is None


def test_a_record_cut_anywhere_is_none() -> None:
    data = record.encode(5, SMALL_CAUSE, SMALL_OPERATIONS)

    for length in range(len(data)):
        assert record.decode_at(data[:length], 0, expected_lsn=5) is None
        assert record.decode_at(data[:length] + bytes(len(data) - length), 0, expected_lsn=5) is None


def test_a_record_with_another_number_than_the_next_one_is_none() -> None:
    data = record.encode(5, SMALL_CAUSE, SMALL_OPERATIONS)

    assert record.decode_at(data, 0, expected_lsn=6) is None


@given(st.text(max_size=50), st.binary(max_size=50))
def test_no_text_and_no_header_can_hold_the_magic(text: str, noise: bytes) -> None:
    cause = Cause("create", "", SYSTEM_ACTOR, reason=text.encode("utf-8", "replace").decode())
    data = record.encode(1, cause, [Put(("content", "a.md"), text.encode("utf-8", "replace"))])

    assert data.find(record.MAGIC, 1, len(data) - record.DIGEST_BYTES) == -1


FORBIDDEN_PATHS = [
    (),
    ("",),
    ("content",),
    ("private",),
    ("private", "applied"),
    ("private", "log", "00000000000000000001.log"),
    ("private", "locks", "writer"),
    ("private", "outcomes", "00"),
    ("private", "outcomes", "00", "a.json"),
    ("private", "outcomes", "zz", "0" * 64 + ".json"),
    ("private", "outcomes", "..", "0" * 64 + ".json"),
    ("content", "..", "a.md"),
    ("content", ".", "a.md"),
    ("content", "", "a.md"),
    ("content", "Eng/Ops", "a.md"),
    ("content", ".hidden", "a.md"),
    ("content", "a.txt"),
    ("content", ".md"),
    ("content", "a\0.md"),
    ("content", "con.md"),
    ("content", "Eng", ".registry.json"),
    ("..", "content", "a.md"),
    ("db.sqlite3",),
]


@pytest.mark.parametrize("path", FORBIDDEN_PATHS, ids="/".join)
def test_a_record_cannot_name_a_path_outside_its_ground(path: tuple[str, ...]) -> None:
    for operation in (MakeFolder(path), Put(path, b""), Append(path, 0, b""), Remove(path)):
        with pytest.raises(DamagedRecord):
            record.encode(1, SMALL_CAUSE, [operation])


@pytest.mark.parametrize(
    "operation",
    [
        MakeFolder(("content", "a.md")),
        MakeFolder(("content", registry.REGISTRY_NAME)),
        MakeFolder(outcomes.outcome_path("0" * 64)),
        Append(("content", "a.md"), 0, b""),
        Append(outcomes.outcome_path("0" * 64), 0, b""),
        Remove(("content", registry.REGISTRY_NAME)),
        Remove(("content", "Eng")),
        Remove(outcomes.outcome_path("0" * 64)),
        Put(("content", "Eng"), b""),
    ],
    ids=repr,
)
def test_each_operation_has_its_own_kind_of_path(operation: Operation) -> None:
    with pytest.raises(DamagedRecord):
        record.encode(1, SMALL_CAUSE, [operation])


def with_header(change: dict[str, object]) -> bytes:
    """A record with a valid checksum and a changed header: what another program could have written."""
    data = record.encode(1, SMALL_CAUSE, [Put(("content", "a.md"), b"text\n")])
    _, _, length = record.head_lengths(data[: record.PREFIX_BYTES])
    header = json.loads(data[record.PREFIX_BYTES : record.PREFIX_BYTES + length]) | change
    encoded = json.dumps(header).encode()
    whole = record.RECORD_MIN_BYTES + len(encoded) + 5
    body = b"".join(
        [record.MAGIC, whole.to_bytes(8), (1).to_bytes(8), len(encoded).to_bytes(4), encoded, b"text\n"]
    )
    return body + hashlib.sha256(body).digest()


def test_a_record_written_by_hand_in_the_known_form_is_read() -> None:
    assert record.decode_at(with_header({}), 0, expected_lsn=1) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"operations": [{"op": "put", "path": ["content", "..", "a.md"], "length": 5}]},
        {"operations": [{"op": "put", "path": ["content", "a.md"], "at": 1, "length": 5}]},
        {"operations": [{"op": "move", "path": ["content", "a.md"]}]},
        {"operations": [{"op": "put", "path": ["private", "applied"], "length": 5}]},
        {"operations": [{"op": "del", "path": ["content", ".registry.jsonl"]}]},
        {"cause": None},
    ],
    ids=repr,
)
def test_a_record_whose_checksum_holds_and_whose_form_does_not_is_damage(change: dict[str, object]) -> None:
    with pytest.raises(DamagedRecord):
        record.decode_at(with_header(change), 0, expected_lsn=1)


# -- marks ------------------------------------------------------------------------------------------------------


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_a_mark_is_read_as_it_was_written(lsn: int, segment: int, offset: int, applying: int) -> None:
    mark = Mark(lsn, segment, offset, applying)

    assert len(mark.encode()) == marks.MARK_BYTES
    assert marks.decode(mark.encode()) == mark
    assert mark.is_whole == (applying <= lsn)


def test_a_mark_that_is_flipped_cut_or_grown_is_none() -> None:
    data = Mark(7, 1, 4096, 8).encode()

    damaged = [*flips(data), *(data[:length] for length in range(len(data))), data + b"\0", bytes(40)]
    assert [marks.decode(one) for one in damaged] == [None] * len(damaged)


# -- registry lines ---------------------------------------------------------------------------------------------


@given(NUMBERS, st.lists(LINES, max_size=6))
def test_a_registry_is_read_as_it_was_written(lsn: int, lines: list[registry.Line]) -> None:
    data = registry.encode_snapshot(lsn, lines)

    assert registry.decode_lines(data) == [SnapshotLine(lsn=lsn), *lines]
    assert len(data[: registry.KEY_BYTES].split(b"\n")[0]) < registry.KEY_BYTES


@given(st.lists(LINES, min_size=1, max_size=4))
@settings(max_examples=20)
def test_a_registry_with_any_byte_flipped_is_refused(lines: list[registry.Line]) -> None:
    data = registry.encode_snapshot(1, lines)

    for flipped in flips(data):
        with pytest.raises(registry.DamagedRegistry):
            registry.decode_lines(flipped)


def test_a_registry_cut_inside_a_line_is_refused() -> None:
    data = registry.encode_snapshot(1, [OwnLine(lsn=1, id="fld_root")])
    ends = {at + 1 for at, byte in enumerate(data) if byte == 10}

    for length in set(range(1, len(data))) - ends:
        with pytest.raises(registry.DamagedRegistry):
            registry.decode_lines(data[:length])


def test_of_two_lines_with_one_id_the_last_counts_and_a_tombstone_ends_its_entry() -> None:
    entry = EntryLine(
        lsn=2, id="ent_a", name="a.md", title="first", type="note", description="", tags=(), content_seq=2,
        existence_seq=2, content_hash="", git_blob="", size_bytes=0, total_lines=0, created_at="",
        created_by=SYSTEM_ACTOR, updated_at="", updated_by=SYSTEM_ACTOR,
    )  # fmt: skip
    other = EntryLine(**{**{name: getattr(entry, name) for name in entry.__struct_fields__}, "id": "ent_b"})
    gone = TombstoneLine(
        lsn=4, id="del_b", entry_id="ent_b", name="a.md", content_hash="", git_blob="", content_seq=2,
        existence_seq=4, deleted_at="", deleted_by=SYSTEM_ACTOR, reserved=False,
    )  # fmt: skip
    again = EntryLine(
        **{**{name: getattr(entry, name) for name in entry.__struct_fields__}, "title": "second"}
    )

    live = registry.live([OwnLine(lsn=1, id="fld"), entry, other, gone, again])

    assert live.entries == {"ent_a": again}
    assert live.tombstones == {"del_b": gone}


# -- outcomes ---------------------------------------------------------------------------------------------------


@given(TEXTS, TEXTS, st.integers(1, 3), st.dictionaries(TEXTS, TEXTS | st.integers(-5, 5) | st.lists(TEXTS)))
def test_an_outcome_is_read_as_it_was_written(
    arguments_hash: str, folder_id: str, role: int, result: dict[str, object]
) -> None:
    outcome = Outcome(arguments_hash, folder_id, role, "2026-11-30T00:00:00.000000Z", result)

    assert outcomes.decode(outcomes.encode(outcome)) == outcome


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"null", b"\0" * 60])
def test_what_is_no_outcome_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedOutcome):
        outcomes.decode(data)
