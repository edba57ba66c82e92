"""Requests to change access that may be repeated: at most one effect within seven days, and the same answer again.

A request is claimed as a save's is, by a lock file. What it led to is a row that stands or falls with the change.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from access.models import RequestOutcome
from access.principals import Principal
from access.writer import open_private
from core import claims, clock, limits
from core.errors import RequestIdReuse, StorageUnavailable
from core.types import MutationRequest

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to carry out one request. Whoever has it judges the caller before it uses ``again``."""

    request: MutationRequest | None = None
    known: Mapping[str, Any] | None = None

    def again(self, kind: type[Outcome]) -> Outcome | None:
        """What the request led to before; None where it is new."""
        return None if self.known is None else msgspec.convert(self.known, kind)

    def keep(self, outcome: object) -> None:
        """Let this be the request's answer from now on. Call it in the transaction of the change."""
        if self.request is not None:
            # In place of one that is past its time, too.
            RequestOutcome(
                key=self.request.key,
                arguments_hash=self.request.arguments_hash,
                at=clock.now(),
                result=msgspec.to_builtins(outcome),
            ).save()


# For changes that nobody repeats by an id, such as those of the shell.
UNCLAIMED = Claim()


@contextmanager
def claimed(principal: Principal, request: MutationRequest | None) -> Iterator[Claim]:
    """Be the one call that works on this request, until its outcome is kept.

    Raises RequestInProgress, RequestIdReuse, StorageUnavailable.
    """
    if request is None:
        yield UNCLAIMED
        return
    with ExitStack() as held:
        try:
            private = open_private(principal.organization_id)
            held.callback(os.close, private)
            held.enter_context(claims.hold_claim(private, request.key))
        except OSError as error:
            raise StorageUnavailable from error
        oldest = clock.now() - timedelta(days=limits.OUTCOME_DAYS)
        known = RequestOutcome.objects.filter(key=request.key, at__gt=oldest).first()
        if known is not None and known.arguments_hash != request.arguments_hash:
            raise RequestIdReuse
        yield Claim(request, known.result if known else None)
