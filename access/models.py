"""What the database keeps: who there is, what they were granted, what connects for them, and who changed that.

No content, no metadata and no versions are kept here. Rows are written by ``access.services`` alone: a row saved by
other means skips the Owner check, the folder's ACL version and the audit.
"""

from datetime import timedelta
from typing import Any, ClassVar, NoReturn

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import Permission
from django.db import models
from django.db.models import ProtectedError, Q, QuerySet
from django.db.models.functions import Lower
from guardian.models import UserObjectPermissionBase
from oauth2_provider.models import AbstractGrant

from access.oauth import capability_of
from core import clock, ids, limits
from core.errors import NotFound
from core.types import Capability, ConnectionKind, IdentityKind, Role

USERNAME_MAX = limits.USERNAME_MAX_CHARACTERS
ID_MAX = limits.ID_MAX_CHARACTERS
NAME_MAX = limits.DISPLAY_NAME_MAX_CHARACTERS
WORD_MAX = 32


def new_identity_id() -> str:
    """The default of ``Identity.id``."""
    return ids.new_id(ids.IDENTITY)


def new_connection_id() -> str:
    """The default of ``Connection.id``."""
    return ids.new_id(ids.CONNECTION)


def new_organization_id() -> str:
    """The default of ``Organization.id``."""
    return ids.new_id(ids.ORGANIZATION)


class Organization(models.Model):
    """Whose knowledge this is. One row an installation."""

    id = models.CharField(primary_key=True, max_length=ID_MAX, default=new_organization_id)
    name = models.CharField(max_length=NAME_MAX)
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        default_permissions = ()
        verbose_name_plural = "organization"

    def __str__(self) -> str:
        return self.name


class IdentityQuerySet(QuerySet["Identity"]):
    """Identities are disabled, never deleted."""

    def delete(self) -> NoReturn:
        raise ProtectedError("Identities are disabled, never deleted.", set(self))


class Identities(BaseUserManager["Identity"]):
    """Where identities are found."""

    def get_queryset(self) -> IdentityQuerySet:
        return IdentityQuerySet(self.model, using=self._db)

    def find(self, organization_id: str, identity_id: str, *, lock: bool = False) -> "Identity":
        """The organization's identity with this id, ``lock`` for a change of it. Raises NotFound."""
        found = self.get_queryset().filter(id=identity_id, organization_id=organization_id)
        identity = (found.select_for_update() if lock else found).first()
        if identity is None:
            raise NotFound
        return identity


class Identity(AbstractBaseUser):
    """A person or a service account. Disabled, never deleted, so that what they did keeps its name."""

    KINDS: ClassVar = [
        (IdentityKind.PERSON.value, "person"),
        (IdentityKind.SERVICE_ACCOUNT.value, "service account"),
    ]

    id = models.CharField(primary_key=True, max_length=ID_MAX, default=new_identity_id)
    organization = models.ForeignKey(Organization, models.PROTECT)
    kind = models.CharField(max_length=WORD_MAX, choices=KINDS)
    username = models.CharField(max_length=USERNAME_MAX, unique=True)
    name = models.CharField("display name", max_length=NAME_MAX)
    email = models.EmailField(blank=True)
    description = models.CharField("what it is for", max_length=limits.PURPOSE_MAX_CHARACTERS, blank=True)
    is_active = models.BooleanField("active", default=True)
    is_admin = models.BooleanField("administrator", default=False)
    is_read_only = models.BooleanField("read-only", default=False)  # Reader at most, whatever was granted
    created_at = models.DateTimeField(default=clock.now)

    objects: ClassVar[Identities] = Identities()

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        default_permissions = ()
        verbose_name_plural = "identities"
        constraints: ClassVar = [
            models.UniqueConstraint(Lower("username"), name="username_unique_without_case"),
            # Django marks a password that no input matches with "!".
            models.CheckConstraint(
                condition=~Q(kind="service_account") | Q(password__startswith="!", is_admin=False),  # noqa: S106
                name="service_account_has_no_password",
            ),
        ]

    def __str__(self) -> str:
        return self.username

    @property
    def is_person(self) -> bool:
        """Whether this is somebody who signs in with a password."""
        return self.kind == IdentityKind.PERSON

    @property
    def is_staff(self) -> bool:
        """Whether Django's admin lets them in."""
        return self.is_admin and self.is_person and self.is_active

    def has_perm(self, perm: str, obj: object = None) -> bool:
        """Django's own permissions give nothing: ``access.authorizer`` judges."""
        return False

    def has_perms(self, perm_list: Any, obj: object = None) -> bool:
        """Django's own permissions give nothing: ``access.authorizer`` judges."""
        return False

    def has_module_perms(self, app_label: str) -> bool:
        """Django's own permissions give nothing: ``access.authorizer`` judges."""
        return False

    def delete(self, using: Any = None, keep_parents: bool = False) -> NoReturn:
        """Refuse. Raises ProtectedError."""
        raise ProtectedError("Identities are disabled, never deleted.", {self})


class Person(Identity):
    """The identities that sign in, as a list of their own."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name_plural = "people"


class ServiceAccount(Identity):
    """The identities that connect by token alone, as a list of their own."""

    class Meta:
        proxy = True
        default_permissions = ()


class Folder(models.Model):
    """The access side of a folder: made at its first direct grant. No row means no direct grant and version 0.

    ``acl_version`` counts the changes of the folder's own grants. Its permissions are the three roles.
    """

    id = models.CharField(primary_key=True, max_length=ID_MAX)
    organization = models.ForeignKey(Organization, models.PROTECT)
    acl_version = models.PositiveBigIntegerField(default=0)

    class Meta:
        default_permissions = ()
        permissions: ClassVar = [
            (Role.READER.word, "Browse, search and read"),
            (Role.EDITOR.word, "Read and change"),
            (Role.OWNER.word, "Change and manage access"),
        ]

    def __str__(self) -> str:
        return self.id


class FolderGrant(UserObjectPermissionBase):
    """One identity's one role on one folder and everything below it; a change of role is an UPDATE.

    A row of django-guardian's, in a table of our own: guardian finds it, and ``access.authorizer`` reads it directly.
    """

    # Cascades in guardian; here nothing may take a grant away unseen.
    user = models.ForeignKey(Identity, models.PROTECT, related_name="grants")
    permission = models.ForeignKey(Permission, models.PROTECT)
    content_object = models.ForeignKey(Folder, models.PROTECT, related_name="grants")

    class Meta(UserObjectPermissionBase.Meta):
        default_permissions = ()
        verbose_name = "grant"
        unique_together: ClassVar = []
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "content_object"], name="one_role_on_a_folder")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.content_object_id}"

    @property
    def role(self) -> Role:
        """The role, read from the permission's name."""
        return Role.from_word(self.permission.codename)


class Connections(models.Manager["Connection"]):
    """Where connections are found."""

    def find(self, organization_id: str, connection_id: str, *, lock: bool = False) -> "Connection":
        """The organization's connection with this id and its identity, ``lock`` for a change. Raises NotFound."""
        found = self.get_queryset().select_related("identity")
        if lock:
            found = found.select_for_update(of=("self",))
        connection = found.filter(id=connection_id, identity__organization_id=organization_id).first()
        if connection is None:
            raise NotFound
        return connection


class Connection(models.Model):
    """What an agent connects through to act for one identity, and what narrows it. Revoked, never deleted.

    Either a token, of which only its hash is kept and as much of its text as people need to tell two apart. Or an
    OAuth client that the person allowed in: its short-lived tokens are django-oauth-toolkit's rows, one
    ``token_family`` a connection, and what they may do stands here.

    ``folder_scopes`` is None where nothing is narrowed, else a list of ``{"folder_id", "max_role"}``; an empty list
    gives no content.
    """

    CAPABILITIES: ClassVar = [(capability.value, capability.value) for capability in Capability]
    KINDS: ClassVar = [(kind.value, kind.value) for kind in ConnectionKind]

    id = models.CharField(primary_key=True, max_length=ID_MAX, default=new_connection_id)
    identity = models.ForeignKey(Identity, models.PROTECT, related_name="connections")
    name = models.CharField(max_length=limits.TOKEN_NAME_MAX_CHARACTERS)
    token_hash = models.CharField(max_length=64, unique=True, null=True)  # noqa: DJ001 - unique where there is one
    prefix = models.CharField(max_length=8, db_index=True, blank=True)
    last_four = models.CharField(max_length=4, blank=True)
    token_family = models.UUIDField(unique=True, null=True)
    # Forgotten registrations leave their connections behind; the host is what a person can judge a client by.
    client = models.ForeignKey("oauth2_provider.Application", models.SET_NULL, null=True, related_name="+")
    client_host = models.CharField(max_length=limits.HOST_MAX_CHARACTERS, blank=True)
    capability = models.CharField(max_length=WORD_MAX, choices=CAPABILITIES)
    kind = models.CharField(max_length=WORD_MAX, choices=KINDS)
    folder_scopes = models.JSONField(null=True)
    created_at = models.DateTimeField(default=clock.now)
    created_by = models.CharField(max_length=USERNAME_MAX)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    # The one that took over when this one's token was rotated.
    replaced_by = models.OneToOneField("self", models.PROTECT, null=True, related_name="replaces")

    objects: ClassVar[Connections] = Connections()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(token_hash__isnull=True) ^ Q(token_family__isnull=True),
                name="connection_has_one_kind_of_token",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.shown_token})"

    @property
    def is_oauth(self) -> bool:
        """Whether an OAuth client holds it: its tokens renew themselves, and nobody has ever seen them."""
        return self.token_family is not None

    @property
    def shown_token(self) -> str:
        """As much of the token as may be shown; of an OAuth client where it sends people back to."""
        return f"OAuth, {self.client_host}" if self.is_oauth else f"brn_{self.prefix}…{self.last_four}"

    @property
    def lifetime(self) -> timedelta:
        """From its making to its expiry. Only of a token that expires."""
        assert self.expires_at is not None
        return self.expires_at - self.created_at

    @property
    def content_access(self) -> bool:
        """Whether the connection can reach any content at all."""
        return self.folder_scopes != []


class RequestOutcome(models.Model):
    """What a request to change access led to, kept seven days: a retry gets the same answer and has no second effect.

    ``key`` is ``core.ids.request_key``; ``arguments_hash`` tells another request with the same id.
    """

    key = models.CharField(primary_key=True, max_length=64)
    arguments_hash = models.CharField(max_length=64)
    at = models.DateTimeField(default=clock.now, db_index=True)
    result = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.key


class AuthorizationCode(AbstractGrant):  # type: ignore[misc]
    """What a person allowed an OAuth client, from their consent until the client has come for its tokens.

    ``code`` is the SHA-256 of the code. The row stays after its use until the sweep, since a code that is shown twice
    was stolen: then ``connection_id``, which the connection was given at the consent, tells what to end.
    """

    # A cascade in the library; here identities are never deleted.
    user = models.ForeignKey(Identity, models.PROTECT, related_name="+")
    connection_id = models.CharField(max_length=ID_MAX, default=new_connection_id, unique=True)
    folder_scopes = models.JSONField(null=True)
    redeemed_at = models.DateTimeField(null=True)

    class Meta(AbstractGrant.Meta):  # type: ignore[misc]
        default_permissions = ()

    @property
    def capability(self) -> Capability:
        """What the person allowed."""
        return capability_of(self.scope.split())


class AuditEvent(models.Model):
    """Who did what to whose access, where, and through what. Rows are added and never changed or removed.

    Names stand here as text, as they were; the database itself refuses to update and delete (migration 0002).
    ``refusal`` is the error code of an attempt that was refused, and empty for what was done.
    """

    organization = models.ForeignKey(Organization, models.PROTECT)
    at = models.DateTimeField(default=clock.now)
    action = models.CharField(max_length=WORD_MAX)
    refusal = models.CharField(max_length=WORD_MAX, blank=True)

    actor_id = models.CharField(max_length=ID_MAX)
    actor_kind = models.CharField(max_length=WORD_MAX)
    actor_username = models.CharField(max_length=USERNAME_MAX)
    actor_name = models.CharField(max_length=NAME_MAX)
    # "shell", "session", "chat" or "connection", and of a connection which.
    through = models.CharField(max_length=WORD_MAX)
    through_id = models.CharField(max_length=ID_MAX, blank=True)
    through_name = models.CharField(max_length=limits.TOKEN_NAME_MAX_CHARACTERS, blank=True)

    subject_id = models.CharField(max_length=ID_MAX, blank=True)
    subject_username = models.CharField(max_length=USERNAME_MAX, blank=True)
    folder_id = models.CharField(max_length=ID_MAX, blank=True)
    folder_path = models.TextField(blank=True)
    token_id = models.CharField(max_length=ID_MAX, blank=True)
    token_name = models.CharField(max_length=limits.TOKEN_NAME_MAX_CHARACTERS, blank=True)
    before = models.TextField(blank=True)
    after = models.TextField(blank=True)

    class Meta:
        default_permissions = ()
        verbose_name_plural = "audit events"
        indexes: ClassVar = [
            models.Index(fields=["subject_id"], name="audit_by_subject"),
            models.Index(fields=["folder_id"], name="audit_by_folder"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor_username} {self.action}"
