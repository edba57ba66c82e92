"""What templates of the viewer say in their own words: times, addresses, the theme."""

import datetime

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from core import clock
from kb.links import address_of_access, address_of_entry, address_of_folder
from web.theme import theme_of

register = template.Library()

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
# Older than this, a date says more than a number of days.
RELATIVE_DAYS = 30
YEAR_DAYS = 366

register.filter("entry_address", address_of_entry)
register.filter("folder_address", address_of_folder)
register.filter("access_address", address_of_access)


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """The chosen theme, for ``data-theme``; empty where the system decides."""
    return theme_of(context["request"])


@register.simple_tag
def moment(timestamp: str) -> SafeString:
    """A time in words, with the exact one for a pointer and for programs."""
    when = clock.from_timestamp(timestamp)
    exact = f"{_date(when)}, {when:%H:%M:%S} UTC"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', timestamp, exact, in_words(when, clock.now())
    )


@register.simple_tag
def ahead(when: datetime.datetime) -> SafeString:
    """A time that is to come, in words, with the exact one for a pointer and for programs."""
    exact = f"{_date(when)}, {when:%H:%M} UTC"
    timestamp = clock.timestamp(when)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', timestamp, exact, ahead_in_words(when, clock.now())
    )


@register.simple_tag
def past(when: datetime.datetime) -> SafeString:
    """As ``moment``, of a time that is no text yet."""
    return moment(clock.timestamp(when))


@register.filter
def kind_in_words(kind: str) -> str:
    """Who changed something, where it was not a person: said beside the name, so that nobody mistakes it."""
    return "service account" if kind == "service_account" else ""


def in_words(when: datetime.datetime, now: datetime.datetime) -> str:
    """``just now``, ``2 minutes ago``, ``yesterday``; after a month the date."""
    seconds = int((now - when).total_seconds())
    if seconds < MINUTE:
        return "just now"
    if seconds < HOUR:
        return _ago(seconds // MINUTE, "minute")
    if seconds < DAY:
        return _ago(seconds // HOUR, "hour")
    days = seconds // DAY
    if days == 1:
        return "yesterday"
    return _ago(days, "day") if days <= RELATIVE_DAYS else _date(when)


def ahead_in_words(when: datetime.datetime, now: datetime.datetime) -> str:
    """``in 2 minutes``, ``tomorrow``, ``in 30 days``; after a year the date."""
    seconds = (when - now).total_seconds()
    if (minutes := max(1, round(seconds / MINUTE))) < HOUR // MINUTE:
        return _in(minutes, "minute")
    if (hours := round(seconds / HOUR)) < DAY // HOUR:
        return _in(hours, "hour")
    days = round(seconds / DAY)
    if days == 1:
        return "tomorrow"
    return _in(days, "day") if days <= YEAR_DAYS else f"on {_date(when)}"


def _in(number: int, unit: str) -> str:
    return f"in {number} {unit}{'' if number == 1 else 's'}"


def _ago(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'} ago"


def _date(when: datetime.datetime) -> str:
    return f"{when.day} {when:%B %Y}"
