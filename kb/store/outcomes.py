"""What a request led to, kept for seven days so that a retry gets the same answer and no second effect."""

from typing import Any

import msgspec

from core import clock, safe_open
from kb.store.faults import MediaFault
from kb.store.layout import OUTCOMES, PRIVATE, Layout


class DamagedOutcome(Exception):
    """These bytes are no outcome."""


class Outcome(msgspec.Struct, frozen=True):
    """A stored outcome. ``folder_id`` and ``role`` are what a caller needs now to be told ``result`` again."""

    arguments_hash: str
    folder_id: str
    role: int
    time: str
    result: dict[str, Any]


_decoder = msgspec.json.Decoder(Outcome)


def outcome_path(key: str) -> tuple[str, ...]:
    """The path of an outcome below the organization's directory."""
    return (PRIVATE, OUTCOMES, key[:2], f"{key}.json")


def encode(outcome: Outcome) -> bytes:
    """The bytes of an outcome file."""
    return msgspec.json.encode(outcome)


def decode(data: bytes) -> Outcome:
    """The outcome in a file's bytes. Raises DamagedOutcome."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise DamagedOutcome from error


def read(layout: Layout, key: str, *, days: int) -> Outcome | None:
    """The outcome of the request ``key``, unless there is none or it is older than ``days``. Raises MediaFault."""
    try:
        data = safe_open.read_file(layout.root, outcome_path(key))
    except FileNotFoundError:
        return None
    try:
        outcome = decode(data)
    except DamagedOutcome as error:
        raise MediaFault("a stored outcome is damaged") from error
    age = clock.now() - clock.from_timestamp(outcome.time)
    return outcome if age.days < days else None
