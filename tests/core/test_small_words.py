"""The clock, the limits and the words that all floors share."""

import datetime as dt

import pytest

from core import clock, limits
from core.types import Capability, EntryType, FolderRef, IdentityKind, Role


def test_the_limits_are_those_of_the_design() -> None:
    assert limits.CONTENT_MAX_BYTES == 10_485_760
    assert (limits.TITLE_MAX_CHARACTERS, limits.DESCRIPTION_MAX_CHARACTERS) == (200, 4_000)
    assert (limits.TAGS_MAX, limits.TAG_MAX_CHARACTERS) == (50, 64)
    assert (limits.PAGE_DEFAULT, limits.PAGE_MAX) == (50, 100)
    assert (limits.NAME_MAX_CHARACTERS, limits.PATH_MAX_BYTES) == (64, 1_024)
    assert (limits.REQUEST_ID_MAX_CHARACTERS, limits.REASON_MAX_CHARACTERS) == (128, 500)
    assert (limits.USERNAME_MAX_CHARACTERS, limits.DISPLAY_NAME_MAX_CHARACTERS) == (64, 120)
    assert (limits.MCP_BODY_MAX_BYTES, limits.BODY_MAX_BYTES) == (67_108_864, 2_621_440)
    assert (limits.OUTCOME_DAYS, limits.WRITER_WAIT_SECONDS) == (7, 10)
    assert limits.HEAVY_WORK_MAX * 2 == limits.WORKER_THREADS


def test_a_moment_is_written_in_utc_and_read_back() -> None:
    moment = dt.datetime(2026, 11, 30, 10, 15, 0, 7, dt.timezone(dt.timedelta(hours=1)))

    written = clock.timestamp(moment)

    assert written == "2026-11-30T09:15:00.000007Z"
    assert clock.from_timestamp(written) == moment


def test_written_moments_sort_as_text_sorts() -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    moments = [start + dt.timedelta(microseconds=9**power) for power in range(17)]

    assert sorted(map(clock.timestamp, moments)) == list(map(clock.timestamp, moments))


def test_now_is_aware_and_in_utc() -> None:
    assert clock.now().utcoffset() == dt.timedelta(0)
    assert clock.from_timestamp(clock.timestamp()).utcoffset() == dt.timedelta(0)


def test_a_higher_role_includes_the_lower_ones() -> None:
    assert Role.READER < Role.EDITOR < Role.OWNER
    assert [role.word for role in Role] == ["reader", "editor", "owner"]
    assert [Role.from_word(role.word) for role in Role] == list(Role)
    with pytest.raises(KeyError):
        Role.from_word("admin")


def test_the_words_are_those_of_the_contract() -> None:
    assert [str(kind) for kind in IdentityKind] == ["person", "service_account", "system"]
    assert [str(capability) for capability in Capability] == ["read", "write"]
    assert [str(label) for label in EntryType] == ["skill", "note", "fact", "source"]


def test_a_folder_knows_its_name_its_parent_and_the_paths_above_it() -> None:
    folder = FolderRef(id="fld_c", path="Eng/Payments", lineage=("fld_a", "fld_b", "fld_c"))

    assert (folder.name, folder.parent_id) == ("Payments", "fld_b")
    assert [folder.path_at(depth) for depth in range(3)] == ["", "Eng", "Eng/Payments"]


def test_the_root_has_no_name_and_no_parent() -> None:
    root = FolderRef(id="fld_a", path="", lineage=("fld_a",))

    assert (root.name, root.parent_id, root.path_at(0)) == ("", None, "")
