"""Creating, updating and deleting: what is saved, what is refused, and that a request has one effect."""

import threading
from collections.abc import Callable

import pytest

from core import limits
from core.errors import (
    BrainError,
    Forbidden,
    InvalidArgument,
    LimitExceeded,
    NameConflict,
    NotFound,
    RequestIdReuse,
    RequestInProgress,
    VersionConflict,
)
from core.types import EntryLocator, FolderLocator, MutationRequest, Role
from kb.services.browse_entries import browse_entries
from kb.services.create_entry import create_entry
from kb.services.create_folder import create_folder
from kb.services.delete_entry import delete_entry
from kb.services.read_entry import read_entry
from kb.services.update_entry import update_entry
from kb.store.stores import store_of
from tests.world import World

pytestmark = pytest.mark.django_db

DEPLOY = "Payments/deployment.md"
RequestOf = Callable[..., MutationRequest]


def test_an_editor_creates_an_entry_that_everybody_with_access_reads_at_once(world: World) -> None:
    world.folder("Payments")
    ada = world.person("ada", role=Role.EDITOR, on="Payments")
    priya = world.person("priya", role=Role.READER, on="Payments")

    created = create_entry(
        ada,
        None,
        FolderLocator(folder_path="Payments"),
        filename="deployment.md",
        type="skill",
        title="Deployment",
        content="first\r\nsecond\rthird",
        description="How to",
        tags=["deploy", "checkout"],
    ).entry

    reading = read_entry(priya, EntryLocator(path=DEPLOY))
    assert reading.content == "first\nsecond\nthird"
    assert reading.entry == created
    assert (created.created_by.name, created.tags, created.total_lines) == ("ada", ("deploy", "checkout"), 3)


def test_a_taken_name_is_a_conflict_and_changes_nothing(world: World, request_of: RequestOf) -> None:
    world.entry("Notes/daily.md", "a day of notes\n")
    before = world.files()

    for filename in ("daily.md", "Daily.md"):
        with pytest.raises(NameConflict):
            create_entry(
                world.system,
                request_of(f"other-{filename[0]}"),
                FolderLocator(folder_path="Notes"),
                filename=filename,
                type="note",
                title="Other",
                content="other\n",
            )

    assert world.files() == before


def test_a_folder_and_an_entry_of_the_same_stem_stand_side_by_side(world: World) -> None:
    world.entry("alpha.md", "entry\n")

    create_folder(world.system, None, FolderLocator(folder_path=""), name="alpha")

    with pytest.raises(NameConflict):
        create_folder(world.system, None, FolderLocator(folder_path=""), name="ALPHA")
    assert world.text_of("alpha.md") == "entry\n"


def test_second_writer_of_the_same_version_loses(world: World) -> None:
    ada = world.person("ada", role=Role.EDITOR)
    entry = world.entry(DEPLOY, "old\n")
    update_entry(ada, None, EntryLocator(path=DEPLOY), expected_version=entry.version, content="first\n")

    with pytest.raises(VersionConflict) as refused:
        update_entry(ada, None, EntryLocator(path=DEPLOY), expected_version=entry.version, content="second\n")

    current = read_entry(ada, EntryLocator(path=DEPLOY)).entry
    assert world.text_of(DEPLOY) == "first\n"
    assert refused.value.details == {
        "current_version": current.version,
        "content_hash": current.content_hash,
        "diff_since": "--- a/deployment.md\n+++ b/deployment.md\n@@ -1,1 +1,1 @@\n-old\n+first\n",
    }


def test_metadata_alone_changes_the_version_and_no_byte_of_the_text(world: World) -> None:
    entry = world.entry(DEPLOY, "text\n", title="Old")

    updated = update_entry(
        world.system,
        None,
        EntryLocator(entry_id=entry.entry_id),
        expected_version=entry.version,
        title="New",
        tags=["a"],
        description="What it is",
        type="fact",
    )

    assert updated.changed
    assert updated.entry.version != entry.version
    assert updated.entry.content_hash == entry.content_hash == updated.previous_content_hash
    assert (updated.entry.title, updated.entry.tags, updated.entry.type) == ("New", ("a",), "fact")


def test_an_update_that_changes_nothing_keeps_the_version(world: World, request_of: RequestOf) -> None:
    entry = world.entry(DEPLOY, "text\n", title="Same")

    updated = update_entry(
        world.system,
        request_of("again"),
        EntryLocator(path=DEPLOY),
        expected_version=entry.version,
        content="text\r\n",
        title="Same",
    )

    assert not updated.changed
    assert updated.entry == entry


def test_a_version_never_comes_back_with_the_text_it_stood_for(world: World) -> None:
    entry = world.entry(DEPLOY, "one\n")
    locator = EntryLocator(path=DEPLOY)
    versions = [entry.version]
    for text in ("two\n", "one\n", "two\n"):
        versions.append(
            update_entry(
                world.system, None, locator, expected_version=versions[-1], content=text
            ).entry.version
        )

    assert len(set(versions)) == len(versions)


def test_a_deleted_entry_is_gone_from_all_reading_and_its_path_is_free(world: World) -> None:
    entry = world.entry(DEPLOY, "text\n")

    deleted = delete_entry(world.system, None, EntryLocator(path=DEPLOY), expected_version=entry.version)

    assert deleted.path == DEPLOY
    for locator in (EntryLocator(path=DEPLOY), EntryLocator(entry_id=entry.entry_id)):
        with pytest.raises(NotFound):
            read_entry(world.system, locator)
    assert browse_entries(world.system, recursive=True).items == []
    again = world.entry(DEPLOY, "new\n")
    assert again.entry_id != entry.entry_id
    assert world.text_of(DEPLOY) == "new\n"


@pytest.mark.parametrize("change", ["create", "update", "delete", "create_folder"])
def test_a_repeated_request_gets_the_first_answer_and_has_no_second_effect(
    world: World, request_of: RequestOf, change: str
) -> None:
    entry = world.entry(DEPLOY, "text\n")
    calls: dict[str, Callable[[], object]] = {
        "create": lambda: create_entry(
            world.system,
            request_of("r1"),
            FolderLocator(folder_path="Payments"),
            filename="new.md",
            type="note",
            title="New",
            content="new\n",
        ),
        "update": lambda: update_entry(
            world.system,
            request_of("r1"),
            EntryLocator(path=DEPLOY),
            expected_version=entry.version,
            content="new\n",
        ),
        "delete": lambda: delete_entry(
            world.system, request_of("r1"), EntryLocator(path=DEPLOY), expected_version=entry.version
        ),
        "create_folder": lambda: create_folder(
            world.system, request_of("r1"), FolderLocator(folder_path="Payments"), name="Checkout"
        ),
    }
    first = calls[change]()
    after = world.files()

    second = calls[change]()

    assert second == first
    assert world.files() == after


def test_a_request_id_with_other_arguments_is_refused(world: World, request_of: RequestOf) -> None:
    create_folder(world.system, request_of("r1", "create A"), FolderLocator(folder_path=""), name="A")
    before = world.files()

    with pytest.raises(RequestIdReuse):
        create_folder(world.system, request_of("r1", "create B"), FolderLocator(folder_path=""), name="B")

    assert world.files() == before


def test_a_refused_call_stores_no_outcome_so_the_id_may_carry_the_corrected_call(
    world: World, request_of: RequestOf
) -> None:
    entry = world.entry(DEPLOY, "text\n")
    with pytest.raises(VersionConflict):
        update_entry(
            world.system,
            request_of("r1", "wrong"),
            EntryLocator(path=DEPLOY),
            expected_version="v0",
            content="new\n",
        )

    updated = update_entry(
        world.system,
        request_of("r1", "right"),
        EntryLocator(path=DEPLOY),
        expected_version=entry.version,
        content="new\n",
    )

    assert updated.changed


def test_a_stored_outcome_is_told_only_to_who_may_still_make_the_call(
    world: World, request_of: RequestOf
) -> None:
    world.folder("Payments")
    ada = world.person("ada", role=Role.EDITOR, on="Payments")
    parent = FolderLocator(folder_path="Payments")

    def call() -> object:
        return create_folder(ada, request_of("r1"), parent, name="Checkout")

    call()
    world.grant("ada", Role.READER, "Payments")
    with pytest.raises(Forbidden):
        call()
    world.revoke("ada", "Payments")
    with pytest.raises(NotFound):
        call()


def test_a_request_that_still_runs_is_said_to_be_in_progress(world: World, request_of: RequestOf) -> None:
    request = request_of("r1")
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with store_of(world.organization_id).claim(request):
            inside.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    try:
        with pytest.raises(RequestInProgress) as refused:
            create_folder(world.system, request, FolderLocator(folder_path=""), name="A")
    finally:
        leave.set()
        holder.join()

    assert (refused.value.retryable, refused.value.retry_after_seconds) == (True, 1)
    assert create_folder(world.system, request, FolderLocator(folder_path=""), name="A").folder.path == "A"


@pytest.mark.parametrize(
    ("facts", "refusal"),
    [
        ({"filename": "a.txt"}, InvalidArgument),
        ({"filename": "CON.md"}, InvalidArgument),
        ({"filename": "../a.md"}, InvalidArgument),
        ({"filename": "a" * 65 + ".md"}, LimitExceeded),
        ({"type": "skills"}, InvalidArgument),
        ({"title": ""}, InvalidArgument),
        ({"title": "a\nb"}, InvalidArgument),
        ({"title": "a" * (limits.TITLE_MAX_CHARACTERS + 1)}, LimitExceeded),
        ({"description": "a" * (limits.DESCRIPTION_MAX_CHARACTERS + 1)}, LimitExceeded),
        ({"tags": ["a", "a"]}, InvalidArgument),
        ({"tags": [" "]}, InvalidArgument),
        ({"tags": ["a" * (limits.TAG_MAX_CHARACTERS + 1)]}, LimitExceeded),
        ({"tags": [str(number) for number in range(limits.TAGS_MAX + 1)]}, LimitExceeded),
        ({"content": "a\x00b"}, InvalidArgument),
        ({"content": "a\x0cb"}, InvalidArgument),
        ({"content": "\ud800"}, InvalidArgument),
        ({"content": "a" * (limits.CONTENT_MAX_BYTES + 1)}, LimitExceeded),
        ({"content": "é" * (limits.CONTENT_MAX_BYTES // 2 + 1)}, LimitExceeded),
    ],
    ids=repr,
)
def test_bad_input_is_refused_and_changes_nothing(
    world: World, request_of: RequestOf, facts: dict[str, object], refusal: type[BrainError]
) -> None:
    good: dict[str, object] = {"filename": "a.md", "type": "note", "title": "A", "content": "a\n"}
    before = world.files()

    with pytest.raises(refusal):
        create_entry(
            world.system,
            request_of("r1"),
            FolderLocator(folder_path=""),
            **(good | facts),  # type: ignore[arg-type]
        )

    assert world.files() == before


def test_the_largest_content_is_accepted(world: World) -> None:
    entry = world.entry("big.md", "é" * (limits.CONTENT_MAX_BYTES // 2))

    assert entry.size_bytes == limits.CONTENT_MAX_BYTES


def test_a_reader_may_not_change_what_they_can_read(world: World) -> None:
    entry = world.entry(DEPLOY, "text\n")
    priya = world.person("priya", role=Role.READER, on="Payments")
    before = world.files()

    for call in (
        lambda: create_folder(priya, None, FolderLocator(folder_path="Payments"), name="A"),
        lambda: update_entry(
            priya, None, EntryLocator(path=DEPLOY), expected_version=entry.version, content="x"
        ),
        lambda: delete_entry(priya, None, EntryLocator(path=DEPLOY), expected_version=entry.version),
    ):
        with pytest.raises(Forbidden):
            call()

    assert world.files() == before


def test_a_path_may_not_grow_beyond_its_limit(world: World) -> None:
    folder = world.folder("/".join(["a" * 63] * 15))
    name = "b" * (limits.PATH_MAX_BYTES - len(folder.path) - 1)

    created = create_folder(world.system, None, FolderLocator(folder_id=folder.id), name=name[:64]).folder

    assert len(created.path) <= limits.PATH_MAX_BYTES
    with pytest.raises(LimitExceeded):
        create_folder(world.system, None, FolderLocator(folder_id=created.folder_id), name="c")
