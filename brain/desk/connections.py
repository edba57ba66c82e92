"""Connections: the tokens that agents show."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from access.models import Connection
from access.principals import system_principal
from access.services.list_tokens import state_of
from access.services.revoke_token import revoke_token
from brain.desk import cells
from brain.desk.shown import Deed, Shown
from brain.desk.site import principal_at
from core import clock
from kb.services.locate_folders import locate_folders


class State(admin.SimpleListFilter):
    """Active, expired or revoked."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The three."""
        return [("active", "active"), ("expired", "expired"), ("revoked", "revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Connection]) -> QuerySet[Connection]:
        """Those in the chosen state."""
        now = clock.now()
        match self.value():
            case "active":
                return queryset.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
            case "expired":
                return queryset.filter(expires_at__lte=now, revoked_at=None)
            case "revoked":
                return queryset.exclude(revoked_at=None)
        return queryset


def _revoke(request: HttpRequest, connection: Connection, _given: dict[str, Any]) -> str:
    revoke_token(principal_at(request), connection.id)
    return f"{connection.name} is revoked."


class Connections(Shown):
    """Every token there was; none is ever removed."""

    list_display = (
        "name",
        "identity",
        "shown_token",
        "capability",
        "kind",
        "caps",
        "state",
        "used",
        "expires",
    )
    list_filter = (State, "capability", "kind")
    list_select_related = ("identity",)
    search_fields = ("name", "identity__username", "prefix")
    ordering = ("-created_at",)
    fields = (
        "name",
        "holder",
        "shown_token",
        "capability",
        "kind",
        "folders",
        "state",
        "used",
        "created",
        "created_by",
        "expires",
        "revoked",
    )
    readonly_fields = fields
    deeds = (
        Deed(
            "revoke",
            "Revoke",
            lambda row: f"Revoke {row.name} of {row.identity.username}? It stops at once and for good.",
            _revoke,
            is_possible=lambda row: row.revoked_at is None,
            is_grave=True,
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """With the accounts that they act for."""
        return super().get_queryset(request).select_related("identity")

    @admin.display(description="acts for")
    def holder(self, row: Connection) -> str:
        """The account."""
        return cells.row_link(row.identity, cells.list_of(row.identity), row.identity.username)

    @admin.display(description="folder caps")
    def caps(self, row: Connection) -> str:
        """How many folders narrow it."""
        if row.folder_scopes is None:
            return "none"
        return f"{len(row.folder_scopes)} folders" if row.folder_scopes else "no content"

    @admin.display(description="folder caps")
    def folders(self, row: Connection) -> str:
        """The folders that narrow it, with the highest role in each."""
        if row.folder_scopes is None:
            return "Not narrowed: wherever the account may go."
        places = locate_folders(
            system_principal(row.identity.organization_id),
            [scope["folder_id"] for scope in row.folder_scopes],
        )
        return cells.table(
            ["folder and everything below", "at most"],
            (
                [cells.folder(place.path if place else None), scope["max_role"]]
                for scope in row.folder_scopes
                for place in [places.get(scope["folder_id"])]
            ),
            "No content at all.",
        )

    @admin.display(description="state")
    def state(self, row: Connection) -> str:
        """Whether it works now."""
        return state_of(row) if row.identity.is_active else "account disabled"

    @admin.display(description="last used", ordering="last_used_at")
    def used(self, row: Connection) -> str:
        """To the hour."""
        return cells.moment(row.last_used_at)

    @admin.display(description="created", ordering="created_at")
    def created(self, row: Connection) -> str:
        """When it was issued."""
        return cells.moment(row.created_at)

    @admin.display(description="expires", ordering="expires_at")
    def expires(self, row: Connection) -> str:
        """When it ends by itself."""
        return cells.moment(row.expires_at)

    @admin.display(description="revoked")
    def revoked(self, row: Connection) -> str:
        """When somebody ended it."""
        return cells.moment(row.revoked_at)
