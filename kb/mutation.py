"""The one way a change takes: claim the request, answer a repeated one, judge, change, save with its outcome."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from access import authorizer, throttle
from access.authorizer import Sight
from access.principals import Principal
from core import clock
from core.errors import NotFound, RequestIdReuse
from core.types import FolderRef, MutationRequest, Role
from kb.store.content_store import Transaction, View
from kb.store.outcomes import Outcome
from kb.store.record import Subject
from kb.store.stores import store_of

Result = TypeVar("Result", bound=msgspec.Struct)


class Change(msgspec.Struct, Generic[Result], frozen=True):
    """What a change did: its answer, and what the log shall say of it.

    ``judged_by`` is the folder on which the caller needs ``role``, now and whenever the answer is given again.
    """

    action: str
    result: Result
    judged_by: FolderRef
    subjects: tuple[Subject, ...]
    role: Role = Role.EDITOR
    reason: str | None = None
    changed: bool = True


def _nothing() -> None:
    """Most changes have nothing to work out before they take the writer lock."""


def mutate(
    principal: Principal,
    request: MutationRequest | None,
    result_type: type[Result],
    *,
    check: Callable[[View, Sight], object],
    change: Callable[[Transaction, Sight], Change[Result]],
    prepare: Callable[[], object] = _nothing,
) -> Result:
    """Carry out ``change`` at most once for this request; a repeated request gets the answer of the first.

    ``check`` raises what would refuse the change, on a snapshot, so that a refused call never waits for the writer
    lock. ``prepare`` is for work that takes long: nothing is held meanwhile but the claim of the request. ``change``
    asks what ``check`` asked again inside the transaction, where the answer still holds at the save.

    Raises RequestInProgress, RequestIdReuse, StorageUnavailable and whatever the three raise.
    """
    store = store_of(principal.organization_id)
    if request is None:
        with store.snapshot() as view:
            check(view, authorizer.content_sight_of(principal))
        prepare()
        with store.transaction() as transaction:
            return _save(
                transaction, principal, None, change(transaction, authorizer.content_sight_of(principal))
            )
    with store.claim(request):
        with store.snapshot() as view:
            sight = authorizer.content_sight_of(principal)
            known = view.outcome_of(request)
            if known is not None:
                return _answer_again(known, request, view, sight, result_type)
            check(view, sight)
        prepare()
        with store.transaction() as transaction:
            sight = authorizer.content_sight_of(principal)
            # Recovery may just have finished the first call's record.
            known = transaction.outcome_of(request)
            if known is not None:
                return _answer_again(known, request, transaction, sight, result_type)
            return _save(transaction, principal, request, change(transaction, sight))


def _save(
    transaction: Transaction,
    principal: Principal,
    request: MutationRequest | None,
    change: Change[Result],
) -> Result:
    if request is not None:
        transaction.keep_outcome(
            request,
            Outcome(
                arguments_hash=request.arguments_hash,
                folder_id=change.judged_by.id,
                role=change.role,
                time=clock.timestamp(),
                result=msgspec.to_builtins(change.result),
            ),
        )
    if change.changed or request is not None:
        transaction.commit(change.action, principal.actor, change.subjects, reason=change.reason)
        throttle.note_written(principal, transaction.content_bytes)
    return change.result


def _answer_again(
    known: Outcome, request: MutationRequest, view: View, sight: Sight, result_type: type[Result]
) -> Result:
    if known.arguments_hash != request.arguments_hash:
        raise RequestIdReuse
    folder = view.folder(known.folder_id)
    if folder is None:
        raise NotFound
    sight.require(Role(known.role), folder.folder)
    return msgspec.convert(known.result, result_type)
