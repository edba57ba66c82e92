"""How far the backup of what the caller may read is."""

from typing import Any

from access.principals import Principal
from backup.services.add_backup_state import NOT_CONFIGURED
from core import limits
from core.types import ROOT, FolderLocator
from kb.services.browse_entries import browse_entries
from kb.services.locate_folder import locate_folder


def show_status(
    principal: Principal,
    folder: FolderLocator | None = None,
    *,
    limit: int = limits.PAGE_DEFAULT,
    cursor: str | None = None,
) -> dict[str, Any]:
    """The state of the entries at any depth below the folder, of all that is readable where none is named.

    No destination can be set up yet, so nothing waits and nothing was backed up.

    Raises NotFound, InvalidArgument (``limit``, ``cursor``, locator), LimitExceeded.
    """
    if folder is not None:
        # A folder shown only as the way to more has no state of its own.
        locate_folder(principal, folder)
    page = browse_entries(principal, folder or ROOT, recursive=True, limit=limit, cursor=cursor)
    return {
        "configured": False,
        "branch": None,
        "aggregate": None,
        "entries": [
            {
                "entry_id": entry.entry_id,
                "path": entry.path,
                "version": entry.version,
                "state": NOT_CONFIGURED,
            }
            for entry in page.items
        ],
        "deletions": [],
        "receipts": [],
        "last_backup_error": None,
        "last_successful_backup_at": None,
        "next_cursor": page.next_cursor,
    }
