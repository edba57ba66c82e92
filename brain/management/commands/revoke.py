"""Take away somebody's direct role on a folder."""

from argparse import ArgumentParser
from typing import Any

from access.services.revoke_role import revoke_role
from brain.management.shell_command import ShellCommand, shown


class Command(ShellCommand):
    """``revoke IDENTITY PATH``: the direct grant alone; what is inherited from above stays."""

    help = "Take away the direct role of a person or service account on a folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("identity", metavar="IDENTITY", help="username")
        parser.add_argument("path", metavar="PATH", help="folder; / is the root")

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke, and say what other grants still give."""
        identity = self.identity(options["identity"])
        folder = self.folder(options["path"])
        outcome = revoke_role(self.system, folder, identity.id)
        rest = (
            f"is still {outcome.remaining_role.word} there by a grant above" if outcome.remaining_role else ""
        )
        self.say(
            f"{identity.username} is no longer {outcome.removed_role.word} on {shown(folder.path)}"
            f"{', but ' + rest if rest else ''}."
        )
