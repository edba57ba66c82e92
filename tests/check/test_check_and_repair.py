"""Checking and repairing: damage of every kind is found, and what the log holds comes back."""

import shutil
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from access.models import Folder
from core.errors import StorageUnavailable
from core.locks import FileLock, Rank
from core.types import EntryLocator, Role
from kb.services.browse_entries import browse_entries
from kb.services.check_store import check_store, repair_store
from kb.services.delete_entry import delete_entry
from kb.services.read_entry import read_entry
from kb.services.update_entry import update_entry
from kb.store import stores
from kb.store.repair import StoreInUse
from kb.store.stores import store_of
from tests.world import World

pytestmark = pytest.mark.django_db

DEPLOY = "Payments/Checkout/deployment.md"


@pytest.fixture
def files(world: World, data_dir: Path) -> Path:
    """A small tree that has seen every kind of change; returns the organization's directory."""
    entry = world.entry(DEPLOY, "first\n", title="Deployment")
    update_entry(
        world.system, None, EntryLocator(path=DEPLOY), expected_version=entry.version, content="second\n"
    )
    world.entry("Payments/overview.md", "overview\n")
    gone = world.entry("Payments/gone.md", "gone\n")
    delete_entry(world.system, None, EntryLocator(path=gone.path), expected_version=gone.version)
    world.person("priya", role=Role.READER, on="Payments")
    return data_dir / "orgs" / world.organization_id


def state(world: World) -> list[object]:
    found = browse_entries(world.system, recursive=True, limit=100).items
    return [(entry, world.text_of(entry.path)) for entry in found]


def problems(world: World) -> list[tuple[str, str]]:
    return [(one.place, one.what) for one in check_store(world.organization_id).disagreements]


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(bytes(data))


def test_a_sound_store_agrees_with_itself(world: World, files: Path) -> None:
    report = check_store(world.organization_id)

    assert report.disagreements == []
    assert (report.folders, report.entries) == (3, 2)


def test_changed_missing_and_strange_files_are_found_and_put_right(world: World, files: Path) -> None:
    before = state(world)
    content = files / "content" / "Payments"
    (content / "overview.md").write_text("changed by hand\n")
    (content / "Checkout" / "deployment.md").unlink()
    (content / "stranger.md").write_text("nobody's\n")

    assert [place for place, _ in problems(world)] == [
        "content/Payments/stranger.md",
        "content/Payments/overview.md",
        "content/Payments/Checkout/deployment.md",
    ]
    report = repair_store(world.organization_id)

    assert report.left == []
    assert problems(world) == []
    assert state(world) == before
    kept = {path.name.split(".", 1)[1]: path for path in (files / "private" / "quarantine").iterdir()}
    assert kept["overview.md"].read_text() == "changed by hand\n"
    assert kept["stranger.md"].read_text() == "nobody's\n"


@pytest.mark.parametrize("place", ["", "Payments", "Payments/Checkout"])
@pytest.mark.parametrize("damage", ["flipped", "gone", "emptied", "cut"])
def test_a_damaged_registry_is_never_taken_for_empty_and_comes_back(
    world: World, files: Path, place: str, damage: str
) -> None:
    before = state(world)
    stores.close_all()
    path = files / "content" / place / ".registry.jsonl"
    match damage:
        case "flipped":
            flip(path, path.stat().st_size // 2)
        case "gone":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case "cut":
            data = path.read_bytes()
            path.write_bytes(data[: data[:-1].rfind(b"\n") + 1])

    assert problems(world) != []
    stores.close_all()
    repair_store(world.organization_id)

    assert problems(world) == []
    assert state(world) == before


def test_every_byte_of_a_registry_is_guarded(world: World, files: Path) -> None:
    path = files / "content" / "Payments" / ".registry.jsonl"
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        flip(path, position)
        assert problems(world) != [], f"the flipped byte {position} was not seen"
        path.write_bytes(whole)
    assert problems(world) == []


def test_a_whole_folder_that_is_gone_comes_back(world: World, files: Path) -> None:
    before = state(world)
    stores.close_all()
    shutil.rmtree(files / "content" / "Payments")

    repair_store(world.organization_id)

    assert problems(world) == []
    assert state(world) == before


def test_damage_in_the_log_is_named_and_after_a_repair_writing_goes_on(world: World, files: Path) -> None:
    before = state(world)
    stores.close_all()
    segment = next((files / "private" / "log").iterdir())
    flip(segment, segment.stat().st_size // 2)

    assert any(place.startswith("private/log/") for place, _ in problems(world))
    stores.close_all()
    repair_store(world.organization_id)

    assert state(world) == before
    world.entry("after.md", "written after the repair\n")
    assert world.text_of("after.md") == "written after the repair\n"


def test_a_log_cut_below_its_marks_refuses_writes_until_it_is_repaired(world: World, files: Path) -> None:
    before = state(world)
    stores.close_all()
    segment = next((files / "private" / "log").iterdir())
    segment.write_bytes(segment.read_bytes()[:-10])

    with pytest.raises(StorageUnavailable):
        world.entry("refused.md", "text\n")
    assert (files / "private" / "fault").exists()
    assert list((files / "private" / "quarantine").iterdir()) != []
    stores.close_all()
    repair_store(world.organization_id)

    assert not (files / "private" / "fault").exists()
    assert state(world) == before
    world.entry("after.md", "text\n")
    stores.close_all()
    assert world.text_of("after.md") == "text\n"


@pytest.mark.parametrize("damage", ["cut below its marks", "a link", "a folder"])
def test_where_no_whole_state_can_be_reached_a_check_tells_why(
    world: World, files: Path, damage: str
) -> None:
    stores.close_all()
    segment = next((files / "private" / "log").iterdir())
    match damage:
        case "cut below its marks":
            segment.write_bytes(segment.read_bytes()[:-10])
        case "a link":
            segment.symlink_to(segment.rename(files / "elsewhere.log"))
        case "a folder":
            segment.unlink()
            segment.mkdir()

    found = problems(world)

    assert any(place == f"private/log/{segment.name}" for place, _ in found)
    assert ("content", "no whole state can be reached, so the tree was not compared") in found
    if damage == "cut below its marks":
        assert any(
            place == "private/fault" and "the log is shorter than its mark" in what for place, what in found
        )


def test_what_is_lost_for_good_is_said_and_not_made_up(world: World, files: Path) -> None:
    stores.close_all()
    segment = next((files / "private" / "log").iterdir())
    data = segment.read_bytes()
    place = data.index(b"overview\n")
    flip(segment, place)
    (files / "content" / "Payments" / "overview.md").write_text("something else\n")

    report = repair_store(world.organization_id)

    assert [place for place, _ in report.left] == ["content/Payments/overview.md"]
    with pytest.raises(StorageUnavailable):
        read_entry(world.system, EntryLocator(path="Payments/overview.md"))
    assert world.text_of(DEPLOY) == "second\n"
    entry = next(e for e in browse_entries(world.system, recursive=True).items if e.filename == "overview.md")
    update_entry(
        world.system,
        None,
        EntryLocator(entry_id=entry.entry_id),
        expected_version=entry.version,
        content="written again\n",
    )
    assert world.text_of("Payments/overview.md") == "written again\n"
    assert [p for p, _ in problems(world) if not p.startswith("private/log/")] == []


def test_a_grant_on_a_folder_that_is_not_there_is_found(world: World, files: Path) -> None:
    Folder.objects.create(id="fld_gone", organization_id=world.organization_id, acl_version=1)

    assert problems(world) == [("grants on fld_gone", "there is no such folder")]


def test_repairing_is_refused_while_another_process_has_the_store(world: World, files: Path) -> None:
    other = stores.open_layout(world.organization_id)
    alive = FileLock(other.locks, "alive", Rank.ALIVE, shared=True).acquire(wait_seconds=0)
    alive.keep()
    try:
        with pytest.raises(StoreInUse):
            repair_store(world.organization_id)
    finally:
        alive.drop_kept()
        other.close()


def test_the_command_lists_what_is_wrong_and_ends_with_an_error(
    world: World, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("check_store")
    assert "Everything agrees." in capsys.readouterr().out
    (files / "content" / "Payments" / "overview.md").write_text("changed by hand\n")

    with pytest.raises(CommandError):
        call_command("check_store")
    assert "content/Payments/overview.md: the file is not what its registry says" in capsys.readouterr().out
    call_command("check_store", "--repair")

    assert "Everything agrees." in capsys.readouterr().out
    assert store_of(world.organization_id) is not None
