"""Check what Brain keeps, and put right what the log still holds."""

from argparse import ArgumentParser
from typing import Any

from brain.management.shell_command import Refused, ShellCommand
from brain.progress import Bar
from kb.services.check_store import check_store, repair_store
from kb.store.check import CheckReport
from kb.store.repair import BeyondRepair, StoreInUse


class Command(ShellCommand):
    """``check_store [--repair]``: exit 1 with a list where anything disagrees."""

    help = "Compare files, registries, log and grants with each other."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument(
            "--repair", action="store_true", help="rebuild the tree from the log; stop the server first"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Repair if asked, then check and tell."""
        organization_id = self.system.organization_id
        if options["repair"]:
            self._repair(organization_id)
        with Bar() as bar:
            report = check_store(organization_id, bar)
        self._tell(report)

    def _repair(self, organization_id: str) -> None:
        try:
            with Bar() as bar:
                report = repair_store(organization_id, bar)
        except StoreInUse as error:
            raise Refused("The store is in use. Stop the server, then repair.") from error
        except BeyondRepair as error:
            raise Refused(
                "The root folder is neither in its registry nor in the log. Restore an instance backup."
            ) from error
        for line in report.done:
            self.stdout.write(f"repaired  {line}")
        for place, why in report.left:
            self.stdout.write(f"lost      {place}: {why}")

    def _tell(self, report: CheckReport) -> None:
        for disagreement in report.disagreements:
            self.stdout.write(f"wrong     {disagreement.place}: {disagreement.what}")
        for note in report.notes:
            self.stdout.write(f"note      {note}")
        self.stdout.write(
            f"Checked {report.folders:,} folders, {report.entries:,} entries ({report.content_bytes:,} bytes) "
            f"and {report.records:,} records of the log."
        )
        if report.disagreements:
            raise Refused(f"{len(report.disagreements):,} disagree.")
        self.stdout.write("Everything agrees.")
