"""A small organization to tell stories in: real database, real files, and people by their names."""

from django.conf import settings

from access import credentials
from access.models import Connection, Folder, FolderGrant, Identity
from access.principals import Principal, principal_of_identity, system_principal
from access.services.create_identity import create_person, create_service_account
from access.services.create_organization import create_organization
from access.services.grant_role import grant_role
from access.services.issue_token import issue_token
from access.services.revoke_role import revoke_role
from access.services.set_active import disable_identity
from core.types import Capability, ConnectionKind, EntryLocator, FolderLocator, FolderRef, Role
from kb.entry import Entry
from kb.services.create_entry import create_entry
from kb.services.create_folder import create_folder_path
from kb.services.locate_folder import locate_folder
from kb.services.read_entry import read_entry
from kb.store.stores import provision_store

PASSWORD = "correct horse battery staple"


class World:
    """One organization with its store. People and folders come into being when a test names them.

    ``person`` and ``service_account`` return principals, as services take them.
    """

    def __init__(self) -> None:
        self.organization_id = create_organization("Acme").id
        provision_store(self.organization_id)
        self.system = system_principal(self.organization_id)

    def person(
        self,
        username: str,
        *,
        role: Role | None = None,
        on: str = "",
        is_admin: bool = False,
        is_read_only: bool = False,
    ) -> Principal:
        """Somebody in a browser session; their password is ``PASSWORD``."""
        identity = create_person(self.system, username=username, password=PASSWORD, is_admin=is_admin)
        if is_read_only:
            Identity.objects.filter(id=identity.id).update(is_read_only=True)
        if role is not None:
            self.grant(username, role, on)
        return principal_of_identity(identity)

    def service_account(
        self,
        username: str,
        *,
        role: Role | None = None,
        on: str = "",
        capability: Capability = Capability.WRITE,
        kind: ConnectionKind = ConnectionKind.EXTERNAL,
    ) -> Principal:
        """A service account, connected through a token that no folder narrows."""
        create_service_account(self.system, username=username)
        if role is not None:
            self.grant(username, role, on)
        return self.through(self.token(username, capability=capability, kind=kind))

    def token(
        self,
        username: str,
        *,
        name: str = "laptop",
        capability: Capability = Capability.WRITE,
        kind: ConnectionKind = ConnectionKind.EXTERNAL,
        scopes: dict[str, Role] | None = None,
        expires_in_days: int | None = None,
    ) -> str:
        """The text of a new token; ``scopes`` are caps by folder path, an empty dict is no content."""
        return issue_token(
            self.system,
            self.identity(username).id,
            name=name,
            capability=capability,
            kind=kind,
            folder_scopes=None
            if scopes is None
            else [(self.folder(path), cap) for path, cap in scopes.items()],
            expires_in_days=expires_in_days,
        ).token

    def through(self, token: str) -> Principal:
        """Whoever shows this token."""
        return credentials.authenticate_token(token)

    def connection(self, token: str) -> Connection:
        """The row of a token."""
        return Connection.objects.get(token_hash=credentials.hash_of(token))

    def identity(self, username: str) -> Identity:
        """The row of a person or service account."""
        return Identity.objects.get(username=username)

    def grant(self, username: str, role: Role, on: str = "") -> None:
        """Give a role on a folder, as the shell does."""
        grant_role(self.system, self.folder(on), self.identity(username).id, role)

    def revoke(self, username: str, on: str = "") -> None:
        """Take the direct role away, as the shell does."""
        revoke_role(self.system, self.folder(on), self.identity(username).id)

    def disable(self, username: str) -> None:
        """Disable an account, as the shell does."""
        disable_identity(self.system, self.identity(username).id)

    def folder(self, path: str) -> FolderRef:
        """The folder of this path, made with its parents where it is missing."""
        if path:
            return create_folder_path(self.system, path)
        return locate_folder(self.system, FolderLocator())

    def entry(self, path: str, content: str = "", *, title: str = "", type: str = "note") -> Entry:
        """A new entry with the folders above it, as the system writes it."""
        folder_path, _, filename = path.rpartition("/")
        return create_entry(
            self.system,
            None,
            FolderLocator(folder_id=self.folder(folder_path).id),
            filename=filename,
            type=type,
            title=title or filename.removesuffix(".md"),
            content=content,
        ).entry

    def files(self) -> dict[str, bytes]:
        """Every byte of the organization's files but the claims, which are locks."""
        top = settings.DATA_DIR / "orgs" / self.organization_id
        return {
            str(path.relative_to(top)): path.read_bytes()
            for path in sorted(top.rglob("*"))
            if path.is_file() and "claims" not in path.relative_to(top).parts
        }

    def text_of(self, path: str) -> str:
        """What is stored under this path."""
        return read_entry(self.system, EntryLocator(path=path)).content

    def grants(self) -> set[tuple[str, str, Role]]:
        """Every grant there is: username, folder id, role."""
        rows = FolderGrant.objects.select_related("user", "permission")
        return {(row.user.username, row.content_object_id, row.role) for row in rows}

    def acl_version(self, path: str) -> int:
        """How often the grants of this one folder were changed."""
        row = Folder.objects.filter(id=self.folder(path).id).first()
        return row.acl_version if row else 0
