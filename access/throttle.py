"""How much a connection may do in how short a time; a person's browser counts as a connection of its own.

The numbers are settings of the installation (docs/reference/settings.md).
"""

from django.conf import settings

from access.principals import Principal
from core import limits
from core.rates import ROWS_MAX, Counters, Rate

MINUTE = 60
HOUR = 60 * MINUTE


class _Server:
    """The counts of this server; a process that nobody told to share them counts for itself."""

    counters = Counters()


def count_together() -> None:
    """Let the processes that this one forks from now on count together."""
    _Server.counters = Counters(ROWS_MAX)


def use_row(row: int | None) -> None:
    """Take this row (``core.rates.Rows``) right after the fork; without one the process counts for itself."""
    if row is None:
        _Server.counters = Counters()
    else:
        _Server.counters.use_row(row)


def admit(principal: Principal) -> None:
    """Count one call of a connection, or one page of a session. Raises RateLimited; then it is not to be made.

    Comes right after the credential and before anything is looked at. The shell is not counted.
    """
    if not principal.is_system:
        calls = Rate("calls", settings.CALLS_PER_MINUTE, MINUTE)
        _Server.counters.spend(calls, _subject(principal))


def require_room_to_write(principal: Principal) -> None:
    """Refuse a change while the connection has written its hour's bytes. Raises RateLimited."""
    if not principal.is_system:
        _Server.counters.require_room(_bytes_written(), _subject(principal))


def note_written(principal: Principal, size: int) -> None:
    """Count bytes that a change of the connection has put into the store. One change may go past the limit."""
    if size and not principal.is_system:
        _Server.counters.add(_bytes_written(), _subject(principal), size)


def admit_registration(address: str) -> None:
    """Count one registration of an OAuth client, which anybody may send. Raises RateLimited."""
    of_one = Rate("registrations", limits.REGISTRATIONS_PER_HOUR_OF_ONE, HOUR)
    of_all = Rate("registrations", limits.REGISTRATIONS_PER_HOUR, HOUR)
    _Server.counters.spend(of_one, f"address {address}")
    _Server.counters.spend(of_all, "all")


def _bytes_written() -> Rate:
    return Rate("bytes written", settings.BYTES_WRITTEN_PER_HOUR, HOUR)


def _subject(principal: Principal) -> str:
    return principal.connection.id if principal.connection else principal.identity_id
