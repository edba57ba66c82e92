"""The audit: looked through and taken along, never changed."""

import csv
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import URLPattern, path, reverse

from access.models import AuditEvent
from brain.desk import cells
from brain.desk.shown import Shown
from brain.desk.site import desk
from core import clock

COLUMNS = (
    "at",
    "action",
    "refusal",
    "actor_id",
    "actor_kind",
    "actor_username",
    "actor_name",
    "through",
    "through_id",
    "through_name",
    "subject_id",
    "subject_username",
    "folder_id",
    "folder_path",
    "token_id",
    "token_name",
    "before",
    "after",
)
# A spreadsheet would run a cell that begins so.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
ROWS_AT_ONCE = 1_000


class Refused(admin.SimpleListFilter):
    """Done, or refused."""

    title = "outcome"
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The two."""
        return [("done", "done"), ("refused", "refused")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        """Those with the chosen outcome."""
        match self.value():
            case "done":
                return queryset.filter(refusal="")
            case "refused":
                return queryset.exclude(refusal="")
        return queryset


class _Line:
    """What ``csv`` writes to: it hands each line back."""

    def write(self, line: str) -> str:
        return line


class Audit(Shown):
    """Who did what to whose access, the newest first."""

    list_display = (
        "when",
        "actor_username",
        "action",
        "outcome",
        "subject_username",
        "folder_path",
        "change",
        "through",
    )
    list_filter = (Refused, "action", "through", "at")
    search_fields = ("actor_username", "subject_username", "folder_path", "token_name", "through_name")
    ordering = ("-id",)
    fields = COLUMNS
    readonly_fields = COLUMNS

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """The filters, and the links that other lists make."""
        return lookup in ("subject_id", "folder_id") or super().lookup_allowed(lookup, value, request)

    def more_urls(self) -> list[URLPattern]:
        """The export."""
        return [path("export/", desk.admin_view(self.export), name="access_auditevent_export")]

    def more_tools(self, request: HttpRequest) -> list[tuple[str, str]]:
        """The export of what the filters leave."""
        filters = urlencode([(key, value) for key, values in request.GET.lists() for value in values])
        return [("Export CSV", f"{reverse('admin:access_auditevent_export')}?{filters}")]

    def export(self, request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
        """All events that the list's filters and search leave, as CSV."""
        events = self.get_changelist_instance(request).get_queryset(request)
        answer = StreamingHttpResponse(_csv(events), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="audit-{clock.now():%Y-%m-%d}.csv"'
        return answer

    @admin.display(description="when", ordering="at")
    def when(self, row: AuditEvent) -> str:
        """To the second."""
        return f"{row.at:%Y-%m-%d %H:%M:%S} UTC"

    @admin.display(description="outcome")
    def outcome(self, row: AuditEvent) -> str:
        """Done, or the code of the refusal."""
        return row.refusal or "done"

    @admin.display(description="change")
    def change(self, row: AuditEvent) -> str:
        """Before and after."""
        if not (row.before or row.after):
            return cells.NOTHING
        return f"{row.before or cells.NOTHING} → {row.after or cells.NOTHING}"


def _csv(events: QuerySet[AuditEvent]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(COLUMNS)
    for event in events.values_list(*COLUMNS).iterator(chunk_size=ROWS_AT_ONCE):
        at, *rest = event
        yield writer.writerow([clock.timestamp(at), *map(_harmless, rest)])


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text
