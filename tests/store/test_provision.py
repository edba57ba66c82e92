"""Making an organization's files: once, whole or not at all, on a disk that can be trusted."""

import os
import stat
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kb.store import filesystem, layout, provision, reserve, steps
from kb.store.data_format import UnknownFormat, check_format
from kb.store.filesystem import UnsuitableFilesystem
from kb.store.layout import Layout
from tests.store import account
from tests.store.changes import Create, make, text_of
from tests.store.children import in_child, killed_at
from tests.store.small import ORGANIZATION, Small

pytestmark = pytest.mark.usefixtures("small_reserve")


def everything(top: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(top).as_posix(): path.read_bytes() if path.is_file() else None
        for path in top.rglob("*")
    }


def test_a_new_organization_has_an_empty_root_made_by_the_first_record(small: Small) -> None:
    reading = account.read_log(small.top)

    assert [(record.lsn, record.action) for record in reading.records] == [(1, "provision")]
    assert account.problems_at_rest(small.top) == []
    entries, folders = account.picture_of(account.tree(small.top)[0])
    assert entries == {}
    assert folders.keys() == {""}


def test_nobody_else_can_read_a_new_organization(small: Small) -> None:
    modes = {
        (path.is_dir(), stat.S_IMODE(path.stat().st_mode))
        for path in [small.data_dir, *small.data_dir.rglob("*")]
    }

    assert modes == {(True, 0o700), (False, 0o600)}


def test_making_it_again_changes_nothing(small: Small) -> None:
    with small.opened() as store:
        make(store, Create("a.md", "text\n"))
    before = everything(small.data_dir)

    small.provision()

    assert everything(small.data_dir) == before


def test_a_second_organization_stands_beside_the_first(small: Small) -> None:
    before = everything(small.top)

    provision.provision(small.data_dir, "org_other")

    assert everything(small.top) == before
    assert account.problems_at_rest(small.data_dir / "orgs" / "org_other") == []


def test_a_first_start_that_is_killed_at_any_step_is_finished_by_the_next(ram: Path) -> None:
    kills = 0
    while True:
        data_dir = ram / f"data{kills}"
        start = partial(provision.provision, data_dir, ORGANIZATION)
        step = killed_at(kills + 1, start)
        if step is None:
            break
        kills += 1
        if 40 < kills < 270 and kills % 20:
            continue  # the 256 folders of outcomes are all alike
        in_child(start)

        assert account.problems_at_rest(data_dir / "orgs" / ORGANIZATION) == [], f"killed before {step}"
        assert sorted(path.name for path in data_dir.iterdir()) == ["FORMAT", "orgs"], f"killed before {step}"
        assert [path.name for path in (data_dir / "orgs").iterdir()] == [ORGANIZATION]
    assert kills > 270


def test_every_name_that_leads_to_an_organization_is_synced_also_by_the_start_after_one_that_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Small(tmp_path / "above" / "data").provision()
    synced: list[str] = []
    monkeypatch.setattr(steps, "hook", lambda step, place: synced.append(f"{step} {place}"))

    files.provision()

    assert synced == ["sync directory orgs", "sync directory ", "sync directory .."]


@pytest.mark.parametrize("found", ["2\n", "", "0", "1 of another program", "\xff"])
def test_an_unknown_layout_is_refused_and_left_alone(small: Small, found: str) -> None:
    (small.data_dir / "FORMAT").write_bytes(found.encode("latin-1"))
    before = everything(small.data_dir)

    with pytest.raises(UnknownFormat):
        check_format(small.data_dir)
    with pytest.raises(UnknownFormat):
        small.provision()

    assert everything(small.data_dir) == before


def test_organizations_without_a_layout_version_are_refused(small: Small) -> None:
    (small.data_dir / "FORMAT").unlink()
    before = everything(small.data_dir)

    with pytest.raises(UnknownFormat):
        small.provision()

    assert everything(small.data_dir) == before


def test_a_disk_of_an_unknown_kind_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(UnsuitableFilesystem):
        filesystem.check_filesystem(Path("/proc"))

    filesystem.check_filesystem(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unsuitable_disk_gets_no_organization(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "SUITABLE", {})

    with pytest.raises(UnsuitableFilesystem):
        provision.provision(tmp_path / "data", ORGANIZATION)

    assert list((tmp_path / "data" / "orgs").iterdir()) == []


def test_a_disk_where_flock_does_not_exclude_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fcntl.flock", lambda descriptor, operation: None)

    with pytest.raises(UnsuitableFilesystem):
        filesystem.check_filesystem(tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def other_disk(small: Small) -> Iterator[None]:
    """Another filesystem mounted over the organization's content."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", small.content], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"this machine allows no mount: {mounted.stderr.strip()}")
    yield
    subprocess.run(["umount", small.content], check=True)


def test_an_organization_that_lies_on_two_disks_is_refused(small: Small, other_disk: None) -> None:
    with pytest.raises(UnsuitableFilesystem):
        Layout(small.data_dir, ORGANIZATION)


def test_the_reserve_is_made_whole_again(small: Small) -> None:
    ballast = small.private / "reserve"
    whole = {path.name: path.stat().st_size for path in ballast.iterdir()}
    (ballast / "00").unlink()
    (ballast / "01").write_bytes(b"")  # as a checkpoint leaves it that is killed before the blocks are there

    with small.opened() as store:
        make(store, Create("a.md", "text\n"))
        store.checkpoint()

    assert {path.name: path.stat().st_size for path in ballast.iterdir()} == whole
    assert whole == {f"{number:02d}": reserve.FILE_BYTES for number in range(reserve.FILES)}


def test_the_lock_files_are_all_there_and_empty(small: Small) -> None:
    locks = {path.name: path.stat().st_size for path in (small.private / "locks").iterdir()}

    assert locks == dict.fromkeys(layout.LOCK_FILES, 0)


def test_a_store_of_a_directory_without_the_organization_cannot_be_opened(small: Small) -> None:
    with pytest.raises(FileNotFoundError):
        Layout(small.data_dir, "org_unknown")
    with small.opened() as store:
        assert text_of(store, "a.md") is None


@pytest.mark.parametrize("missing", ["private/log", "private/stage", "private/applied", "content"])
def test_a_layout_of_which_a_part_is_missing_leaves_nothing_open(small: Small, missing: str) -> None:
    (small.top / missing).rename(small.top / "elsewhere")
    before = os.listdir("/proc/self/fd")

    with pytest.raises(FileNotFoundError):
        Layout(small.data_dir, ORGANIZATION)

    assert os.listdir("/proc/self/fd") == before
