"""Request ids of access changes: one effect, one answer, judged afresh each time it is given."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
import time_machine
from django.db import OperationalError, connections

from access import audit, tasks
from access.models import AuditEvent, FolderGrant, Identity, RequestOutcome
from access.principals import Principal
from access.requests import claimed
from access.services.create_service_account import create_service_account
from access.services.disable_service_account import disable_service_account
from core import clock, ids
from core.errors import (
    AccessVersionConflict,
    BrainError,
    Forbidden,
    InvalidArgument,
    NotFound,
    RequestIdReuse,
    RequestInProgress,
    StorageUnavailable,
    UsernameTaken,
)
from core.types import FolderLocator, MutationRequest, Role
from kb.services.grant_access import grant_access
from kb.services.revoke_access import revoke_access
from tests.world import World

PAYMENTS = "Engineering/Payments"
DAY = timedelta(days=1)


def request_of(
    principal: Principal, request_id: str = "one", arguments_hash: str = "same"
) -> MutationRequest:
    key = ids.request_key(
        organization_id=principal.organization_id,
        identity_id=principal.identity_id,
        tool="manage_knowledgebase_access",
        request_id=request_id,
    )
    return MutationRequest(key, arguments_hash)


class Story:
    """Root administers, Ada owns Payments with Cleo, Priya and the bot are there to be dealt with."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.root = world.person("root", is_admin=True)
        self.ada = world.person("ada", role=Role.OWNER, on=PAYMENTS)
        world.person("cleo", role=Role.OWNER, on=PAYMENTS)
        self.priya = world.person("priya", role=Role.EDITOR, on=PAYMENTS)
        self.bot = world.service_account("deploy-bot", role=Role.EDITOR, on=PAYMENTS)
        self.version = world.acl_version(PAYMENTS)

    def grant(self, request: MutationRequest, **given: Any) -> Any:
        return grant_access(
            self.ada,
            request,
            FolderLocator(folder_path=given.get("path", PAYMENTS)),
            self.priya.identity_id,
            Role.READER,
            expected_acl_version=given.get("version", self.version),
        )

    def revoke(self, request: MutationRequest) -> Any:
        return revoke_access(
            self.ada,
            request,
            FolderLocator(folder_path=PAYMENTS),
            self.priya.identity_id,
            expected_acl_version=self.version,
        )

    def create(self, request: MutationRequest) -> Any:
        return create_service_account(self.root, request, name="new-bot", description="Deploys.")

    def disable(self, request: MutationRequest) -> Any:
        return disable_service_account(self.root, request, self.bot.identity_id)

    def who(self, change: str) -> Principal:
        return self.root if change in ("create", "disable") else self.ada

    def change(self, change: str, request_id: str = "one", arguments_hash: str = "same") -> Any:
        make: Callable[[MutationRequest], Any] = getattr(self, change)
        return make(request_of(self.who(change), request_id, arguments_hash))

    def state(self) -> list[Any]:
        """All that a change of access can move, but for the audit."""
        identities = sorted(Identity.objects.values_list("username", "is_active"))
        return [self.world.grants(), self.world.acl_version(PAYMENTS), identities]

    def done(self) -> int:
        """How many things were done and written down."""
        return AuditEvent.objects.filter(refusal="").count()


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


CHANGES = ["grant", "revoke", "create", "disable"]
changes = pytest.mark.parametrize("change", CHANGES)


@changes
def test_the_same_request_has_one_effect_and_one_answer(story: Story, change: str) -> None:
    first = story.change(change)
    state, done = story.state(), story.done()

    again = story.change(change)

    assert again == first
    assert type(again) is type(first)
    assert again.as_dict() == first.as_dict()
    assert (story.state(), story.done()) == (state, done)
    assert RequestOutcome.objects.count() == 1


@changes
def test_other_arguments_under_the_same_id_are_refused(story: Story, change: str) -> None:
    story.change(change)
    state = story.state()

    with pytest.raises(RequestIdReuse):
        story.change(change, arguments_hash="other")

    assert story.state() == state


def test_the_stored_answer_is_the_one_of_then(story: Story) -> None:
    story.change("grant")
    story.world.grant("priya", Role.OWNER, PAYMENTS)
    story.change("create")
    story.world.disable("new-bot")

    assert story.change("grant").grant.role is Role.READER
    assert story.change("create").active is True
    assert (story.priya.username, Role.OWNER) in {(who, role) for who, _, role in story.world.grants()}


def test_an_answer_with_warnings_comes_back_with_them(story: Story) -> None:
    story.world.revoke("cleo", PAYMENTS)
    request = request_of(story.ada)

    def step_down() -> dict[str, Any]:
        return revoke_access(
            story.root,
            request,
            FolderLocator(folder_path=PAYMENTS),
            story.ada.identity_id,
            expected_acl_version=story.version + 1,
        ).as_dict()

    first = step_down()

    assert [warning["kind"] for warning in first["warnings"]] == ["last_owner"]
    assert step_down() == first


def test_ids_belong_to_the_identity(story: Story) -> None:
    story.change("grant", "shared")
    cleo = story.world.identity("cleo")

    assert request_of(story.ada, "shared").key != ids.request_key(
        organization_id=cleo.organization_id,
        identity_id=cleo.id,
        tool="manage_knowledgebase_access",
        request_id="shared",
    )
    story.change("create", "shared")
    assert RequestOutcome.objects.count() == 2


# Judged afresh


@pytest.mark.parametrize("change", ["grant", "revoke"])
@pytest.mark.parametrize(
    ("left", "refusal"), [(None, NotFound), (Role.READER, Forbidden), (Role.EDITOR, Forbidden)]
)
def test_who_is_no_owner_any_more_does_not_get_the_answer(
    story: Story, change: str, left: Role | None, refusal: type[BrainError]
) -> None:
    story.change(change)
    if left is None:
        story.world.revoke("ada", PAYMENTS)
    else:
        story.world.grant("ada", left, PAYMENTS)
    refused = AuditEvent.objects.exclude(refusal="").count()

    with pytest.raises(refusal):
        story.change(change)

    assert AuditEvent.objects.exclude(refusal="").count() == refused + 1


@pytest.mark.parametrize("change", ["create", "disable"])
def test_who_is_no_administrator_any_more_does_not_get_the_answer(story: Story, change: str) -> None:
    story.change(change)
    Identity.objects.filter(username="root").update(is_admin=False)

    with pytest.raises(Forbidden):
        story.change(change)


# Refused


def test_a_refused_call_keeps_nothing_and_its_id_may_be_used_again(story: Story) -> None:
    state = story.state()

    with pytest.raises(AccessVersionConflict):
        story.grant(request_of(story.ada), version=0)
    with pytest.raises(NotFound):
        story.grant(request_of(story.ada), path="Nowhere")
    with pytest.raises(Forbidden):
        create_service_account(story.ada, request_of(story.ada), name="new-bot", description="")
    with pytest.raises(UsernameTaken):
        create_service_account(story.root, request_of(story.root), name="deploy-bot", description="")
    with pytest.raises(InvalidArgument):
        disable_service_account(story.root, request_of(story.root), story.ada.identity_id)

    assert not RequestOutcome.objects.exists()
    assert story.state() == state
    assert story.grant(request_of(story.ada)).previous_role is Role.EDITOR
    assert story.change("create", arguments_hash="other").active


@changes
def test_change_audit_and_outcome_stand_or_fall_together(story: Story, change: str) -> None:
    state, done = story.state(), story.done()

    with (
        patch.object(RequestOutcome, "save", side_effect=ZeroDivisionError),
        pytest.raises(ZeroDivisionError),
    ):
        story.change(change)
    with patch.object(audit, "record", side_effect=ZeroDivisionError), pytest.raises(ZeroDivisionError):
        story.change(change)

    assert (story.state(), story.done(), RequestOutcome.objects.count()) == (state, done, 0)
    story.change(change)
    assert story.state() != state


@changes
def test_a_database_that_cannot_write_is_told_and_the_same_call_succeeds_later(
    story: Story, change: str
) -> None:
    state, done = story.state(), story.done()

    with (
        patch.object(audit, "record", side_effect=OperationalError("database or disk is full")),
        pytest.raises(StorageUnavailable),
    ):
        story.change(change)

    assert (story.state(), story.done(), RequestOutcome.objects.count()) == (state, done, 0)
    story.change(change)
    assert story.done() == done + 1


@pytest.mark.parametrize("field", ["name", "description"])
def test_a_bad_service_account_is_told_before_anything_is_looked_up(story: Story, field: str) -> None:
    given = {"name": "new-bot", "description": "", field: "\0"}
    story.change("grant")

    with pytest.raises(InvalidArgument) as refused:
        create_service_account(story.ada, request_of(story.ada, arguments_hash="other"), **given)

    assert refused.value.details["field"] == field


# Claims


@changes
def test_a_request_that_is_running_is_told_to_wait(story: Story, change: str) -> None:
    state = story.state()
    request = request_of(story.who(change))
    refused: list[BrainError] = []

    def try_it() -> None:
        try:
            with claimed(story.who(change), request):
                raise AssertionError("both have it")
        except RequestInProgress as error:
            refused.append(error)
        finally:
            connections.close_all()

    with claimed(story.who(change), request):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()

    assert [error.retry_after_seconds for error in refused] == [1]
    assert story.state() == state
    story.change(change)


@pytest.mark.django_db(transaction=True)
@changes
def test_identical_calls_at_once_have_one_effect(world: World, change: str) -> None:
    story = Story(world)
    state, done = story.state(), story.done()
    start = threading.Barrier(4)
    answers: list[Any] = []

    def call() -> None:
        start.wait()
        try:
            while True:
                try:
                    answers.append(story.change(change).as_dict())
                    return
                except RequestInProgress:
                    continue
        finally:
            connections.close_all()

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 4
    assert all(answer == answers[0] for answer in answers)
    assert story.done() == done + 1
    assert story.state() != state


def test_without_a_store_to_claim_in_nothing_is_changed(story: Story) -> None:
    state = story.state()

    with patch("access.requests.open_private", side_effect=OSError(28, "No space left on device")):
        for change in CHANGES:
            with pytest.raises(StorageUnavailable):
                story.change(change)

    assert story.state() == state


# Time


def test_an_outcome_counts_for_seven_days_and_is_swept_after_them(story: Story) -> None:
    story.change("create")

    with time_machine.travel(clock.now() + 7 * DAY - timedelta(seconds=5), tick=False):
        assert tasks.drop_expired_outcomes() == 0
        assert story.change("create").username == "new-bot"
    with time_machine.travel(clock.now() + 7 * DAY, tick=False):
        with pytest.raises(UsernameTaken):
            story.change("create")
        assert tasks.drop_expired_outcomes() == 1
    assert not RequestOutcome.objects.exists()


def test_an_id_that_is_past_its_time_can_be_used_for_another_change(story: Story) -> None:
    story.change("grant")

    with time_machine.travel(clock.now() + 8 * DAY, tick=False):
        story.version += 1
        assert story.change("revoke", arguments_hash="other").removed_role is Role.READER

    assert RequestOutcome.objects.get().arguments_hash == "other"
    assert not FolderGrant.objects.filter(user_id=story.priya.identity_id).exists()
