"""Make a data directory of an instance backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from brain.instance_restore import Disagrees, Restored, has_secrets, restore
from brain.management.passphrase import known_passphrase
from brain.management.shell_command import Refused, sentence_of
from brain.progress import Bar
from core import locks
from core.errors import BrainError
from core.sealing import CannotUnseal
from kb.store.archive import BadArchive
from kb.store.filesystem import UnsuitableFilesystem
from kb.store.restoring import NoRoom, TargetNotEmpty

LISTED_MAX = 20


class Command(BaseCommand):
    """``restore_instance SRC``: into the data directory, which must be empty, so no layout is asked of it before."""

    help = "Restore an instance backup into an empty data directory (BRAIN_DATA_DIR)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("source", metavar="SRC", type=Path, help="the file that backup_instance wrote")
        parser.add_argument(
            "--passphrase-file", metavar="FILE", type=Path, help="read the passphrase from FILE's first line"
        )
        parser.add_argument(
            "--without-secrets",
            action="store_true",
            help="leave the keys in the backup alone and use new ones",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore, and tell what is different now."""
        source: Path = options["source"].absolute()
        try:
            passphrase = None
            if not options["without_secrets"] and has_secrets(source):
                passphrase = known_passphrase(options["passphrase_file"])
            with Bar() as bar:
                done = restore(source, passphrase=passphrase, progress=bar)
        except BadArchive as error:
            raise Refused(f"{source} is not restored: {error}.") from error
        except CannotUnseal as error:
            raise Refused("This is not the passphrase, or the secrets are damaged.") from error
        except TargetNotEmpty as error:
            raise Refused(
                f"{settings.DATA_DIR} is not empty. Restore into a new directory: set BRAIN_DATA_DIR."
            ) from error
        except locks.LockBusy as error:
            raise Refused("Something is being started or restored here. Try again after it.") from error
        except NoRoom as error:
            wanted, free = error.args
            raise Refused(
                f"{settings.DATA_DIR} has room for {free:,} bytes; {wanted:,} are needed."
            ) from error
        except Disagrees as error:
            for found in error.report.disagreements[:LISTED_MAX]:
                self.stdout.write(f"wrong     {found.place}: {found.what}")
            raise Refused(f"{source} is not restored: {error}.") from error
        except BrainError as error:
            raise Refused(sentence_of(error)) from error
        except UnsuitableFilesystem as error:
            raise Refused(str(error)) from error
        except OSError as error:
            raise Refused(f"{source} is not restored: {error.strerror or error}.") from error
        self._tell(source, done)

    def _tell(self, source: Path, done: Restored) -> None:
        self.stdout.write(
            f"Restored {source} into {settings.DATA_DIR}, as of {done.made_at}: {done.report.folders:,} folders, "
            f"{done.report.entries:,} entries, {done.report.records:,} changes. Everything agrees."
        )
        if not done.has_keys:
            self.stdout.write(
                "The keys are new: versions that clients remember count no more, so their next change is refused once "
                "and they read again. Passwords and tokens are what they were. Enter the repository's password and the "
                "model's key again."
            )
        self.stdout.write("Nobody is signed in. Start with `make run`.")
