"""Updating an entry by a diff or by edits: saved whole or not at all, told exactly, and kept nowhere else."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from access.principals import Principal
from core import limits
from core.errors import (
    BrainError,
    Forbidden,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    PatchFailed,
    VersionConflict,
)
from core.types import EntryLocator, MutationRequest, Role
from kb.patching.applying import Offset
from kb.revision import Revised, Revision
from kb.services.read_entry import read_entry
from kb.services.update_entry import Updated, update_entry
from kb.store.stores import store_of
from tests.world import World

pytestmark = pytest.mark.django_db

DEPLOY = "Payments/deployment.md"
STEPS = "".join(f"Step {number} of the deployment.\n" for number in range(1, 31))
FIFTH = "@@ -4,3 +4,4 @@\n Step 4 of the deployment.\n Step 5 of the deployment.\n+Check.\n Step 6 of the deployment.\n"
WITH_CHECK = STEPS.replace("Step 6 of", "Check.\nStep 6 of")
RequestOf = Callable[..., MutationRequest]


def update(world: World, version: str, request: MutationRequest | None = None, **change: Any) -> Updated:
    return update_entry(world.system, request, EntryLocator(path=DEPLOY), expected_version=version, **change)


def test_a_diff_is_saved_and_the_answer_tells_what_landed(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)

    updated = update(world, entry.version, diff=f"--- a/deployment.md\n+++ b/deployment.md\n{FIFTH}")

    assert world.text_of(DEPLOY) == WITH_CHECK
    assert (updated.changed, updated.offsets, updated.diff) == (True, (), None)
    assert updated.previous_content_hash == entry.content_hash
    assert updated.entry == read_entry(world.system, EntryLocator(path=DEPLOY)).entry
    assert updated.entry.total_lines == 31


def test_a_diff_that_was_meant_for_other_lines_tells_its_offset_also_when_it_is_asked_again(
    world: World, request_of: RequestOf
) -> None:
    entry = world.entry(DEPLOY, STEPS)

    first = update(world, entry.version, request_of("r1"), diff=FIFTH.replace("-4,3", "-9,3"))
    second = update(world, entry.version, request_of("r1"), diff=FIFTH.replace("-4,3", "-9,3"))

    assert first.offsets == (Offset(hunk=1, declared_line=9, found_line=4),)
    assert second == first
    assert world.text_of(DEPLOY) == WITH_CHECK


def test_edits_are_saved(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)

    update(world, entry.version, edits=[("Step 5 of", "Step five of"), ("Step 7 of the deployment.\n", "")])

    assert world.text_of(DEPLOY) == STEPS.replace("Step 5 of", "Step five of").replace(
        "Step 7 of the deployment.\n", ""
    )


def test_text_and_metadata_of_one_call_are_one_change(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)
    store = store_of(world.organization_id)
    with store.snapshot() as view:
        before = view.lsn

    updated = update(world, entry.version, diff=FIFTH, title="How to deploy", tags=["deploy"])

    with store.snapshot() as view:
        assert view.lsn == before + 1
    assert (updated.entry.title, updated.entry.tags, updated.entry.total_lines) == (
        "How to deploy",
        ("deploy",),
        31,
    )


def test_line_endings_of_a_diff_and_of_edits_are_those_of_the_entry(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)

    updated = update(world, entry.version, diff=FIFTH.replace("\n", "\r\n"))
    update(world, updated.entry.version, edits=[("Check.\r\nStep 6", "Check it.\rStep 6")])

    assert world.text_of(DEPLOY) == WITH_CHECK.replace("Check.", "Check it.")


def test_a_change_that_gives_the_same_text_keeps_the_version(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)

    updated = update(
        world, entry.version, diff="@@ -1 +1 @@\n-Step 1 of the deployment.\n+Step 1 of the deployment.\n"
    )

    assert not updated.changed
    assert updated.entry == entry


def test_a_diff_may_empty_an_entry_and_fill_it_again(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")

    emptied = update(world, entry.version, diff="@@ -1 +0,0 @@\n-one\n")
    assert world.text_of(DEPLOY) == ""
    update(world, emptied.entry.version, diff="@@ -0,0 +1 @@\n+two\n")

    assert world.text_of(DEPLOY) == "two\n"


def test_one_hunk_that_fails_leaves_everything_as_it_was_and_the_request_id_free(
    world: World, request_of: RequestOf
) -> None:
    entry = world.entry(DEPLOY, STEPS)
    before = world.files()

    with pytest.raises(PatchFailed) as refused:
        update(
            world,
            entry.version,
            request_of("r1", "wrong"),
            diff=f"{FIFTH}@@ -20 +21 @@\n-Step twenty\n+Step 20\n",
            title="New",
        )

    assert world.files() == before
    assert [failure["hunk"] for failure in refused.value.details["failures"]] == [2]
    assert refused.value.details["current_version"] == entry.version
    assert update(world, entry.version, request_of("r1", "right"), diff=FIFTH).changed


def test_what_a_refusal_quotes_is_kept_nowhere(
    world: World, request_of: RequestOf, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    entry = world.entry(DEPLOY, "Deploy with the Quokka key.\nrest\n")
    before = world.files()

    for change in (
        {"diff": "@@ -1 +1,2 @@\n-Deploy with the Wombat key.\n+new\n"},
        {"edits": [("the Wombat key", "no key")]},
    ):
        with pytest.raises(PatchFailed) as refused:
            update(world, entry.version, request_of("r1"), **change)
        assert "Quokka" in str(refused.value.details)

    assert world.files() == before
    written = caplog.text + "".join(capfd.readouterr())
    assert "Quokka" not in written
    assert "Wombat" not in written


@pytest.mark.parametrize(
    ("change", "refusal", "field"),
    [
        ({"diff": FIFTH, "content": STEPS}, InvalidArgument, "diff"),
        ({"content": STEPS, "edits": [("a", "b")]}, InvalidArgument, "edits"),
        ({"diff": FIFTH, "edits": [("a", "b")]}, InvalidArgument, "edits"),
        ({}, InvalidArgument, "content"),
        ({"diff": ""}, InvalidArgument, "diff"),
        ({"diff": " \n\n"}, InvalidArgument, "diff"),
        ({"diff": FIFTH.replace("Check", "Ch\x0cck")}, InvalidArgument, "diff"),
        ({"diff": FIFTH.replace("Check", "Ch\x85ck")}, InvalidArgument, "diff"),
        ({"diff": FIFTH.replace("Check", "Ch\ud800ck")}, InvalidArgument, "diff"),
        ({"edits": []}, InvalidArgument, "edits"),
        ({"edits": [("", "b")]}, InvalidArgument, "edits.old_text"),
        ({"edits": [("a", "b"), ("c", "c")]}, InvalidArgument, "edits.new_text"),
        ({"edits": [("a\r\n", "a\n")]}, InvalidArgument, "edits.new_text"),
        ({"edits": [("a", "b\x00")]}, InvalidArgument, "edits.new_text"),
        ({"edits": [("\ud800", "b")]}, InvalidArgument, "edits.old_text"),
        ({"edits": [(f"Step {number}", "x") for number in range(101)]}, LimitExceeded, "edits"),
        ({"edits": [("a", "é" * limits.MIB)]}, LimitExceeded, "edits"),
        ({"edits": [("a", "x" * limits.MIB), ("b", "x" * limits.MIB)]}, LimitExceeded, "edits"),
        ({"diff": "x" * (limits.DIFF_MAX_BYTES + 1)}, LimitExceeded, "diff"),
        ({"diff": "é" * limits.MIB + "x"}, LimitExceeded, "diff"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_by_itself_is_refused_before_anything_is_looked_up(
    world: World, change: dict[str, Any], refusal: type[BrainError], field: str
) -> None:
    with pytest.raises(refusal) as refused:
        update_entry(
            world.system, None, EntryLocator(path="No/such entry.md"), expected_version="v0", **change
        )

    assert refused.value.details["field"] == field


def test_the_largest_diff_and_the_most_edits_are_taken(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)
    head = "@@ -1 +1,2 @@\n Step 1 of the deployment.\n+"
    diff = head + "x" * (limits.DIFF_MAX_BYTES - len(head) - 1) + "\n"
    assert len(diff) == limits.DIFF_MAX_BYTES

    updated = update(world, entry.version, diff=diff)
    lines = "".join(f"Line {number}.\n" for number in range(limits.EDITS_MAX))
    updated = update(world, updated.entry.version, content=lines)
    edits = [(f"Line {number}.", f"{number}") for number in range(limits.EDITS_MAX)]
    update(world, updated.entry.version, edits=edits)

    assert world.text_of(DEPLOY) == "".join(f"{number}\n" for number in range(limits.EDITS_MAX))


def test_a_result_over_the_limit_of_content_is_refused(world: World) -> None:
    content = "a\n" + "x" * (limits.CONTENT_MAX_BYTES - 4) + "\n"
    entry = world.entry(DEPLOY, content)

    updated = update(world, entry.version, diff="@@ -1 +1,2 @@\n a\n+\n")
    assert updated.entry.size_bytes == limits.CONTENT_MAX_BYTES
    for change in ({"diff": "@@ -1 +1,2 @@\n a\n+\n"}, {"edits": [("a", "ab")]}):
        with pytest.raises(LimitExceeded) as refused:
            update(world, updated.entry.version, **change)
        assert refused.value.details == {
            "field": "content",
            "limit": limits.CONTENT_MAX_BYTES,
            "unit": "bytes",
        }


def test_a_reader_is_told_nothing_of_how_a_diff_fits(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)
    priya = world.person("priya", role=Role.READER, on="Payments")
    mallory = world.person("mallory")

    def refusal(caller: Principal, path: str, version: str) -> BrainError:
        with pytest.raises(BrainError) as refused:
            update_entry(caller, None, EntryLocator(path=path), expected_version=version, diff="nonsense")
        return refused.value

    assert type(refusal(priya, DEPLOY, entry.version)) is Forbidden
    assert type(refusal(priya, DEPLOY, "v0")) is Forbidden
    assert refusal(mallory, DEPLOY, entry.version).as_dict() == NotFound().as_dict()
    assert refusal(mallory, "Payments/none.md", "v0").as_dict() == NotFound().as_dict()


def test_the_version_is_compared_before_the_diff_is(world: World) -> None:
    world.entry(DEPLOY, STEPS)

    with pytest.raises(VersionConflict):
        update(world, "v0", diff="nonsense")


def test_a_diff_that_fails_never_waits_for_the_writer_lock(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with store_of(world.organization_id).writing():
            inside.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    try:
        with pytest.raises(PatchFailed):
            update(world, entry.version, diff="@@ -1 +1 @@\n-x\n+y\n")
        assert update(world, entry.version, diff=FIFTH, dry_run=True).changed
    finally:
        leave.set()
        holder.join()


def test_a_change_made_while_a_diff_is_worked_out_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = world.entry(DEPLOY, STEPS)
    revise = Revision.revise

    def revise_late(revision: Revision, old: str, *, path: str) -> Revised:
        monkeypatch.setattr(Revision, "revise", revise)
        update(world, entry.version, content="somebody else's\n")
        return revise(revision, old, path=path)

    monkeypatch.setattr(Revision, "revise", revise_late)
    with pytest.raises(VersionConflict):
        update(world, entry.version, diff=FIFTH)

    assert world.text_of(DEPLOY) == "somebody else's\n"


def test_rights_lost_while_a_diff_is_worked_out_are_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = world.entry(DEPLOY, STEPS)
    ada = world.person("ada", role=Role.EDITOR, on="Payments")
    revise = Revision.revise

    def revise_late(revision: Revision, old: str, *, path: str) -> Revised:
        world.revoke("ada", "Payments")
        return revise(revision, old, path=path)

    monkeypatch.setattr(Revision, "revise", revise_late)
    with pytest.raises(NotFound):
        update_entry(ada, None, EntryLocator(path=DEPLOY), expected_version=entry.version, diff=FIFTH)

    assert world.text_of(DEPLOY) == STEPS


def test_a_dry_run_tells_the_diff_and_changes_nothing(world: World, request_of: RequestOf) -> None:
    entry = world.entry(DEPLOY, STEPS)
    before = world.files()

    told = update(
        world, entry.version, request_of("r1"), edits=[("Step 6 of", "Check.\nStep 6 of")], dry_run=True
    )

    assert world.files() == before
    assert (told.changed, told.entry, told.previous_content_hash) == (True, entry, entry.content_hash)
    assert not told.diff_truncated
    # The request id is still free, and the diff that was told does what was told.
    updated = update(world, entry.version, request_of("r1", "others"), diff=told.diff)
    assert world.text_of(DEPLOY) == WITH_CHECK
    assert updated.changed


def test_a_dry_run_tells_offsets_metadata_and_that_nothing_would_change(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)

    moved = update(world, entry.version, diff=FIFTH.replace("-4,3", "-1,3"), dry_run=True)
    assert [offset.found_line for offset in moved.offsets] == [4]
    titled = update(world, entry.version, title="New", dry_run=True)
    assert (titled.changed, titled.diff, titled.entry.title) == (True, "", "deployment")
    same = update(world, entry.version, content=STEPS, dry_run=True)
    assert (same.changed, same.diff) == (False, "")


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"diff": "@@ -1 +1 @@\n-x\n+y\n"}, PatchFailed),
        ({"edits": [("x" * 40, "y")]}, PatchFailed),
        ({"content": "a\x00"}, InvalidArgument),
        ({"title": ""}, InvalidArgument),
        ({}, InvalidArgument),
    ],
    ids=str,
)
def test_a_dry_run_refuses_what_the_real_call_would_refuse(
    world: World, change: dict[str, Any], refusal: type[BrainError]
) -> None:
    entry = world.entry(DEPLOY, STEPS)

    refusals = []
    for dry_run in (True, False):
        with pytest.raises(refusal) as refused:
            update(world, entry.version, dry_run=dry_run, **change)
        refusals.append(refused.value.as_dict())

    assert refusals[0] == refusals[1]


def test_a_dry_run_asks_for_the_same_rights_and_version(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)
    priya = world.person("priya", role=Role.READER, on="Payments")

    with pytest.raises(Forbidden):
        update_entry(
            priya,
            None,
            EntryLocator(path=DEPLOY),
            expected_version=entry.version,
            diff=FIFTH,
            dry_run=True,
        )
    with pytest.raises(VersionConflict):
        update(world, "v0", diff=FIFTH, dry_run=True)


def test_the_diff_of_a_dry_run_is_no_longer_than_a_diff_may_be(world: World) -> None:
    entry = world.entry(DEPLOY, STEPS)

    told = update(world, entry.version, content="x\n" * (limits.DIFF_MAX_BYTES // 2), dry_run=True)

    assert (told.diff, told.diff_truncated, told.changed) == ("", True, True)
