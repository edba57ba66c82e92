"""Media faults: what the store does when the disk hands back something that was never written.

It marks the organization, keeps a copy of the damaged segment, refuses writes and guesses nothing.
"""

import contextlib
import errno
import json
import os

from core import clock, safe_open
from core.log import get_logger
from kb.store import steps
from kb.store.layout import FAULT, PRIVATE, QUARANTINE, Layout, segment_name

log = get_logger(__name__)
COPY_CHUNK_BYTES = 1 << 20


class MediaFault(Exception):
    """Something durable is missing, damaged or contradicts itself. ``segment`` is the log segment it lies in."""

    def __init__(self, reason: str, *, segment: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.segment = segment


def is_marked(layout: Layout) -> bool:
    """Whether a media fault was found here: writes are refused until ``check_store`` has repaired it."""
    try:
        os.stat(FAULT, dir_fd=layout.private, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def reason_of(layout: Layout) -> str | None:
    """Why writes are refused here, as ``mark`` wrote it; None where no fault is marked."""
    try:
        written = safe_open.read_file(layout.private, (FAULT,))
    except FileNotFoundError:
        return None
    try:
        return str(json.loads(written)["reason"])
    except (ValueError, KeyError, TypeError):
        return "the marker does not say which"


def mark(layout: Layout, fault: MediaFault) -> None:
    """Write the marker once, with the reason, and copy the damaged segment to ``quarantine/``."""
    log.error("media fault: writes are refused", reason=fault.reason, organization=layout.organization_id)
    try:
        descriptor = steps.create(layout.private, FAULT, PRIVATE)
    except FileExistsError:
        return
    except OSError as error:
        log.error("the fault could not be marked", problem=errno.errorcode.get(error.errno or 0, "unknown"))
        return
    try:
        steps.write_at(
            descriptor, 0, json.dumps({"found": clock.timestamp(), "reason": fault.reason}).encode(), FAULT
        )
        steps.sync_file(descriptor, FAULT)
        steps.sync_directory(layout.private, PRIVATE)
        if fault.segment is not None:
            keep_segment(layout, fault.segment)
    except OSError as error:
        log.error(
            "the fault could not be kept whole", problem=errno.errorcode.get(error.errno or 0, "unknown")
        )
    finally:
        os.close(descriptor)


def clear(layout: Layout) -> None:
    """Take the marker away: writes are accepted again."""
    with contextlib.suppress(FileNotFoundError):
        steps.unlink(layout.private, FAULT, PRIVATE)
    steps.sync_directory(layout.private, PRIVATE)


def quarantined(layout: Layout) -> list[str]:
    """The names of the files in ``quarantine/``: damaged things, which may hold text that is gone elsewhere."""
    quarantine = safe_open.open_directory(layout.private, (QUARANTINE,))
    try:
        return sorted(os.listdir(quarantine))
    finally:
        os.close(quarantine)


def keep_segment(layout: Layout, segment: int) -> None:
    """Copy a segment to ``quarantine/``: it may be all that is left of something. Raises OSError."""
    quarantine = safe_open.open_directory(layout.private, (QUARANTINE,))
    try:
        source = safe_open.open_file(layout.log, segment_name(segment))
    except FileNotFoundError:
        os.close(quarantine)
        return
    try:
        copy = steps.create(quarantine, f"{segment_name(segment)}.{clock.now():%Y%m%dT%H%M%S%f}", QUARANTINE)
        try:
            offset = 0
            while chunk := os.pread(source, COPY_CHUNK_BYTES, offset):
                steps.write_at(copy, offset, chunk, QUARANTINE)
                offset += len(chunk)
            steps.sync_file(copy, QUARANTINE)
            steps.sync_directory(quarantine, QUARANTINE)
        finally:
            os.close(copy)
    finally:
        os.close(source)
        os.close(quarantine)
