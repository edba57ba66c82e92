"""Whether the stores can be read and written now: tried, not remembered."""

import os
import threading

from access.models import Organization
from core import safe_open
from core.errors import StorageUnavailable
from core.log import get_logger
from kb.store import checkpoint, content_store, faults
from kb.store.content_store import Behind, ContentStore
from kb.store.stores import store_of

log = get_logger(__name__)

# A checkpoint that is so many times overdue means that the disk does not take it.
OVERDUE_TIMES = 8
PROBE_NAME = ".probe"


class NotReady(StorageUnavailable):
    """A store cannot be relied on now. ``reason`` is for the log and for administrators, never for a caller."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


def probe() -> None:
    """Try every organization's store. The reason of a failure goes to the log.

    Raises NotReady, StorageUnavailable, OSError.
    """
    for organization_id in Organization.objects.values_list("id", flat=True):
        store = store_of(organization_id)
        with store.snapshot():
            pass
        if faults.is_marked(store.layout):
            _refuse(organization_id, "a media fault is marked")
        if _is_overdue(store.behind_checkpoint()):
            _refuse(organization_id, "checkpoints are overdue")
        status = os.fstatvfs(store.layout.root)
        if status.f_bavail * status.f_frsize < content_store.FREE_BYTES_MIN:
            _refuse(organization_id, "the disk is nearly full")
        _try_writing(store)


def _is_overdue(behind: Behind) -> bool:
    return (
        behind.records > OVERDUE_TIMES * checkpoint.RECORDS_MAX
        or behind.bytes > OVERDUE_TIMES * checkpoint.BYTES_MAX
        or behind.seconds > OVERDUE_TIMES * checkpoint.SECONDS_MAX
    )


def _try_writing(store: ContentStore) -> None:
    # A file of its own name beside the stage: the disk itself is asked, since a mount can turn read-only any time. The
    # name goes first, so that a process which is killed while it waits for the disk leaves nothing.
    name = f"{PROBE_NAME}.{os.getpid()}.{threading.get_native_id()}"
    descriptor = safe_open.open_file(store.layout.private, name, os.O_WRONLY | os.O_CREAT)
    try:
        os.unlink(name, dir_fd=store.layout.private)
        os.write(descriptor, b"ok")
    finally:
        os.close(descriptor)


def _refuse(organization_id: str, reason: str) -> None:
    log.error("not ready", organization=organization_id, reason=reason)
    raise NotReady(reason)
