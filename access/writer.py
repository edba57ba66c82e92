"""The way to an organization's locks: the ones that saves of content take, so that both stand in one order."""

import os
import threading

from django.conf import settings

from core import log, safe_open
from core.errors import StorageUnavailable
from core.locks import WriterQueue

logger = log.get_logger(__name__)

_queues: dict[str, tuple[int, WriterQueue]] = {}
_opening = threading.Lock()


def writer_queue(organization_id: str) -> WriterQueue:
    """This process's queue before the lock, opened at the first call. Raises FileNotFoundError without a store."""
    found = _queues.get(organization_id)
    if found is None:
        with _opening:
            found = _queues.get(organization_id)
            if found is None:
                directory = open_private(organization_id, "locks")
                found = _queues[organization_id] = (directory, WriterQueue(directory))
    return found[1]


def wait_for_saves(organization_id: str) -> None:
    """Wait until no save is under way that was judged before this call.

    For what must bite at once and even while the store is stuck: a token is revoked and an account disabled first,
    and this comes after, so that no save of theirs lands once the caller is told. Where the store cannot answer,
    the log says that one may.
    """
    try:
        with writer_queue(organization_id).hold(urgent=True):
            pass
    except (StorageUnavailable, OSError) as error:
        logger.warning("a save judged before this change may still land", exc_info=error)


def close_all() -> None:
    """Give back the open directories. A later ``writer_queue`` opens anew."""
    while _queues:
        directory, _ = _queues.popitem()[1]
        os.close(directory)


def open_private(organization_id: str, *below: str) -> int:
    """A descriptor of the organization's private folder, or of a folder in it, which the caller closes.

    Raises OSError.
    """
    data = os.open(settings.DATA_DIR, safe_open.DIRECTORY_FLAGS)
    try:
        return safe_open.open_directory(data, ("orgs", organization_id, "private", *below))
    finally:
        os.close(data)


def _forget_inherited() -> None:
    # A forked child has none of the parent's threads, so whoever stood in these queues is not there.
    global _opening
    close_all()
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_forget_inherited)
