"""Create a folder and the parents it lacks."""

from argparse import ArgumentParser
from typing import Any

from brain.management.shell_command import ShellCommand, shown
from kb.services.create_folder import create_folder_path


class Command(ShellCommand):
    """``create_folder PATH``: a folder that is there already is left alone."""

    help = "Create the folder and missing parents."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("path", metavar="PATH", help="such as Engineering/Payments")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create what is missing."""
        path = "" if options["path"] == "/" else options["path"]
        folder = create_folder_path(self.system, path)
        self.say(f"There is a folder {shown(folder.path)}.")
