"""The work of ``kb`` that nobody asks for: what is past its time goes. Called by ``manage.py sweep`` and by brokers."""

from django.conf import settings

from access.services.create_organization import the_organization
from core.progress import SILENT, Progress
from kb.store import retention
from kb.store.retention import Swept
from kb.store.stores import store_of


def sweep(progress: Progress = SILENT) -> Swept | None:
    """Sweep the organization's store; None where there is no organization yet.

    Raises LockBusy at once where another sweep, a purge or a backup is under way; StorageUnavailable, UnknownFormat,
    OSError.
    """
    organization = the_organization()
    if organization is None:
        return None
    return retention.sweep(
        store_of(organization.id),
        history_days=settings.HISTORY_DAYS,
        history_bytes=settings.HISTORY_BYTES,
        progress=progress,
    )
