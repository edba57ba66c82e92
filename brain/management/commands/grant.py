"""Give somebody a role on a folder."""

from argparse import ArgumentParser
from typing import Any

from access.services.grant_role import grant_role
from brain.management.shell_command import ShellCommand, shown
from core.types import Role


class Command(ShellCommand):
    """``grant IDENTITY PATH ROLE``: the identity's direct role there, in place of the one it had."""

    help = "Give a person or service account a role on a folder and everything below it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("identity", metavar="IDENTITY", help="username")
        parser.add_argument("path", metavar="PATH", help="folder; / is the root")
        parser.add_argument("role", choices=[role.word for role in Role])

    def handle(self, *args: Any, **options: Any) -> None:
        """Grant, and say what it was before."""
        identity = self.identity(options["identity"])
        folder = self.folder(options["path"])
        role = Role.from_word(options["role"])
        previous = grant_role(self.system, folder, identity.id, role).previous_role
        if previous is role:
            self.say(f"{identity.username} is {role.word} on {shown(folder.path)} already.")
        else:
            was = f", was {previous.word}" if previous else ""
            self.say(f"{identity.username} is now {role.word} on {shown(folder.path)}{was}.")
