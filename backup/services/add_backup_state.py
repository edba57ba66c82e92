"""Say of entries and deletions how far their backup is.

No destination can be set up yet, so nothing is backed up, and no deletion waits for a backup to lose its path.
"""

from collections.abc import Iterable, Mapping
from typing import Any

NOT_CONFIGURED = "not_configured"
NOT_REQUIRED = "not_required"


def add_backup_state(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The entry summaries, each with its ``backup``."""
    return [{**entry, "backup": {"state": NOT_CONFIGURED}} for entry in entries]


def add_deletion_backup_state(deletion: Mapping[str, Any]) -> dict[str, Any]:
    """The deletion, with its ``backup``."""
    return {**deletion, "backup": {"state": NOT_REQUIRED}}
