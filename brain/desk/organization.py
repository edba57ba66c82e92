"""The organization: how much there is, how the store does, and how far the backup is."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from access.models import Connection, Identity, Organization
from backup.services.add_backup_state import NOT_CONFIGURED, add_backup_state
from brain import health
from brain.desk import cells
from brain.desk.shown import Shown, address_of_row
from core.types import IdentityKind

BACKUP_IN_WORDS = {NOT_CONFIGURED: "No destination is set up, so nothing is backed up to Git."}


class Organizations(Shown):
    """One row an installation, so the list is its page."""

    fields = ("name", "id", "created", "people", "service_accounts", "connections", "readiness", "backup")
    readonly_fields = fields

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of the one organization."""
        only = Organization.objects.get()
        return HttpResponseRedirect(address_of_row("organization", only))

    @admin.display(description="created")
    def created(self, row: Organization) -> str:
        """When it was provisioned."""
        return cells.moment(row.created_at)

    @admin.display(description="people")
    def people(self, row: Organization) -> str:
        """How many can sign in."""
        return _active_of(Identity.objects.filter(organization=row, kind=IdentityKind.PERSON))

    @admin.display(description="service accounts")
    def service_accounts(self, row: Organization) -> str:
        """How many can connect."""
        return _active_of(Identity.objects.filter(organization=row, kind=IdentityKind.SERVICE_ACCOUNT))

    @admin.display(description="connections")
    def connections(self, row: Organization) -> str:
        """How many were not revoked."""
        return (
            f"{Connection.objects.filter(identity__organization=row, revoked_at=None).count():,} not revoked"
        )

    @admin.display(description="ready")
    def readiness(self, row: Organization) -> str:
        """What `/readyz` finds just now, with the reason that it keeps to itself."""
        trouble = health.trouble()
        return "Yes: database, store and disk were tried just now." if trouble is None else f"No: {trouble}"

    @admin.display(description="Git backup")
    def backup(self, row: Organization) -> str:
        """In words."""
        (entry,) = add_backup_state([{}])
        return BACKUP_IN_WORDS[entry["backup"]["state"]]


def _active_of(identities: Any) -> str:
    active = identities.filter(is_active=True).count()
    return f"{active:,} active, {identities.count() - active:,} disabled"
