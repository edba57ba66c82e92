"""Cutting a long list into pages whose cursors hold a place, so that concurrent changes neither skip nor repeat."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

import msgspec
from django.conf import settings

from access.principals import Principal
from core import cursors, limits
from core.errors import InvalidArgument

Row = TypeVar("Row")
Item = TypeVar("Item")


class Page(msgspec.Struct, Generic[Item], frozen=True):
    """One page of a list; ``next_cursor`` is None at its end."""

    items: list[Item]
    next_cursor: str | None


class Paging:
    """One call's page: where it begins and how long it is.

    The cursor is good only for the same ``query`` (any JSON values), identity and connection.
    """

    def __init__(self, principal: Principal, query: object, *, limit: int, cursor: str | None) -> None:
        if not 1 <= limit <= limits.PAGE_MAX:
            raise InvalidArgument("limit", f"A page has 1 to {limits.PAGE_MAX} rows.")
        self._limit = limit
        self._bound_to = json.dumps([principal.cursor_binding, query], sort_keys=True)
        self.after = "" if cursor is None else cursors.unseal(_key(), cursor, bound_to=self._bound_to)

    def cut(
        self, rows: Iterator[Row], *, place: Callable[[Row], str], shape: Callable[[Row], Item]
    ) -> Page[Item]:
        """The page from ``rows``, which come in the order of their places and behind ``after``."""
        taken = list(islice(rows, self._limit + 1))
        more = len(taken) > self._limit
        taken = taken[: self._limit]
        next_cursor = cursors.seal(_key(), place(taken[-1]), bound_to=self._bound_to) if more else None
        return Page(items=[shape(row) for row in taken], next_cursor=next_cursor)


def _key() -> bytes:
    key: bytes = settings.DATA_KEY
    return key
