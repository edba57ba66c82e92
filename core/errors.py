"""What Brain refuses, and how it says so: every error code a caller can see.

A refusal that we expect is a ``BrainError``. It carries only what the caller may see. Anything else
is a bug: it rises, is logged, and the caller gets ``INTERNAL_ERROR`` with a reference id.
"""

from typing import Any, ClassVar

from core import limits


class BrainError(Exception):
    """A refusal with a code. Subclasses say what happened; ``details`` is JSON-ready."""

    code: ClassVar[str]
    message: ClassVar[str]
    http_status: ClassVar[int]
    retryable: ClassVar[bool] = False
    retry_after_seconds: int | None = None

    def __init__(self, **details: Any) -> None:
        self.details = details
        super().__init__(self.code)

    def as_dict(self) -> dict[str, Any]:
        """The error object of docs/reference/errors.md, without the ``error`` key around it."""
        body: dict[str, Any] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        if self.retry_after_seconds is not None:
            body["retry_after_seconds"] = self.retry_after_seconds
        body["details"] = self.details
        return body


class Unauthenticated(BrainError):
    """No credential, or one that is malformed, unknown, expired, revoked or of a disabled identity.

    Never a tool result: the HTTP floor turns it into 401 before anything else is read. ``challenge`` is what the
    answer's WWW-Authenticate says.
    """

    code = "UNAUTHENTICATED"
    message = "A valid credential is needed."
    http_status = 401

    def __init__(self, challenge: str = "Bearer") -> None:
        self.challenge = challenge
        super().__init__()


class NotFound(BrainError):
    """Absent, or not visible to the caller. Both look the same, byte for byte."""

    code = "NOT_FOUND"
    message = "There is nothing here, or you do not have access to it."
    http_status = 404


class Forbidden(BrainError):
    """The caller can read the target and may not do this to it."""

    code = "FORBIDDEN"
    message = "You can read this, but your access does not allow this action."
    http_status = 403


class InsufficientScope(Forbidden):
    """An OAuth client asks for what the person it acts for did not allow it, and may ask that person again.

    Never a tool result: the HTTP floor turns it into 403 with the ``challenge`` that lets a client step up.
    """

    message = "This connection was allowed to read only. Authorize it again, with writing."

    def __init__(self, challenge: str) -> None:
        self.challenge = challenge
        super().__init__()


class NameConflict(BrainError):
    """A sibling has this name already, without regard to ASCII case."""

    code = "NAME_CONFLICT"
    message = "A folder or entry with this name stands here already. Names are compared without case."
    http_status = 409


class UsernameTaken(BrainError):
    """A person or service account has this username already."""

    code = "NAME_CONFLICT"
    message = "A person or service account has this name already. Names are compared without case."
    http_status = 409


class InvalidArgument(BrainError):
    """An argument is malformed. ``field`` names it, ``problem`` says what is wrong in one sentence."""

    code = "INVALID_ARGUMENT"
    message = "An argument is not valid."
    http_status = 400

    def __init__(self, field: str, problem: str, **details: Any) -> None:
        super().__init__(field=field, problem=problem, **details)


class LimitExceeded(BrainError):
    """An argument is longer, larger or more than the maximum. ``limit`` is the maximum, in ``unit``."""

    code = "LIMIT_EXCEEDED"
    message = "An argument is over its limit."
    http_status = 400

    def __init__(self, field: str, *, limit: int, unit: str) -> None:
        super().__init__(field=field, limit=limit, unit=unit)


class RangeOutOfBounds(BrainError):
    """The line range begins behind the last line."""

    code = "RANGE_OUT_OF_BOUNDS"
    message = "The range begins after the last line of the entry."
    http_status = 400

    def __init__(self, *, total_lines: int) -> None:
        super().__init__(total_lines=total_lines)


class SectionNotFound(BrainError):
    """No such heading, or not so many of them. ``outline`` lists what there is, ``did_you_mean`` what is close.

    ``outline``: up to 50 of ``{"level", "text", "line"}``; ``total_headings`` how many there are.
    """

    code = "SECTION_NOT_FOUND"
    message = "The entry has no such heading. Headings are compared exactly."
    http_status = 404

    def __init__(
        self, *, outline: list[dict[str, Any]], total_headings: int, did_you_mean: list[str]
    ) -> None:
        super().__init__(outline=outline, total_headings=total_headings, did_you_mean=did_you_mean)


class AmbiguousSection(BrainError):
    """The heading stands there more than once. ``occurrences``: up to 50 of ``{"occurrence", "line"}``."""

    code = "AMBIGUOUS_SECTION"
    message = "The heading stands in the entry more than once. Say which occurrence, counted from 1."
    http_status = 400

    def __init__(self, *, occurrences: list[dict[str, Any]], total_occurrences: int) -> None:
        super().__init__(occurrences=occurrences, total_occurrences=total_occurrences)


class VersionConflict(BrainError):
    """The entry moved on since the caller read it.

    ``since`` tells what changed, as far as the caller's version is still kept: ``diff_since``, ``diff_truncated``,
    ``metadata_changed``.
    """

    code = "VERSION_CONFLICT"
    message = (
        "The entry changed since you read it. Fit your change to what it is now, and retry with its version."
    )
    http_status = 409

    def __init__(self, *, current_version: str, content_hash: str, **since: Any) -> None:
        super().__init__(current_version=current_version, content_hash=content_hash, **since)


class AccessVersionConflict(BrainError):
    """The folder's grants changed since the caller looked at them."""

    code = "VERSION_CONFLICT"
    message = "The folder's access changed since you looked. Inspect it again, then retry."
    http_status = 409

    def __init__(self, *, current_acl_version: int) -> None:
        super().__init__(current_acl_version=current_acl_version)


class PatchFailed(BrainError):
    """A diff or an edit does not fit the entry as it stands. Nothing changed.

    ``failures``: up to ten hunks or edits with their reasons and what is needed to repair them, ``total_lines`` of
    the entry; excerpts come from the version that the caller named and are kept nowhere.
    """

    code = "PATCH_FAILED"
    message = (
        "The change does not fit the entry, and nothing was changed. Repair what details.failures lists."
    )
    http_status = 409


class RequestIdReuse(BrainError):
    """This identity used the request id with other arguments within the last seven days."""

    code = "REQUEST_ID_REUSE"
    message = "This request_id was used with other arguments. Use a new one for a new request."
    http_status = 409


class RequestInProgress(BrainError):
    """The first call with this request id is still running."""

    code = "REQUEST_IN_PROGRESS"
    message = "The first call with this request_id is still running. Repeat it after the delay."
    http_status = 409
    retryable = True
    retry_after_seconds = limits.RETRY_AFTER_SECONDS


class PathPendingDeletionBackup(BrainError):
    """The path belonged to a deleted entry whose absence is not yet confirmed in the Git backup."""

    code = "PATH_PENDING_DELETION_BACKUP"
    message = "A deleted entry still reserves this path until its deletion is backed up."
    http_status = 409


class RateLimited(BrainError):
    """The caller did this more often, or more of it, than ``limit`` within ``per_seconds``. Nothing was done.

    ``rate`` says of what.
    """

    code = "RATE_LIMITED"
    message = (
        "That is more than this connection may do in so short a time. Repeat the same call after the delay."
    )
    http_status = 429
    retryable = True

    def __init__(self, *, rate: str, limit: int, per_seconds: int, retry_after_seconds: int) -> None:
        super().__init__(rate=rate, limit=limit, per_seconds=per_seconds)
        self.retry_after_seconds = retry_after_seconds


class StorageUnavailable(BrainError):
    """The disk is full, read-only, failing or too busy. Nothing changed, or the same request id tells."""

    code = "STORAGE_UNAVAILABLE"
    message = "The store cannot do this now. Repeat the same call, with the same request_id, after the delay."
    http_status = 503
    retryable = True
    retry_after_seconds = limits.STORAGE_RETRY_AFTER_SECONDS


class InternalError(BrainError):
    """A bug. Carries a reference id that the log has too, and nothing else."""

    code = "INTERNAL_ERROR"
    message = "Something went wrong inside Brain. Nothing about it is shown here; the log has the reference."
    http_status = 500

    def __init__(self, *, reference: str) -> None:
        super().__init__(reference=reference)


def all_codes() -> list[str]:
    """Every code that a tool result or page can carry, sorted. Source of the reference docs and tests."""
    return sorted({error.code for error in BrainError.__subclasses__()} - {Unauthenticated.code})
