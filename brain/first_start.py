"""The first start of an installation: database, organization, root folder, sample knowledge, administrator.

Each step looks whether it is done already, so a start that was cut off is finished by the next one, and one that was
finished does nothing. The administrator comes last: whoever has one is set up.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor

from access import credentials
from access.models import Identity, Organization
from access.principals import Principal, system_principal
from access.services.create_identity import create_person
from access.services.create_organization import create_organization, the_organization
from access.services.issue_token import issue_token
from core import safe_open
from core.errors import InvalidArgument
from core.locks import FileLock, Rank
from core.types import Capability, FolderLocator
from kb.services.browse_entries import browse_entries
from kb.services.browse_folders import browse_folders
from kb.services.import_markdown import import_markdown
from kb.store.data_format import check_format_if_any
from kb.store.stores import provision_store

SAMPLE = Path(__file__).parent / "sample"
DEFAULT_NAME = "Brain"
TOKEN_NAME = "first token"  # noqa: S105 - how it is listed
LOCK_FILE = "provision.lock"
WAIT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Provisioned:
    """What a first start made. A password or token is here only where it was made now; it is never seen again."""

    organization: str
    admin: str
    is_new_organization: bool
    is_new_admin: bool
    password: str | None = None
    token: str | None = None


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the right to prepare this data directory. Of two starts at once the second finds everything done."""
    directory = os.open(settings.DATA_DIR, safe_open.DIRECTORY_FLAGS)
    try:
        lock = FileLock(directory, LOCK_FILE, Rank.CHECKPOINT).acquire(wait_seconds=WAIT_SECONDS, make=True)
        # Before every other lock and outside their order: nobody who holds one of them waits for this.
        lock.keep()
        try:
            yield
        finally:
            lock.drop_kept()
    finally:
        os.close(directory)


def migrate() -> None:
    """Bring the database to this version; quick where it is. Raises UnknownFormat before anything is changed."""
    check_format_if_any(settings.DATA_DIR)
    settings.DATABASE_FILE.touch(mode=safe_open.PRIVATE_FILE)  # SQLite gives its other files the same mode
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)


def is_needed() -> bool:
    """Whether there is no organization, or one whose first start was cut off before it had an administrator."""
    return not Identity.objects.filter(is_admin=True).exists()


def provision(
    *,
    organization: str | None,
    admin: str,
    email: str = "",
    password: str | None = None,
    sample: bool = False,
    token: bool = False,
) -> Provisioned:
    """The organization with its root folder and this administrator, made as far as they are missing.

    ``organization`` is its name, or None for the one that is there, else ``Brain``. Without ``password`` a new
    administrator gets a random one. ``sample`` puts sample knowledge into an empty root, ``token`` gives a new
    administrator a first MCP token.

    The caller holds ``one_at_a_time``. Raises InvalidArgument, LimitExceeded, UsernameTaken, UnsuitableFilesystem,
    UnknownFormat, OSError.
    """
    migrate()
    found, is_new_organization = _organization(organization)
    provision_store(found.id)
    system = system_principal(found.id)
    if sample and _is_empty(system):
        import_markdown(system, SAMPLE, "")
    return _with_admin(
        found,
        admin,
        email=email,
        password=password,
        token=token,
        is_new_organization=is_new_organization,
    )


def _organization(name: str | None) -> tuple[Organization, bool]:
    found = the_organization()
    if found is None:
        return create_organization(name or DEFAULT_NAME), True
    if name is not None and found.name != name:
        raise InvalidArgument(
            "organization",
            f"This installation belongs to {found.name!r}; an installation has one organization.",
        )
    return found, False


def _with_admin(
    organization: Organization,
    username: str,
    *,
    email: str,
    password: str | None,
    token: bool,
    is_new_organization: bool,
) -> Provisioned:
    identity = Identity.objects.filter(username=username).first()
    if identity is not None:
        if not identity.is_admin:
            raise InvalidArgument("admin", f"There is an account {username!r} that is not an administrator.")
        return Provisioned(organization.name, username, is_new_organization, is_new_admin=False)
    system = system_principal(organization.id)
    generated = None if password else credentials.new_password()
    made = create_person(
        system, username=username, password=password or generated or "", email=email, is_admin=True
    )
    issued = (
        issue_token(system, made.id, name=TOKEN_NAME, capability=Capability.WRITE).token if token else None
    )
    return Provisioned(
        organization.name,
        username,
        is_new_organization,
        is_new_admin=True,
        password=generated,
        token=issued,
    )


def _is_empty(principal: Principal) -> bool:
    root = FolderLocator()
    folders = browse_folders(principal, root, limit=1).items
    return not folders and not browse_entries(principal, root, limit=1).items
