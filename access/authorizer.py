"""The one place that decides who may do what.

Reading is thin and thinking is pure: ``sight_of`` fetches everything about a caller in one query, and a ``Sight``
compares ids. A sight is good for one call and never kept for the next, so that revocation bites at once.

Rules: grants add up and inherit downward, the highest on the way from the root counts; administrators are Owners
everywhere; a read-only account is Reader at most; a connection's folder caps only ever narrow what is left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db import connection as database

from access.principals import ConnectionFacts, Principal, connection_facts
from core import clock
from core.errors import Forbidden, NotFound
from core.types import Capability, ConnectionKind, FolderRef, Role

# One row for each grant, or one without a grant. The connection is joined by its owner too, so that no id of a
# connection reaches another identity's grants.
_SIGHT = """
SELECT identity.is_admin, identity.is_read_only,
       connection.id, connection.name, connection.capability, connection.kind, connection.folder_scopes,
       folder_grant.content_object_id, permission.codename
FROM access_identity identity
LEFT JOIN access_connection connection
       ON connection.id = %s AND connection.identity_id = identity.id
      AND connection.revoked_at IS NULL AND (connection.expires_at IS NULL OR connection.expires_at > %s)
LEFT JOIN access_foldergrant folder_grant ON folder_grant.user_id = identity.id
LEFT JOIN auth_permission permission ON permission.id = folder_grant.permission_id
WHERE identity.id = %s AND identity.organization_id = %s AND identity.is_active
"""


def strongest(
    granted: Mapping[str, Role], caps: Mapping[str, Role] | None, lineage: Sequence[str]
) -> Role | None:
    """The role on the folder at the end of ``lineage`` (ids from the root down). None is no access.

    ``granted`` and ``caps`` are roles by folder id, both good for everything below their folder. Without caps
    (None) nothing is narrowed; with an empty mapping nothing is left.
    """
    role = _highest(granted, lineage)
    if role is None or caps is None:
        return role
    cap = _highest(caps, lineage)
    return None if cap is None else min(role, cap)


@dataclass(frozen=True, slots=True)
class Sight:
    """What one caller may see and do at this moment. Made by ``sight_of``; compares ids and asks nobody.

    ``principal`` carries the connection as it is now. A disabled identity and a dead connection see nothing.
    """

    principal: Principal
    is_alive: bool = False
    is_owner_everywhere: bool = False
    is_read_only: bool = False
    granted: Mapping[str, Role] = field(default_factory=dict)
    caps: Mapping[str, Role] | None = None

    def role_on(self, folder: FolderRef) -> Role | None:
        """The caller's role on the folder through this connection; None where they may not read it."""
        if not self.is_alive:
            return None
        granted = {folder.lineage[0]: Role.OWNER} if self.is_owner_everywhere else self.granted
        role = strongest(granted, self.caps, folder.lineage)
        return min(role, Role.READER) if role is not None and self.is_read_only else role

    def can_read(self, folder: FolderRef) -> bool:
        """Whether the folder and what is in it may be shown."""
        return self.role_on(folder) is not None

    def require(self, role: Role, folder: FolderRef) -> None:
        """Go on only for a caller who has this role on the folder and a connection that may use it.

        Raises NotFound where the folder is not visible, Forbidden where it can only be read.
        """
        held = self.role_on(folder)
        if held is None:
            raise NotFound
        if held < role or not self._connection_allows(role):
            raise Forbidden

    @property
    def is_administrator(self) -> bool:
        """Whether the caller acts as an administrator: nothing about account or connection narrows them."""
        return (
            self.is_alive
            and self.is_owner_everywhere
            and not self.is_read_only
            and self.caps is None
            and self._connection_allows(Role.OWNER)
        )

    def require_presence(self) -> None:
        """Go on only for a person in a browser of their own, or the shell: what no program does for anybody.

        Raises Forbidden.
        """
        if self.principal.connection is not None or self.principal.is_access_builder or not self.is_alive:
            raise Forbidden

    def require_administrator(self) -> None:
        """Go on only for an administrator. Raises Forbidden."""
        if not self.is_administrator:
            raise Forbidden

    def require_owner_somewhere(self) -> "Sight":
        """Go on only for an Owner of at least one folder; their sight of what they own and of nothing else.

        Raises Forbidden.
        """
        owned = {folder_id: role for folder_id, role in self.granted.items() if role is Role.OWNER}
        may_own = (
            self.is_alive
            and not self.is_read_only
            # A cap is never Owner.
            and self.caps is None
            and self._connection_allows(Role.OWNER)
        )
        if not may_own or not (owned or self.is_owner_everywhere):
            raise Forbidden
        return replace(self, granted=owned)

    def if_granted(self, folder: FolderRef, role: Role) -> Role | None:
        """The role on the folder if this were the caller's own grant there."""
        return replace(self, granted={**self.granted, folder.id: role}).role_on(folder)

    def granted_folder_ids(self) -> frozenset[str] | None:
        """Ids of folders where visibility may begin; None where it begins at the root.

        A superset, since ids alone do not tell which folder is above which: a folder is visible when ``can_read``
        says so, and no folder is visible that is neither one of these nor below one.
        """
        if not self.is_alive:
            return frozenset()
        if self.is_owner_everywhere:
            return None if self.caps is None else frozenset(self.caps)
        return frozenset(self.granted) | frozenset(self.caps or ())

    def _connection_allows(self, role: Role) -> bool:
        connection = self.principal.connection
        if connection is None or role is Role.READER:
            return True
        if connection.capability is Capability.READ:
            return False
        # Workflows work with content; access is managed by people and by agents of their own.
        return role is not Role.OWNER or connection.kind is ConnectionKind.EXTERNAL


def sight_of(principal: Principal) -> Sight:
    """What the caller may see and do now: one query, whatever the number of grants; none for the system.

    The first thing that every service does, before anything is looked up.
    """
    if principal.is_system:
        return Sight(principal, is_alive=True, is_owner_everywhere=True)
    connection_id = principal.connection.id if principal.connection else None
    now = database.ops.adapt_datetimefield_value(clock.now())
    with database.cursor() as cursor:
        cursor.execute(_SIGHT, [connection_id, now, principal.identity_id, principal.organization_id])
        rows = cursor.fetchall()
    if not rows or rows[0][2] != connection_id:
        return Sight(principal)
    is_admin, is_read_only, *connection_columns = rows[0][:7]
    connection = None
    if principal.connection is not None:
        connection = _as_shown(principal.connection, connection_facts(*connection_columns))
    scopes = connection.folder_scopes if connection else None
    return Sight(
        replace(principal, connection=connection),
        is_alive=True,
        is_owner_everywhere=bool(is_admin),
        is_read_only=bool(is_read_only),
        granted={row[7]: Role.from_word(row[8]) for row in rows if row[7] is not None},
        caps=None if scopes is None else highest_by_folder(scopes),
    )


def content_sight_of(principal: Principal) -> Sight:
    """As ``sight_of``, for everything that reads or changes content or its folders.

    Raises Forbidden for the access builder: whatever is asked for, and before anything is looked up.
    """
    if principal.is_access_builder:
        raise Forbidden
    return sight_of(principal)


def highest_by_folder(scopes: Iterable[tuple[str, Role]]) -> dict[str, Role]:
    """The highest role that stands beside each folder."""
    caps: dict[str, Role] = {}
    for folder_id, role in scopes:
        caps[folder_id] = max(role, caps.get(folder_id, role))
    return caps


def _as_shown(shown: ConnectionFacts, now: ConnectionFacts) -> ConnectionFacts:
    # The connection as it is now, through a token that may carry less of it.
    capability = Capability.READ if shown.capability is Capability.READ else now.capability
    return replace(now, capability=capability, is_oauth=shown.is_oauth)


def _highest(roles: Mapping[str, Role], lineage: Sequence[str]) -> Role | None:
    return max((roles[folder_id] for folder_id in lineage if folder_id in roles), default=None)
