"""What every list of the desk has in common: it shows, and has deeds for what can be done.

A deed is a page with a question and perhaps a few fields; sent, it calls one service.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse

from brain.desk.site import desk
from core.errors import BrainError, NotFound

if TYPE_CHECKING:
    ShownAdmin = admin.ModelAdmin[Any]
else:
    ShownAdmin = admin.ModelAdmin

Run = Callable[[HttpRequest, Any, dict[str, Any]], str | HttpResponse]


class NoFields(forms.Form):
    """A question to be confirmed, nothing more."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that an administrator can do with a row, or, ``on_list``, without one.

    ``run`` calls the service and returns the sentence that says what happened, or an answer of its own.
    ``question`` and ``initial`` get the row, None on a list; ``is_possible`` hides the deed where it makes no sense.
    """

    name: str
    label: str
    question: Callable[[Any], str]
    run: Run
    form: type[forms.Form] = NoFields
    initial: Callable[[Any], dict[str, Any]] = lambda row: {}
    is_possible: Callable[[Any], bool] = lambda row: True
    on_list: bool = False
    is_grave: bool = False


class Shown(ShownAdmin):
    """Rows that this site shows and never writes. What can be done with them are ``deeds``."""

    deeds: Sequence[Deed] = ()
    media = forms.Media()  # the scripts of Django's forms; there are none here
    actions = None
    view_on_site = False
    list_per_page = 50
    show_full_result_count = False
    change_list_template = "desk/list.html"
    change_form_template = "desk/row.html"

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whoever is let in sees every list."""
        return desk.has_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever is let in sees every row."""
        return desk.has_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows come from services."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are changed by services."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nothing here is ever deleted."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """List and row, and a page for each deed; none of Django's for adding, deleting and its own history."""
        changelist, *_, change, _redirect = super().get_urls()
        of_list = [
            path(f"{deed.name}/", self._page_of(deed), name=self._name_of(deed))
            for deed in self.deeds
            if deed.on_list
        ]
        of_rows = [
            path(f"<path:object_id>/{deed.name}/", self._page_of(deed), name=self._name_of(deed))
            for deed in self.deeds
            if not deed.on_list
        ]
        return [changelist, *of_list, *self.more_urls(), *of_rows, change]

    def more_urls(self) -> list[URLPattern]:
        """Addresses of this list alone."""
        return []

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, with what can be done without a row."""
        tools = [(deed.label, reverse(f"admin:{self._name_of(deed)}")) for deed in self.deeds if deed.on_list]
        title = self.opts.verbose_name_plural.capitalize()  # type: ignore[union-attr]
        context = {"tools": tools + self.more_tools(request), "title": title, **(extra_context or {})}
        return super().changelist_view(request, context)

    def more_tools(self, request: HttpRequest) -> list[tuple[str, str]]:
        """Other links above the list: label and address."""
        return []

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The row, with what can be done with it. Raises NotFound."""
        row = self._row(request, object_id)
        tools = [
            (deed.label, reverse(f"admin:{self._name_of(deed)}", args=[quote(row.pk)]))
            for deed in self.deeds
            if not deed.on_list and deed.is_possible(row)
        ]
        context = {
            "tools": tools + self.links_of(row),
            "title": str(row),
            "subtitle": None,
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def links_of(self, row: Any) -> list[tuple[str, str]]:
        """Pages elsewhere that belong to the row: label and address."""
        return []

    def _name_of(self, deed: Deed) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{deed.name}"

    def _row(self, request: HttpRequest, object_id: str) -> Any:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise NotFound
        return row

    def _page_of(self, deed: Deed) -> Callable[..., HttpResponse]:
        def page(request: HttpRequest, object_id: str | None = None) -> HttpResponse:
            row = None if object_id is None else self._row(request, object_id)
            if row is not None and not deed.is_possible(row):
                raise NotFound
            given = request.POST if request.method == "POST" else None
            form = deed.form(given, initial=deed.initial(row))
            if request.method == "POST" and form.is_valid():
                try:
                    said = deed.run(request, row, form.cleaned_data)
                except BrainError as error:
                    form.add_error(_field_of(error, form), _sentence_of(error))
                else:
                    if isinstance(said, HttpResponse):
                        return said
                    messages.success(request, said)
                    return HttpResponseRedirect(self._address_after(row))
            return render(
                request,
                "desk/deed.html",
                {
                    **desk.each_context(request),
                    "opts": self.opts,
                    "title": deed.label,
                    "deed": deed,
                    "question": deed.question(row),
                    "row": row,
                    "form": form,
                    "back": self._address_after(row),
                },
                status=400 if form.errors else 200,
            )

        return desk.admin_view(page)

    def _address_after(self, row: Model | None) -> str:
        base = f"admin:{self.opts.app_label}_{self.opts.model_name}"
        return (
            reverse(f"{base}_changelist") if row is None else address_of_row(self.opts.model_name or "", row)
        )


def address_of_row(model_name: str, row: Model) -> str:
    """A row's page in the list of this model."""
    return reverse(f"admin:access_{model_name}_change", args=[quote(row.pk)])


def _field_of(error: BrainError, form: forms.Form) -> str | None:
    field = error.details.get("field")
    return field if field in form.fields else None


def _sentence_of(error: BrainError) -> str:
    details = error.details
    if "limit" in details:
        return f"At most {details['limit']:,} {details['unit']}."
    return str(details.get("problem", error.message))
