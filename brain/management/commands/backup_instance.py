"""Write an instance backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from brain.instance_backup import BackedUp, CannotBackUp, back_up
from brain.management.passphrase import new_passphrase
from brain.management.shell_command import Refused, ShellCommand
from brain.progress import Bar
from core import locks

EXIT_BUSY = 3


class Command(ShellCommand):
    """``backup_instance DEST [--include-secrets]``: everything, as it is at one moment, in one file."""

    help = "Copy everything that this installation keeps into one file, while people go on working."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("target", metavar="DEST", type=Path, help="the file to write; it must not exist")
        parser.add_argument(
            "--include-secrets", action="store_true", help="with the installation's keys, under a passphrase"
        )
        parser.add_argument(
            "--passphrase-file", metavar="FILE", type=Path, help="read the passphrase from FILE's first line"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Copy, and tell what is not in the copy."""
        target: Path = options["target"].absolute()
        if options["passphrase_file"] and not options["include_secrets"]:
            raise Refused("--passphrase-file is for --include-secrets.")
        if target.is_dir():
            raise Refused(f"{target} is a folder. Name a file in it.")
        if target.exists():
            raise Refused(f"{target} is there already. A backup never replaces anything.")
        passphrase = new_passphrase(options["passphrase_file"]) if options["include_secrets"] else None
        try:
            with Bar() as bar:
                done = back_up(self.system, target, passphrase=passphrase, progress=bar)
        except CannotBackUp as error:
            raise Refused(str(error)) from error
        except FileExistsError as error:
            raise Refused(
                f"{target}, or the same with .partial behind it, is there already. A backup never replaces anything."
            ) from error
        except locks.LockBusy as error:
            raise Refused(
                "A publication, a sweep or a purge has been under way for a minute. Try again after it.",
                returncode=EXIT_BUSY,
            ) from error
        except OSError as error:
            raise Refused(f"{target} cannot be written: {error.strerror or error}.") from error
        self._tell(target, done)

    def _tell(self, target: Path, done: BackedUp) -> None:
        self.stdout.write(
            f"Backed up to {target}: {done.size_bytes:,} bytes, everything up to change {done.lsn:,}."
        )
        if not done.has_secrets:
            self.say(
                "The keys are not in it. An instance restored from it keeps accounts, grants, tokens and content; the "
                "repository's password and the model's key must be entered again."
            )
