"""Finding the folder whose access is to be changed, in the order in which callers are answered."""

from collections.abc import Iterator
from contextlib import contextmanager

from access import audit
from access.audit import AuditAction
from access.principals import Principal
from access.requests import Claim, claimed
from core.types import FolderLocator, FolderRef, MutationRequest
from kb.locate import check_folder_locator
from kb.services.locate_folder import locate_folder


@contextmanager
def changing_access(
    principal: Principal,
    request: MutationRequest | None,
    folder: FolderLocator,
    action: AuditAction,
    identity_id: str,
) -> Iterator[tuple[FolderRef, Claim]]:
    """Claim the request and find the folder, which ``access`` goes on to judge. A hidden one is a refused attempt.

    Raises InvalidArgument, LimitExceeded, RequestInProgress, RequestIdReuse, NotFound, StorageUnavailable.
    """
    check_folder_locator(folder)
    with claimed(principal, request) as claim:
        with audit.Attempt(principal, action, identity_id=identity_id, asked=folder):
            found = locate_folder(principal, folder)
        yield found, claim
