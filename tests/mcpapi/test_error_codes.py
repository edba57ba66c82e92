"""Each error code that today's actions can give, got through MCP, with its details and what it says about retrying."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from access import authorizer, writer
from core import errors, ids, limits, locks
from core.types import SYSTEM_ACTOR, EntryLocator, MutationRequest, Role
from kb.locate import find_entry
from kb.registry import tombstone_of
from kb.store.record import Subject
from kb.store.stores import store_of
from mcpapi.tools import browse_knowledgebase
from tests.mcpapi.agent import Agent
from tests.world import World

CODES = {
    "FORBIDDEN",
    "INTERNAL_ERROR",
    "INVALID_ARGUMENT",
    "LIMIT_EXCEEDED",
    "NAME_CONFLICT",
    "NOT_FOUND",
    "PATCH_FAILED",
    "PATH_PENDING_DELETION_BACKUP",
    "RANGE_OUT_OF_BOUNDS",
    "RATE_LIMITED",
    "REQUEST_ID_REUSE",
    "REQUEST_IN_PROGRESS",
    "STORAGE_UNAVAILABLE",
    "VERSION_CONFLICT",
}


def create(**changes: Any) -> dict[str, Any]:
    return {
        "action": "create",
        "request_id": "new",
        "folder_path": "Eng",
        "filename": "New.md",
        "type": "note",
        "title": "New",
        "content": "text\n",
        **changes,
    }


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    error: dict[str, Any] = answer["error"]
    known = next(kind for kind in errors.BrainError.__subclasses__() if kind.code == error["code"])
    # Two kinds share a code with different words.
    assert error["code"] in ("VERSION_CONFLICT", "NAME_CONFLICT") or error["message"] == known.message
    assert error["retryable"] is known.retryable
    if known is not errors.RateLimited:
        assert error.get("retry_after_seconds") == known.retry_after_seconds
    assert ("retry_after_seconds" in error) is known.retryable
    return error


def reserve(world: World, path: str) -> None:
    """Delete an entry as one whose deletion still waits for the Git backup: its path stays reserved."""
    with store_of(world.organization_id).transaction() as transaction:
        folder, line = find_entry(transaction, authorizer.sight_of(world.system), EntryLocator(path=path))
        tombstone = tombstone_of(
            line,
            ids.new_id(ids.DELETION),
            lsn=transaction.lsn_of_change,
            at=transaction.time,
            by=SYSTEM_ACTOR,
            reserved=True,
        )
        transaction.remove_entry(folder.folder, tombstone)
        subject = Subject(folder_id=folder.folder.id, path=path, entry_id=line.id)
        transaction.commit("delete", SYSTEM_ACTOR, [subject])


@contextmanager
def held(enter: Any) -> Iterator[None]:
    """Another thread that holds something for the length of the block."""
    inside, over = threading.Event(), threading.Event()

    def hold() -> None:
        with enter():
            inside.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(60)
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_these_are_codes_of_the_floor() -> None:
    assert set(errors.all_codes()) >= CODES


def test_not_found(world: World, ada: Agent) -> None:
    world.entry("Secret/Codes.md", "x")

    for answer in (
        ada.read(path="Eng/none.md"),
        ada.read(path="Secret/Codes.md"),
        ada.read(entry_id="ent_none"),
        ada.browse(action="entries", folder_path="Secret"),
        ada.inspect(folder_path="Secret"),
        ada.inspect(folder_path=""),
        ada.update(**create(folder_path="Secret")),
        ada.update(action="update", request_id="u", path="Eng/none.md", expected_version="v", content=""),
        ada.update(action="delete", request_id="d", path="Eng/none.md", expected_version="v"),
        ada.update(action="create_folder", request_id="f", folder_path="Secret", name="A"),
        # The root is only the way to Eng for Ada.
        ada.update(action="create_folder", request_id="f", folder_path="", name="A"),
    ):
        assert error_of(answer)["code"] == "NOT_FOUND"
        assert answer["error"]["details"] == {}


def test_forbidden(world: World, ada: Agent) -> None:
    entry = world.entry("Pay/Checkout.md", "x\n")
    world.grant("ada", Role.READER, "Pay")

    for answer in (
        ada.update(**create(folder_path="Pay")),
        ada.update(
            action="update",
            request_id="u",
            path="Pay/Checkout.md",
            expected_version=entry.version,
            content="y\n",
        ),
        ada.update(action="delete", request_id="d", path="Pay/Checkout.md", expected_version=entry.version),
        ada.update(action="create_folder", request_id="f", folder_path="Pay", name="A"),
    ):
        assert error_of(answer)["code"] == "FORBIDDEN"
        assert answer["error"]["details"] == {}
    assert world.text_of("Pay/Checkout.md") == "x\n"


def test_name_conflict(world: World, ada: Agent) -> None:
    world.entry("Eng/New.md", "mine\n")
    world.folder("Eng/Sub")

    for answer in (
        ada.update(**create()),
        ada.update(**create(filename="NEW.md")),
        ada.update(action="create_folder", request_id="f", folder_path="Eng", name="sub"),
    ):
        assert error_of(answer)["code"] == "NAME_CONFLICT"
    assert world.text_of("Eng/New.md") == "mine\n"
    # A folder and an entry may share a stem.
    assert "folder" in ada.update(action="create_folder", request_id="g", folder_path="Eng", name="New")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"filename": "New.MD"}, "filename"),
        ({"filename": "New"}, "filename"),
        ({"filename": ".md"}, "filename"),
        ({"filename": "../New.md"}, "filename"),
        ({"filename": "a/b.md"}, "filename"),
        ({"filename": "con.md"}, "filename"),
        ({"filename": "Größe.md"}, "filename"),
        ({"filename": "a\u0000.md"}, "filename"),
        ({"folder_path": "Eng/"}, "folder_path"),
        ({"folder_path": "/Eng"}, "folder_path"),
        ({"folder_path": "Eng/../Eng"}, "folder_path"),
        ({"title": ""}, "title"),
        ({"title": "  "}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"title": "\ud800"}, "title"),
        ({"description": "a\u0007"}, "description"),
        ({"tags": ["a", "a"]}, "tags"),
        ({"tags": [""]}, "tags"),
        ({"content": "a\u0000b"}, "content"),
        ({"content": "a\ud800b"}, "content"),
        ({"type": "poem"}, "type"),
    ],
)
def test_invalid_argument(ada: Agent, change: dict[str, Any], field: str) -> None:
    answer = ada.update(**create(**change))

    error = error_of(answer)
    assert (error["code"], error["details"]["field"]) == ("INVALID_ARGUMENT", field)
    assert error["details"]["problem"].endswith(".")


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"title": "a\nb"}, "metadata.title"),
        ({"title": "\ud800"}, "metadata.title"),
        ({"description": "\u0007"}, "metadata.description"),
        ({"tags": ["a", "a"]}, "metadata.tags"),
    ],
)
def test_invalid_metadata_is_named_as_it_was_written(
    ada: Agent, metadata: dict[str, Any], field: str
) -> None:
    answer = ada.update(
        action="update", request_id="u", path="Eng/x.md", expected_version="v", metadata=metadata
    )

    assert error_of(answer)["details"]["field"] == field


def test_invalid_content_is_told_with_line_and_character(ada: Agent) -> None:
    error = error_of(ada.update(**create(content="one\ntwo\x00\n")))

    assert (error["details"]["line"], error["details"]["code_point"]) == (2, "U+0000")


@pytest.mark.parametrize(
    ("change", "field", "limit", "unit"),
    [
        ({"title": "t" * 201}, "title", limits.TITLE_MAX_CHARACTERS, "characters"),
        ({"description": "d" * 4_001}, "description", limits.DESCRIPTION_MAX_CHARACTERS, "characters"),
        ({"tags": ["t" * 65]}, "tags", limits.TAG_MAX_CHARACTERS, "characters"),
        ({"tags": [str(n) for n in range(51)]}, "tags", limits.TAGS_MAX, "tags"),
        ({"filename": "f" * 65 + ".md"}, "filename", limits.NAME_MAX_CHARACTERS, "characters"),
        ({"folder_path": "/".join(["f" * 64] * 16)}, "folder_path", limits.PATH_MAX_BYTES, "bytes"),
        ({"request_id": "r" * 129}, "request_id", limits.REQUEST_ID_MAX_CHARACTERS, "characters"),
    ],
)
def test_limit_exceeded(ada: Agent, change: dict[str, Any], field: str, limit: int, unit: str) -> None:
    error = error_of(ada.update(**create(**change)))

    assert error["code"] == "LIMIT_EXCEEDED"
    assert error["details"] == {"field": field, "limit": limit, "unit": unit}


def test_a_reason_has_a_limit_too(world: World, ada: Agent) -> None:
    entry = world.entry("Eng/A.md", "a\n")
    given = {"action": "update", "path": "Eng/A.md", "expected_version": entry.version, "content": "b\n"}

    refused = error_of(ada.update(**given, request_id="u", reason="r" * 501))

    assert refused["details"] == {
        "field": "reason",
        "limit": limits.REASON_MAX_CHARACTERS,
        "unit": "characters",
    }
    assert ada.update(**given, request_id="u", reason="r" * 500)["changed"]


def test_range_out_of_bounds(world: World, ada: Agent) -> None:
    world.entry("Eng/A.md", "one\ntwo")
    world.entry("Eng/Empty.md", "")

    for path, first, total in (("Eng/A.md", 3, 2), ("Eng/A.md", 10**30, 2), ("Eng/Empty.md", 1, 0)):
        error = error_of(ada.read(path=path, start_line=first, end_line=first))
        assert (error["code"], error["details"]) == ("RANGE_OUT_OF_BOUNDS", {"total_lines": total})


def test_version_conflict(world: World, ada: Agent) -> None:
    entry = world.entry("Eng/A.md", "one\n")

    for given in ({"action": "update", "content": "two\n"}, {"action": "delete"}):
        error = error_of(ada.update(**given, request_id="u", path="Eng/A.md", expected_version="v0"))
        assert error["code"] == "VERSION_CONFLICT"
        assert error["details"] == {
            "current_version": entry.version,
            "content_hash": entry.content_hash,
        }


def test_patch_failed(world: World, ada: Agent) -> None:
    entry = world.entry("Eng/A.md", "one\n")

    for change in ({"diff": "@@ -1 +1 @@\n-two\n+2\n"}, {"edits": [{"old_text": "two", "new_text": "2"}]}):
        answer = ada.update(
            action="update", request_id="u", path="Eng/A.md", expected_version=entry.version, **change
        )
        error = error_of(answer)
        assert error["code"] == "PATCH_FAILED"
        assert error["details"].keys() == {"failures", "total_lines", "current_version"}
    assert world.text_of("Eng/A.md") == "one\n"


def test_request_id_reuse(world: World, ada: Agent) -> None:
    ada.update(**create())

    for change in ({"content": "other\n"}, {"filename": "Other.md"}, {"tags": ["t"]}):
        assert error_of(ada.update(**create(**change)))["code"] == "REQUEST_ID_REUSE"
    assert (
        error_of(ada.update(action="create_folder", request_id="new", folder_path="Eng", name="A"))["code"]
        == "REQUEST_ID_REUSE"
    )
    assert world.text_of("Eng/New.md") == "text\n"
    assert error_of(ada.read(path="Eng/Other.md"))["code"] == "NOT_FOUND"


def test_request_in_progress(world: World, ada: Agent) -> None:
    request = MutationRequest(
        key=ids.request_key(
            organization_id=world.organization_id,
            identity_id=world.identity("ada").id,
            tool="update_knowledgebase",
            request_id="new",
        ),
        arguments_hash="",
    )
    store = store_of(world.organization_id)

    with held(lambda: store.claim(request)):
        error = error_of(ada.update(**create()))

    assert (error["code"], error["retry_after_seconds"]) == ("REQUEST_IN_PROGRESS", 1)
    assert ada.update(**create())["entry"]["path"] == "Eng/New.md"


def test_path_pending_deletion_backup(world: World, ada: Agent) -> None:
    world.entry("Eng/New.md", "old\n")
    reserve(world, "Eng/New.md")

    for name in ("New.md", "new.md"):
        assert error_of(ada.update(**create(filename=name)))["code"] == "PATH_PENDING_DELETION_BACKUP"
    assert error_of(ada.read(path="Eng/New.md"))["code"] == "NOT_FOUND"


def test_storage_unavailable(world: World, ada: Agent) -> None:
    world.entry("Eng/Old.md", "old\n")
    queue = writer.writer_queue(world.organization_id)

    # Somebody saves, and as many wait for it as may.
    with ExitStack() as busy:
        busy.enter_context(held(queue.hold))
        for _ in range(limits.HEAVY_WORK_MAX):
            busy.enter_context(held(locks.heavy_work))
        answer = ada.update(**create())
        read = ada.read(path="Eng/Old.md")

    error = error_of(answer)
    assert (error["code"], error["retry_after_seconds"]) == ("STORAGE_UNAVAILABLE", 3)
    assert read["content"] == "old\n"
    # The same call, repeated as told, succeeds.
    assert ada.update(**create())["entry"]["path"] == "Eng/New.md"


def test_internal_error(ada: Agent) -> None:
    with patch.object(browse_knowledgebase, "browse_folders", side_effect=ZeroDivisionError):
        error = error_of(ada.browse(action="folders"))

    assert error["code"] == "INTERNAL_ERROR"
    assert set(error["details"]) == {"reference"}


def test_the_first_fault_on_the_way_is_the_one_told(world: World, ada: Agent) -> None:
    """Arguments, then a repeated request, then reading, then writing, then names, then versions."""
    entry = world.entry("Eng/A.md", "a\n")
    world.entry("Pay/B.md", "b\n")
    world.entry("Secret/C.md", "c\n")
    world.grant("ada", Role.READER, "Pay")
    ada.update(**create(request_id="used"))

    def code(answer: dict[str, Any]) -> str:
        found: str = error_of(answer)["code"]
        return found

    update = {"action": "update", "content": "x\n", "expected_version": "v0"}
    assert code(ada.update(**update, request_id="used", path="Secret/C.md", bogus=1)) == "INVALID_ARGUMENT"
    assert (
        code(ada.update(**{**update, "content": "\0"}, request_id="used", path="Secret/C.md"))
        == "INVALID_ARGUMENT"
    )
    assert (
        code(ada.update(**update, reason="r" * 501, request_id="used", path="Secret/C.md"))
        == "LIMIT_EXCEEDED"
    )
    assert code(ada.update(**update, request_id="used", path="Secret/C.md")) == "REQUEST_ID_REUSE"
    assert code(ada.update(**update, request_id="fresh", path="Secret/C.md")) == "NOT_FOUND"
    assert code(ada.update(**update, request_id="fresh", path="Pay/B.md")) == "FORBIDDEN"
    assert code(ada.update(**create(folder_path="Pay", filename="B.md", request_id="fresh"))) == "FORBIDDEN"
    assert code(ada.update(**create(filename="A.md", request_id="fresh"))) == "NAME_CONFLICT"
    assert code(ada.update(**update, request_id="fresh", path="Eng/A.md")) == "VERSION_CONFLICT"
    # None of these refusals used up the request id.
    assert ada.update(**{**update, "expected_version": entry.version}, request_id="fresh", path="Eng/A.md")[
        "changed"
    ]


def test_an_outcome_is_handed_back_only_to_who_may_still_make_the_call(world: World, ada: Agent) -> None:
    first = ada.update(**create())
    assert ada.update(**create()) == first

    world.grant("ada", Role.READER, "Eng")
    lowered = error_of(ada.update(**create()))["code"]
    world.revoke("ada", "Eng")
    gone = error_of(ada.update(**create()))["code"]

    assert (lowered, gone) == ("FORBIDDEN", "NOT_FOUND")


def test_another_identity_may_use_the_same_request_id(world: World, ada: Agent) -> None:
    world.person("bo", role=Role.EDITOR, on="Eng")
    bo = Agent(world.token("bo"), ada.era)

    assert "entry" in ada.update(**create())
    assert "entry" in bo.update(**create(filename="Bo.md"))


def test_two_tokens_of_one_identity_share_their_request_ids(world: World, ada: Agent) -> None:
    other = Agent(world.token("ada", name="desktop"), ada.era)

    first = ada.update(**create())

    assert other.update(**create()) == first


def test_an_error_is_complete_in_its_text(ada: Agent) -> None:
    reply = ada.request(
        "tools/call", {"name": "read_knowledgebase", "arguments": {"action": "read", "path": "Eng/none.md"}}
    )

    told = json.loads(reply.json["result"]["content"][0]["text"])["error"]
    assert set(told) == {"code", "message", "retryable", "details"}
    assert reply.json["result"]["isError"] is True
