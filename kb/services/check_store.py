"""Check, or repair, everything an organization keeps: files, registries, log and grants against each other."""

from access.models import Folder
from core.progress import SILENT, Progress
from kb.store import check as store_check
from kb.store.check import CheckReport
from kb.store.layout import Layout
from kb.store.repair import RepairReport, repair
from kb.store.stores import close_all, open_layout, store_of


def check_store(organization_id: str, progress: Progress = SILENT) -> CheckReport:
    """Compare everything; changes nothing, and people go on working. Raises StorageUnavailable, UnknownFormat."""
    report = store_check.check(store_of(organization_id), progress)
    known = Folder.objects.filter(organization_id=organization_id).values_list("id", flat=True)
    for folder_id in sorted(set(known) - report.folder_ids):
        report.add(f"grants on {folder_id}", "there is no such folder")
    return report


def repair_store(organization_id: str, progress: Progress = SILENT) -> RepairReport:
    """Rebuild the tree from the log. Raises StoreInUse while any other process has the store open, BeyondRepair."""
    close_all()
    layout: Layout = open_layout(organization_id)
    try:
        return repair(layout, progress)
    finally:
        layout.close()
