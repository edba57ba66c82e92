"""Create a service account."""

from argparse import ArgumentParser
from typing import Any

from access.services.create_identity import create_service_account
from brain.management.shell_command import ShellCommand


class Command(ShellCommand):
    """``create_service_account NAME``: somebody who connects by token alone."""

    help = (
        "Create a service account. It has no password and cannot sign in; give it a token with create_token."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("username", metavar="NAME")
        parser.add_argument("--name", metavar="DISPLAY", default="", help="display name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create it."""
        account = create_service_account(self.system, username=options["username"], name=options["name"])
        self.say(f"Created service account {account.username}.")
