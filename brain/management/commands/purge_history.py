"""Remove the kept texts of one entry from its history."""

import datetime as dt
from argparse import ArgumentParser
from typing import Any

from brain.management.shell_command import Refused, ShellCommand
from brain.progress import Bar
from core import clock, locks
from core.errors import NotFound
from kb.services.purge_history import PurgeReport, purge_history
from kb.store.faults import MediaFault

EXIT_BUSY = 3


class Command(ShellCommand):
    """``purge_history PATH [--before WHEN] [--deleted]``: what was saved once by mistake is kept no longer."""

    help = "Remove the texts that Brain keeps of one entry, except the one it has now. Cannot be undone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments, and one to mean deleted entries where a new one has their path."""
        parser.add_argument("path", metavar="PATH", help="path of the entry, such as Eng/deploy.md")
        parser.add_argument(
            "--before", metavar="WHEN", help="only texts saved before this date or time (UTC)"
        )
        parser.add_argument(
            "--deleted",
            action="store_true",
            help="the deleted entries that stood at PATH, though another one stands there now",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Purge, and tell what is kept elsewhere."""
        before = _moment(options["before"]) if options["before"] is not None else None
        try:
            with Bar() as bar:
                report = purge_history(
                    self.system,
                    options["path"],
                    before=before,
                    deleted=options["deleted"],
                    progress=bar,
                )
        except NotFound as error:
            raise Refused(f"No {'deleted ' if options['deleted'] else ''}entry has this path.") from error
        except locks.LockBusy as error:
            raise Refused(
                "A sweep or a backup is under way. Try again after it.", returncode=EXIT_BUSY
            ) from error
        except MediaFault as error:
            raise Refused(
                f"The log is damaged: {error}. Run `manage.py check_store`, then purge again."
            ) from error
        except OSError as error:
            raise Refused(
                f"The disk refused: {error.strerror}. Purge again to finish what was begun."
            ) from error
        self._tell(report)

    def _tell(self, report: PurgeReport) -> None:
        self.stdout.write(f"Removed {report.images:,} kept texts of {report.path}.")
        if report.is_live:
            self.say("The text that the entry has now is kept.")
        if report.deleted_before:
            self.say(
                f"Not meant were {report.deleted_before:,} deleted entries that stood at the same path; "
                "--deleted removes theirs."
            )
        if report.quarantined:
            self.say(
                f"quarantine/ keeps {report.quarantined:,} damaged files, which may hold old texts. "
                "Remove them once you need them no more."
            )
        self.say(
            "Instance backups taken before keep the old texts, and so does a Git remote that they were pushed to."
        )


def _moment(text: str) -> dt.datetime:
    try:
        moment = dt.datetime.fromisoformat(text)
        return moment.astimezone(clock.UTC) if moment.tzinfo else moment.replace(tzinfo=clock.UTC)
    except (ValueError, OverflowError) as error:
        raise Refused(
            f"--before {text}: give a date or a time, such as 2026-11-30 or 2026-11-30T09:15Z."
        ) from error
