"""The one clock. Wall time is UTC; durations are measured on the monotonic clock.

Tests move the wall clock; nothing else in the code asks for the time.
"""

import datetime as dt
import threading
import time

UTC = dt.UTC


def now() -> dt.datetime:
    """The wall time, aware, in UTC."""
    return dt.datetime.now(UTC)


def timestamp(moment: dt.datetime | None = None) -> str:
    """RFC 3339 in UTC with microseconds, such as ``2026-11-30T09:15:00.000000Z``: sorts as text."""
    moment = moment or now()
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def from_timestamp(text: str) -> dt.datetime:
    """The moment that ``timestamp`` wrote."""
    return dt.datetime.fromisoformat(text)


def monotonic() -> float:
    """Seconds on a clock that never jumps; only differences mean something."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Let the thread rest: for polling a lock that knows no deadline."""
    time.sleep(seconds)


def wait_for(event: threading.Event, seconds: float) -> bool:
    """Let the thread rest until the event happened, but no longer than this; whether it did."""
    return event.wait(seconds)
