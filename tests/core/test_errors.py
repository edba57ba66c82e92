import json

import pytest

from core import errors
from core.errors import BrainError

ALL = [
    errors.Unauthenticated(),
    errors.NotFound(),
    errors.Forbidden(),
    errors.NameConflict(),
    errors.UsernameTaken(),
    errors.InvalidArgument("title", "This is empty or blank.", line=3),
    errors.LimitExceeded("content", limit=10, unit="bytes"),
    errors.RangeOutOfBounds(total_lines=2),
    errors.VersionConflict(current_version="v1", content_hash="00"),
    errors.AccessVersionConflict(current_acl_version=3),
    errors.RequestIdReuse(),
    errors.RequestInProgress(),
    errors.PathPendingDeletionBackup(),
    errors.StorageUnavailable(),
    errors.InternalError(reference="r1"),
]
CODES_OF_THE_CONTRACT = """
    NOT_FOUND FORBIDDEN NAME_CONFLICT INVALID_ARGUMENT LIMIT_EXCEEDED RANGE_OUT_OF_BOUNDS SECTION_NOT_FOUND
    AMBIGUOUS_SECTION VERSION_CONFLICT PATCH_FAILED REQUEST_ID_REUSE REQUEST_IN_PROGRESS
    PATH_PENDING_DELETION_BACKUP SNAPSHOT_EXPIRED BACKUP_BUSY BACKUP_VERSION_CONFLICT BACKUP_UNAVAILABLE
    BACKUP_OUTCOME_UNKNOWN BACKUP_BRANCH_ADVANCED BACKUP_REMOTE_CHANGED BACKUP_NOT_CONFIGURED
    WORKTREE_NOT_CLEAN GIT_CONFLICT STORAGE_UNAVAILABLE RATE_LIMITED INTERNAL_ERROR
"""
STATUS = {
    "UNAUTHENTICATED": 401,
    "NOT_FOUND": 404,
    "FORBIDDEN": 403,
    "NAME_CONFLICT": 409,
    "INVALID_ARGUMENT": 400,
    "LIMIT_EXCEEDED": 400,
    "RANGE_OUT_OF_BOUNDS": 400,
    "VERSION_CONFLICT": 409,
    "REQUEST_ID_REUSE": 409,
    "REQUEST_IN_PROGRESS": 409,
    "PATH_PENDING_DELETION_BACKUP": 409,
    "STORAGE_UNAVAILABLE": 503,
    "INTERNAL_ERROR": 500,
}
each_error = pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)


@each_error
def test_an_error_is_an_object_of_the_contract(error: BrainError) -> None:
    body = error.as_dict()

    assert set(body) - {"retry_after_seconds"} == {"code", "message", "retryable", "details"}
    assert body["code"] == error.code
    assert body["details"] == error.details
    assert body["message"].endswith(".")
    assert json.loads(json.dumps(body)) == body


@each_error
def test_when_to_retry_stands_only_where_a_retry_makes_sense(error: BrainError) -> None:
    body = error.as_dict()

    assert ("retry_after_seconds" in body) is body["retryable"]
    assert error.retryable is (error.code in {"REQUEST_IN_PROGRESS", "STORAGE_UNAVAILABLE"})


@each_error
def test_each_code_has_its_http_status(error: BrainError) -> None:
    assert error.http_status == STATUS[error.code]


def test_every_code_that_a_caller_can_see_is_one_of_the_contract() -> None:
    codes = errors.all_codes()

    assert codes == sorted(set(codes))
    assert set(codes) <= set(CODES_OF_THE_CONTRACT.split())
    assert set(codes) >= {error.code for error in ALL} - {"UNAUTHENTICATED"}


def test_absent_and_hidden_are_the_same_answer() -> None:
    assert errors.NotFound().as_dict() == {
        "code": "NOT_FOUND",
        "message": "There is nothing here, or you do not have access to it.",
        "retryable": False,
        "details": {},
    }


def test_details_say_what_is_wrong_with_which_argument() -> None:
    assert errors.InvalidArgument("title", "No.", line=3).details == {
        "field": "title",
        "problem": "No.",
        "line": 3,
    }
    assert errors.LimitExceeded("tags", limit=50, unit="tags").details == {
        "field": "tags",
        "limit": 50,
        "unit": "tags",
    }
