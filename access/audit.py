"""Writing down what was done to anybody's access, and what was tried and refused.

An event of something done stands in the same database transaction as the change. An event of a refused attempt
stands alone: nothing changed. Its names are text, as they were at the time.
"""

import enum
from types import TracebackType

from access.models import AuditEvent, Connection, Identity
from access.principals import Principal
from core.errors import Forbidden, NotFound
from core.types import FolderLocator, FolderRef


class AuditAction(enum.StrEnum):
    """What an event is about."""

    CREATE_ORGANIZATION = "create_organization"
    CREATE_PERSON = "create_person"
    CREATE_SERVICE_ACCOUNT = "create_service_account"
    CHANGE_IDENTITY = "change_identity"
    SET_PASSWORD = "set_password"  # noqa: S105 - names a deed
    GRANT = "grant"
    REVOKE = "revoke"
    ISSUE_TOKEN = "issue_token"  # noqa: S105 - names a deed
    ROTATE_TOKEN = "rotate_token"  # noqa: S105 - names a deed
    REVOKE_TOKEN = "revoke_token"  # noqa: S105 - names a deed
    UNLOCK = "unlock"
    ALLOW_CLIENT = "allow_client"
    DISABLE = "disable"
    ENABLE = "enable"
    PURGE_HISTORY = "purge_history"
    BACK_UP_INSTANCE = "back_up_instance"
    RESTORE_INSTANCE = "restore_instance"


class Through(enum.StrEnum):
    """What somebody acted through."""

    SHELL = "shell"
    SESSION = "session"
    CONNECTION = "connection"
    CHAT = "chat"


def record(
    principal: Principal,
    action: AuditAction,
    *,
    subject: Identity | None = None,
    folder: FolderRef | None = None,
    asked: FolderLocator | None = None,
    token: Connection | None = None,
    before: str = "",
    after: str = "",
    refusal: str = "",
) -> None:
    """Add one event. Call it in the transaction of the change that it tells of.

    ``asked`` is for a folder that was not found: then it stands there as the caller named it.
    """
    asked = asked or FolderLocator()
    AuditEvent.objects.create(
        organization_id=principal.organization_id,
        action=action,
        refusal=refusal,
        actor_id=principal.identity_id,
        actor_kind=principal.kind,
        actor_username=principal.username,
        actor_name=principal.name,
        through=_through(principal),
        through_id=principal.connection.id if principal.connection else "",
        through_name=principal.connection.name if principal.connection else "",
        subject_id=subject.id if subject else "",
        subject_username=subject.username if subject else "",
        folder_id=folder.id if folder else asked.folder_id or "",
        folder_path=folder.path if folder else asked.folder_path or "",
        token_id=token.id if token else "",
        token_name=token.name if token else "",
        before=before,
        after=after,
    )


class Attempt:
    """A block that tries to change access. One that ends in Forbidden or NotFound is written down as refused."""

    def __init__(
        self,
        principal: Principal,
        action: AuditAction,
        *,
        identity_id: str = "",
        folder: FolderRef | None = None,
        asked: FolderLocator | None = None,
        token_id: str = "",
    ) -> None:
        self._principal = principal
        self._action = action
        self._identity_id = identity_id
        self._folder = folder
        self._asked = asked
        self._token_id = token_id

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Forbidden | NotFound):
            return
        record(
            self._principal,
            self._action,
            subject=Identity.objects.filter(id=self._identity_id).first(),
            folder=self._folder,
            asked=self._asked,
            token=Connection.objects.filter(id=self._token_id).first(),
            refusal=error.code,
        )


def _through(principal: Principal) -> Through:
    if principal.is_system:
        return Through.SHELL
    if principal.is_access_builder:
        return Through.CHAT
    return Through.CONNECTION if principal.connection else Through.SESSION
