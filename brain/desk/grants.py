"""Grants, to look at. They are changed on the access page of their folder, by whoever owns it."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest

from access.principals import system_principal
from brain.desk import cells
from brain.desk.shown import Shown
from kb.services.locate_folders import locate_folders


class NamedFolders(ChangeList):
    """A page of the list that knows the paths of all its folders at once."""

    def get_results(self, request: HttpRequest) -> None:
        """As Django's, with ``folder_path`` on each row."""
        super().get_results(request)
        rows = list(self.result_list)
        _name(rows)
        self.result_list = rows


def _name(rows: list[Any]) -> None:
    if rows:
        places = locate_folders(
            system_principal(rows[0].content_object.organization_id), [row.content_object_id for row in rows]
        )
        for row in rows:
            place = places.get(row.content_object_id)
            row.folder_path = None if place is None else place.path


class Grants(Shown):
    """One identity's role on one folder and everything below."""

    list_display = ("user", "role_here", "folder", "manage")
    list_filter = ("permission__codename",)
    search_fields = ("user__username", "user__name")
    ordering = ("user__username", "id")
    fields = ("user", "role_here", "folder", "manage")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """With everything a row names."""
        return super().get_queryset(request).select_related("user", "permission", "content_object")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """One that names the folders of a page together."""
        return NamedFolders

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The grant, with its folder named."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            _name([row])
        return row

    @admin.display(description="role", ordering="permission__codename")
    def role_here(self, row: Any) -> str:
        """The role."""
        return cells.role_word(row.role)

    @admin.display(description="folder and everything below")
    def folder(self, row: Any) -> str:
        """Where."""
        return cells.folder(row.folder_path)

    @admin.display(description="change")
    def manage(self, row: Any) -> str:
        """The form that goes through the services."""
        return cells.access_link(row.folder_path, "Manage access")
