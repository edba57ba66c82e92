"""Disable an account."""

from argparse import ArgumentParser
from typing import Any

from access.services.set_active import disable_identity
from brain.management.shell_command import ShellCommand


class Command(ShellCommand):
    """``disable IDENTITY``: every session and connection ends at once; grants and tokens are kept."""

    help = "Disable a person or service account, at once and on every connection."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("identity", metavar="IDENTITY", help="username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Disable it."""
        identity = disable_identity(self.system, self.identity(options["identity"]).id)
        self.say(f"{identity.username} is disabled.")
