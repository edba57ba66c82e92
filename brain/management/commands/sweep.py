"""Let go of what is past its time."""

from argparse import ArgumentParser
from typing import Any

from brain import housekeeping
from brain.housekeeping import Round
from brain.management.shell_command import Refused, ShellCommand
from brain.progress import Bar
from core import locks
from kb.store.retention import Swept

PAUSE_MAX_SECONDS = 31 * 24 * 60 * 60


class Command(ShellCommand):
    """``sweep [--loop SECONDS]``: one round of housekeeping, or one again and again."""

    help = "Remove outcomes, claims, sessions, sign-ins, leftovers and history that are past their time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument(
            "--loop", metavar="SECONDS", type=int, help="sweep again and again, with this pause between"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep and tell. Exit 0 also where somebody else is at it."""
        pause = options["loop"]
        if pause is not None:
            if not 1 <= pause <= PAUSE_MAX_SECONDS:
                raise Refused(f"--loop is a number of seconds, 1 to {PAUSE_MAX_SECONDS:,}.")
            housekeeping.keep_house(pause)
        try:
            with Bar() as bar:
                done = housekeeping.run_round(bar)
        except locks.LockBusy:
            self.say("Another sweep, a purge or a backup is under way. It was left alone.")
            return
        except OSError as error:
            raise Refused(f"The disk refused: {error.strerror}.") from error
        self._tell(done)

    def _tell(self, done: Round) -> None:
        swept = done.swept or Swept()
        outcomes = swept.outcomes + done.access_outcomes
        self.stdout.write(
            f"Removed {outcomes:,} outcomes, {swept.claims:,} claims, {swept.leftovers:,} leftovers, "
            f"{done.sessions:,} sessions and {swept.segments:,} segments of history "
            f"({swept.history_bytes:,} bytes)."
        )
        if swept.kept is not None:
            raise Refused(f"History past its time is kept: {swept.kept}. Run `manage.py check_store`.")
