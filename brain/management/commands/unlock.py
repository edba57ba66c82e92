"""Let somebody try their password again."""

from argparse import ArgumentParser
from typing import Any

from access.services.unlock_sign_in import unlock_sign_in
from brain.management.shell_command import ShellCommand


class Command(ShellCommand):
    """``unlock USERNAME``: ends the pause after too many wrong passwords."""

    help = "Let somebody sign in again who gave too many wrong passwords."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whom."""
        parser.add_argument("username", metavar="USERNAME")

    def handle(self, *args: Any, **options: Any) -> None:
        """Forget the wrong passwords, and say whether there were any."""
        if unlock_sign_in(self.system, options["username"]):
            self.say(f"{options['username']} may try again.")
        else:
            self.say(f"No wrong passwords are kept for {options['username']}.")
