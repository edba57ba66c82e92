"""A version conflict tells what changed since, as far as it is kept, to whoever may write the entry; then one call is
enough to recover."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

from access.principals import Principal
from core import limits
from core.errors import BrainError, Forbidden, NotFound, VersionConflict
from core.types import EntryLocator, FolderLocator, Role
from kb import conflicts
from kb.history import History
from kb.patching.applying import apply_diff
from kb.services.create_entry import create_entry
from kb.services.delete_entry import delete_entry
from kb.services.update_entry import Updated, update_entry
from kb.store import content_store, fold, past, record
from kb.store.layout import segment_name
from kb.store.past import LookedFarEnough
from kb.store.record import Put
from kb.store.stores import store_of
from tests.world import World

pytestmark = pytest.mark.django_db

DEPLOY = "Payments/deployment.md"
STEPS = "".join(f"Step {number}.\n" for number in range(1, 21))
HEAD = "--- a/deployment.md\n+++ b/deployment.md\n"


def update(world: World, version: str, **change: Any) -> Updated:
    return update_entry(world.system, None, EntryLocator(path=DEPLOY), expected_version=version, **change)


def conflict(
    world: World, version: str, *, caller: Principal | None = None, path: str = DEPLOY
) -> dict[str, Any]:
    with pytest.raises(VersionConflict) as refused:
        update_entry(
            caller or world.system, None, EntryLocator(path=path), expected_version=version, content="mine\n"
        )
    return refused.value.details


def log_of(world: World) -> Any:
    return settings.DATA_DIR / "orgs" / world.organization_id / "private/log"


def test_the_loser_of_two_writers_recovers_in_one_call(world: World) -> None:
    read = world.entry(DEPLOY, STEPS)
    first = update(world, read.version, edits=[("Step 3.", "Step three.")])

    told = conflict(world, read.version)

    assert told["diff_since"] == (
        f"{HEAD}@@ -1,6 +1,6 @@\n Step 1.\n Step 2.\n-Step 3.\n+Step three.\n Step 4.\n Step 5.\n Step 6.\n"
    )
    assert (told["current_version"], told["content_hash"]) == (first.entry.version, first.entry.content_hash)
    # The loser knows the text it read, so it knows the text that is there.
    known = apply_diff(STEPS, told["diff_since"], path=DEPLOY).text
    merged = known.replace("Step 9.\n", "Step 9.\nCheck.\n")
    update(world, told["current_version"], content=merged)
    assert world.text_of(DEPLOY) == STEPS.replace("Step 3.", "Step three.").replace(
        "Step 9.\n", "Step 9.\nCheck.\n"
    )


def test_several_changes_are_told_as_one_from_each_version(world: World) -> None:
    entry = world.entry(DEPLOY, "0\n")
    versions, texts = [entry.version], ["0\n"]
    for number in range(1, 6):
        texts.append(f"{number}\n")
        versions.append(update(world, versions[-1], content=texts[-1]).entry.version)

    for version, text in zip(versions[:-1], texts[:-1], strict=True):
        assert apply_diff(text, conflict(world, version)["diff_since"], path=DEPLOY).text == "5\n"


def test_a_change_of_metadata_alone_is_told_as_such(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)
    update(world, entry.version, title="New")

    told = conflict(world, entry.version)

    assert (told["diff_since"], told["metadata_changed"]) == ("", True)


def test_text_and_metadata_that_changed_are_both_told(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    titled = update(world, entry.version, title="New")
    update(world, titled.entry.version, content="two\n")

    assert conflict(world, entry.version)["metadata_changed"] is True
    assert "metadata_changed" not in conflict(world, titled.entry.version)
    for version in (entry.version, titled.entry.version):
        assert conflict(world, version)["diff_since"].endswith("-one\n+two\n")


def test_a_text_that_changed_and_changed_back_has_an_empty_diff(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    other = update(world, entry.version, content="two\n")
    update(world, other.entry.version, content="one\n")

    told = conflict(world, entry.version)

    assert told["diff_since"] == ""
    assert "metadata_changed" not in told


def test_a_deletion_of_an_old_version_is_told_the_same(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    update(world, entry.version, content="two\n")

    with pytest.raises(VersionConflict) as refused:
        delete_entry(world.system, None, EntryLocator(path=DEPLOY), expected_version=entry.version)

    assert refused.value.details == conflict(world, entry.version)
    assert world.text_of(DEPLOY) == "two\n"


def test_a_version_that_never_was_or_is_of_another_entry_tells_nothing_more(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    other = world.entry("Payments/other.md", "other\n")
    update(world, entry.version, content="two\n")

    for version in ("v0", other.version):
        assert conflict(world, version).keys() == {"current_version", "content_hash"}


def test_a_version_of_an_earlier_entry_of_the_same_path_tells_nothing_more(world: World) -> None:
    gone = world.entry(DEPLOY, "one\n")
    delete_entry(world.system, None, EntryLocator(path=DEPLOY), expected_version=gone.version)
    world.entry(DEPLOY, "another one\n")

    assert conflict(world, gone.version).keys() == {"current_version", "content_hash"}


def test_a_diff_that_is_too_long_is_cut_at_a_hunk_and_says_so(world: World) -> None:
    lines = [f"Line {number}" for number in range(8_000)]
    entry = world.entry(DEPLOY, "\n".join(lines))
    changed = [line + "!" if number % 20 == 0 else line for number, line in enumerate(lines)]
    update(world, entry.version, content="\n".join(changed))
    rewritten = world.entry("Payments/rewritten.md", "x\n" * 20_000)
    update_entry(
        world.system,
        None,
        EntryLocator(path="Payments/rewritten.md"),
        expected_version=rewritten.version,
        content="y\n" * 20_000,
    )

    told = conflict(world, entry.version)
    assert told["diff_truncated"] is True
    assert limits.DIFF_SINCE_MAX_BYTES // 2 < len(told["diff_since"].encode()) <= limits.DIFF_SINCE_MAX_BYTES
    apply_diff("\n".join(lines), told["diff_since"], path=DEPLOY)
    told = conflict(world, rewritten.version, path="Payments/rewritten.md")
    assert told["diff_truncated"] is True
    assert "diff_since" not in told


def test_only_who_may_write_the_entry_is_told(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    ada = world.person("ada", role=Role.EDITOR, on="Payments")
    priya = world.person("priya", role=Role.READER, on="Payments")
    update(world, entry.version, content="two\n")

    assert "diff_since" in conflict(world, entry.version, caller=ada)
    locator = EntryLocator(path=DEPLOY)
    with pytest.raises(Forbidden):
        update_entry(priya, None, locator, expected_version=entry.version, content="mine\n")
    world.revoke("ada", "Payments")
    with pytest.raises(NotFound):
        update_entry(ada, None, locator, expected_version=entry.version, content="mine\n")


@pytest.mark.parametrize(("left", "refusal"), [(None, NotFound), (Role.READER, Forbidden)])
def test_rights_lost_between_the_conflict_and_its_explanation_count(
    world: World, monkeypatch: pytest.MonkeyPatch, left: Role | None, refusal: type[BrainError]
) -> None:
    entry = world.entry(DEPLOY, "one\n")
    ada = world.person("ada", role=Role.EDITOR, on="Payments")
    update(world, entry.version, content="two\n")
    explained = conflicts._explained

    def explain_late(*arguments: Any) -> VersionConflict:
        world.revoke("ada", "Payments")
        if left is not None:
            world.grant("ada", left, "Payments")
        return explained(*arguments)

    monkeypatch.setattr(conflicts, "_explained", explain_late)
    with pytest.raises(refusal):
        update_entry(ada, None, EntryLocator(path=DEPLOY), expected_version=entry.version, content="mine\n")


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record begins a segment of its own."""
    monkeypatch.setattr(content_store, "SEGMENT_BYTES", 1)


@pytest.mark.usefixtures("small_segments")
def test_old_versions_are_found_across_segments(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    titled = update(world, entry.version, title="New")
    world.entry("Payments/other.md", "other\n")
    update(world, titled.entry.version, content="two\n")

    # The text of the second version is in the record of the first.
    for version in (entry.version, titled.entry.version):
        assert conflict(world, version)["diff_since"].endswith("-one\n+two\n")


@pytest.mark.usefixtures("small_segments")
def test_a_version_whose_segment_was_let_go_is_not_kept(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    titled = update(world, entry.version, title="New")
    update(world, titled.entry.version, content="two\n")
    store = store_of(world.organization_id)
    store.checkpoint()
    with store.snapshot() as view:
        registry = view.folder_at(["Payments"])
        assert registry is not None
        created = registry.entries[entry.entry_id].existence_seq
    for first in range(1, created + 1):
        (log_of(world) / segment_name(first)).unlink()

    assert conflict(world, entry.version).keys() == {"current_version", "content_hash"}
    # Of the second version the metadata are kept, its text is not.
    assert conflict(world, titled.entry.version).keys() == {"current_version", "content_hash"}


def test_a_purged_text_is_not_told(world: World) -> None:
    entry = world.entry(DEPLOY, "secret\n")
    update(world, entry.version, content="public\n")
    path = ("content", "Payments", "deployment.md")
    (_, created), *_ = [
        found
        for found in _records(world)
        if any(isinstance(operation, Put) and operation.path == path for operation in found[1].operations)
    ]
    (log,) = log_of(world).iterdir()
    data = log.read_bytes()
    log.write_bytes(
        data[: created.start] + record.purge(data[created.start : created.end], path) + data[created.end :]
    )

    told = conflict(world, entry.version)

    assert told.keys() == {"current_version", "content_hash"}
    assert "secret" not in str(told)


def test_a_damaged_log_does_not_hide_the_conflict(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    update(world, entry.version, content="two\n")
    (log,) = log_of(world).iterdir()
    data = bytearray(log.read_bytes())
    data[:8] = b"garbage!"
    log.write_bytes(data)

    assert conflict(world, entry.version).keys() == {"current_version", "content_hash"}


def test_a_damaged_entry_does_not_hide_the_conflict(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    update(world, entry.version, content="two\n")
    (settings.DATA_DIR / "orgs" / world.organization_id / "content" / DEPLOY).write_bytes(b"three\n")

    assert conflict(world, entry.version).keys() == {"current_version", "content_hash"}


def test_looking_back_reads_no_more_than_it_may(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = world.entry(DEPLOY, "one\n")
    update(world, entry.version, content="two\n")
    monkeypatch.setattr(limits, "HISTORY_SCAN_BYTES", 100)

    assert conflict(world, entry.version).keys() == {"current_version", "content_hash"}


@pytest.mark.usefixtures("small_segments")
def test_looking_back_does_not_read_what_other_entries_hold(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "WINDOW_BYTES", 1_024)
    entry = world.entry(DEPLOY, "one\n")
    for number in range(10):
        world.entry(f"Payments/large {number}.md", "x" * limits.MIB)
    update(world, entry.version, content="two\n")
    monkeypatch.setattr(limits, "HISTORY_SCAN_BYTES", 100_000)

    assert conflict(world, entry.version)["diff_since"].endswith("-one\n+two\n")


def test_history_lists_the_versions_newest_first_with_who_changed_what(world: World) -> None:
    world.folder("Payments")
    ada = world.person("ada", role=Role.EDITOR, on="Payments")
    entry = create_entry(
        ada,
        None,
        FolderLocator(folder_path="Payments"),
        filename="deployment.md",
        type="note",
        title="Old",
        content="one\n",
    ).entry
    world.entry("Payments/other.md", "other\n")
    titled = update(world, entry.version, title="New", reason="A better name.")
    update(world, titled.entry.version, content="two\n")

    look = history_of(world)
    versions = list(look.versions())

    assert [(version.action, version.reason) for version in versions] == [
        ("update", None),
        ("update", "A better name."),
        ("create", None),
    ]
    assert [(version.line.title, version.line.updated_by.name) for version in versions] == [
        ("New", "System"),
        ("New", "System"),
        ("Old", "ada"),
    ]
    assert [look.text_of(version.line) for version in versions] == ["two\n", "one\n", "one\n"]


@pytest.mark.usefixtures("small_segments")
def test_history_does_not_look_behind_the_entrys_creation(world: World) -> None:
    for number in range(20):
        world.entry(f"Payments/{number}.md", "x" * 1_000)
    world.entry(DEPLOY, "one\n")

    assert len(list(history_of(world, bytes_max=8_000).versions())) == 1


def test_history_does_not_look_behind_the_state_it_was_asked_for(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    look = history_of(world)

    update(world, entry.version, content="two\n")

    assert [version.action for version in look.versions()] == ["create"]


def test_history_says_when_it_was_not_allowed_to_look_far_enough(world: World) -> None:
    world.entry(DEPLOY, "one\n")

    with pytest.raises(LookedFarEnough):
        list(history_of(world, bytes_max=10).versions())


def history_of(world: World, *, bytes_max: int = limits.HISTORY_SCAN_BYTES) -> History:
    store = store_of(world.organization_id)
    with store.snapshot() as view:
        registry = view.folder_at(["Payments"])
        assert registry is not None
        line = registry.entry_named("deployment.md")
        assert line is not None
        return History(store.layout, view.mark, registry.folder, line, bytes_max=bytes_max)


def _records(world: World) -> Iterator[tuple[int, record.Record]]:
    for found in fold.walk_log(store_of(world.organization_id).layout):
        assert isinstance(found, tuple)
        yield found
