"""People and service accounts."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth import update_session_auth_hash
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from access.models import FolderGrant, Identity
from access.principals import system_principal
from access.services.change_identity import change_identity
from access.services.create_identity import create_person, create_service_account
from access.services.list_tokens import state_of
from access.services.set_active import disable_identity, enable_identity
from access.services.set_password import set_password
from brain.desk import cells
from brain.desk.shown import Deed, Shown
from brain.desk.site import principal_at
from core.types import IdentityKind
from kb.services.locate_folders import locate_folders


class NewPassword(forms.Form):
    """A password, typed twice."""

    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}), strip=False
    )
    again = forms.CharField(
        label="Password again",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        strip=False,
    )

    def clean(self) -> dict[str, Any]:
        """Both the same."""
        cleaned = super().clean() or {}
        if "password" in cleaned and "again" in cleaned and cleaned["password"] != cleaned["again"]:
            self.add_error("again", "The two passwords differ.")
        return cleaned


class NewPerson(NewPassword):
    """Somebody who will sign in."""

    field_order = ("username", "name", "email", "is_admin", "password", "again")
    username = forms.CharField(
        label="User name",
        help_text="1 to 64 of a–z, 0–9, “.”, “_”, “-”, beginning with a letter or digit. It stays.",
    )
    name = forms.CharField(
        label="Display name", required=False, help_text="The user name stands for it if empty."
    )
    email = forms.CharField(label="E-mail", required=False)
    is_admin = forms.BooleanField(
        label="Administrator",
        required=False,
        help_text="Owner of everything, and in charge of accounts and tokens.",
    )


class PersonFacts(forms.Form):
    """What an administrator may change of a person."""

    name = forms.CharField(label="Display name")
    email = forms.CharField(label="E-mail", required=False)
    is_admin = forms.BooleanField(
        label="Administrator",
        required=False,
        help_text="Owner of everything, and in charge of accounts and tokens.",
    )
    is_read_only = forms.BooleanField(
        label="Read-only", required=False, help_text="Reader at most, whatever was granted."
    )


class NewServiceAccount(forms.Form):
    """Somebody who will connect by token alone."""

    username = forms.CharField(
        label="Name",
        help_text="1 to 64 of a–z, 0–9, “.”, “_”, “-”, beginning with a letter or digit. It stays.",
    )
    name = forms.CharField(label="Display name", required=False, help_text="The name stands for it if empty.")
    description = forms.CharField(label="What it is for", required=False)


class ServiceAccountFacts(forms.Form):
    """What an administrator may change of a service account."""

    name = forms.CharField(label="Display name")
    description = forms.CharField(label="What it is for", required=False)
    is_read_only = forms.BooleanField(
        label="Read-only", required=False, help_text="Reader at most, whatever was granted."
    )


class TypedName(forms.Form):
    """The account's own name, so that the right one is disabled."""

    typed = forms.CharField(label="Type the name of the account")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.expected = self.initial.get("expected", "")

    def clean_typed(self) -> str:
        """What was typed, if it is the name."""
        typed: str = self.cleaned_data["typed"]
        if typed != self.expected:
            raise forms.ValidationError(f"That is not {self.expected}.")
        return typed


def _facts(identity: Identity) -> dict[str, Any]:
    return {
        "name": identity.name,
        "email": identity.email,
        "description": identity.description,
        "is_admin": identity.is_admin,
        "is_read_only": identity.is_read_only,
    }


def _create_person(request: HttpRequest, _row: None, given: dict[str, Any]) -> str:
    facts = {fact: given[fact] for fact in ("username", "name", "email", "is_admin", "password")}
    return f"{create_person(principal_at(request), **facts).username} can sign in now."


def _create_service_account(request: HttpRequest, _row: None, given: dict[str, Any]) -> str:
    account = create_service_account(principal_at(request), **given)
    return f"{account.username} is there. Grant it a role on a folder and issue a token for it."


def _change(request: HttpRequest, identity: Identity, given: dict[str, Any]) -> str:
    change_identity(principal_at(request), identity.id, **given)
    return f"{identity.username} was changed."


def _set_password(request: HttpRequest, identity: Identity, given: dict[str, Any]) -> str:
    changed = set_password(principal_at(request), identity.id, given["password"])
    if changed.id == principal_at(request).identity_id:
        update_session_auth_hash(request, changed)  # one's other sessions end, not the one that did it
    return f"{identity.username} has a new password; their sessions have ended."


def _disable(request: HttpRequest, identity: Identity, _given: dict[str, Any]) -> str:
    disable_identity(principal_at(request), identity.id)
    return f"{identity.username} is disabled, and so are all sessions and tokens of the account."


def _enable(request: HttpRequest, identity: Identity, _given: dict[str, Any]) -> str:
    enable_identity(principal_at(request), identity.id)
    return f"{identity.username} is enabled again."


DISABLE = Deed(
    name="disable",
    label="Disable",
    question=lambda row: (
        f"Disable {row.username}? Every session and every token stops at once. Grants and tokens are kept, and count "
        "again when the account is enabled."
    ),
    run=_disable,
    form=TypedName,
    initial=lambda row: {"expected": row.username},
    is_possible=lambda row: row.is_active,
    is_grave=True,
)
ENABLE = Deed(
    name="enable",
    label="Enable",
    question=lambda row: (
        f"Enable {row.username}? Its grants, its tokens and, for a person, its sessions count again."
    ),
    run=_enable,
    is_possible=lambda row: not row.is_active,
)


class Identities(Shown):
    """What both kinds have in common."""

    kind: IdentityKind
    search_fields: ClassVar[tuple[str, ...]] = ("username", "name")
    ordering = ("username",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Those of this kind."""
        return super().get_queryset(request).filter(kind=self.kind)

    def links_of(self, row: Identity) -> list[tuple[str, str]]:
        """The rows elsewhere that are about this account."""
        return [
            ("Connections", f"{reverse('admin:access_connection_changelist')}?identity__id__exact={row.id}"),
            ("Audit", f"{reverse('admin:access_auditevent_changelist')}?subject_id={row.id}"),
        ]

    @admin.display(description="state", ordering="is_active")
    def state(self, row: Identity) -> str:
        """Whether the account is in use."""
        return "active" if row.is_active else "disabled"

    @admin.display(description="created", ordering="created_at")
    def created(self, row: Identity) -> str:
        """When the account was made."""
        return cells.moment(row.created_at)

    @admin.display(description="effective folders")
    def folders(self, row: Identity) -> str:
        """Where the account has a role of its own. Each counts for everything below its folder as well."""
        if row.is_staff:
            return "Everything, as an administrator."
        grants = list(FolderGrant.objects.filter(user_id=row.pk).select_related("permission"))
        places = locate_folders(
            system_principal(row.organization_id), [grant.content_object_id for grant in grants]
        )
        shown = sorted(
            (places[grant.content_object_id].path, grant.role)
            for grant in grants
            if grant.content_object_id in places
        )
        gone = len(grants) - len(shown)
        rows: list[list[object]] = [
            [cells.folder(path), cells.role_word(role), cells.access_link(path, "Manage access")]
            for path, role in shown
        ]
        if gone:
            rows.append([f"{gone} on folders that are gone", "", ""])
        return cells.table(["folder and everything below", "role", ""], rows, "No grants, so no access.")

    @admin.display(description="tokens")
    def tokens(self, row: Identity) -> str:
        """The account's connections, the newest first."""
        connections = row.connections.order_by("-created_at")
        return cells.table(
            ["name", "token", "may", "state", "last used", "expires"],
            (
                [
                    cells.row_link(connection, "connection", connection.name),
                    connection.shown_token,
                    f"{connection.capability}, {connection.kind}",
                    state_of(connection),
                    cells.moment(connection.last_used_at),
                    cells.moment(connection.expires_at),
                ]
                for connection in connections
            ),
            "No tokens.",
        )


class People(Identities):
    """Those who sign in."""

    kind = IdentityKind.PERSON
    list_display = ("username", "name", "email", "state", "is_admin", "is_read_only", "signed_in", "created")
    list_filter = ("is_active", "is_admin", "is_read_only")
    search_fields: ClassVar[tuple[str, ...]] = ("username", "name", "email")
    fields = (
        "username",
        "name",
        "email",
        "state",
        "is_admin",
        "is_read_only",
        "signed_in",
        "created",
        "folders",
        "tokens",
    )
    readonly_fields = fields
    deeds = (
        Deed("new", "New person", lambda row: "Who is it?", _create_person, form=NewPerson, on_list=True),
        Deed(
            "edit",
            "Change",
            lambda row: f"What is known of {row.username}.",
            _change,
            form=PersonFacts,
            initial=_facts,
        ),
        Deed(
            "password",
            "Set password",
            lambda row: (
                f"A new password for {row.username}. Their sessions end; tokens are revoked one by one."
            ),
            _set_password,
            form=NewPassword,
        ),
        DISABLE,
        ENABLE,
    )

    @admin.display(description="last signed in", ordering="last_login")
    def signed_in(self, row: Identity) -> str:
        """When they last came in through the browser."""
        return cells.moment(row.last_login)


class ServiceAccounts(Identities):
    """Those who connect by token alone."""

    kind = IdentityKind.SERVICE_ACCOUNT
    list_display = ("username", "name", "state", "is_read_only", "created")
    list_filter = ("is_active", "is_read_only")
    fields = ("username", "name", "description", "state", "is_read_only", "created", "folders", "tokens")
    readonly_fields = fields
    deeds = (
        Deed(
            "new",
            "New service account",
            lambda row: "A service account has no password and cannot sign in.",
            _create_service_account,
            form=NewServiceAccount,
            on_list=True,
        ),
        Deed(
            "edit",
            "Change",
            lambda row: f"What is known of {row.username}.",
            _change,
            form=ServiceAccountFacts,
            initial=_facts,
        ),
        DISABLE,
        ENABLE,
    )

    def links_of(self, row: Identity) -> list[tuple[str, str]]:
        """Tokens are issued where their text can be shown once."""
        return [("Issue a token", f"/tokens/?identity={row.id}"), *super().links_of(row)]
