"""Enable an account again."""

from argparse import ArgumentParser
from typing import Any

from access.services.set_active import enable_identity
from brain.management.shell_command import ShellCommand


class Command(ShellCommand):
    """``enable IDENTITY``: with the grants, tokens and sessions that it has."""

    help = "Enable a person or service account again, with the grants and unrevoked tokens it has."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("identity", metavar="IDENTITY", help="username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Enable it."""
        identity = enable_identity(self.system, self.identity(options["identity"]).id)
        self.say(f"{identity.username} is enabled.")
