"""Give a person a new password, in place of Django's command, which audits nothing."""

from argparse import ArgumentParser
from typing import Any

from access import credentials
from access.services.set_password import set_password
from brain.management.shell_command import ShellCommand, password_from_stdin


class Command(ShellCommand):
    """``changepassword USERNAME``: prints a generated password alone on standard output, once."""

    help = "Give a person a new password and end their sessions. Without --password-stdin it is generated and printed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whose password, and where it comes from."""
        parser.add_argument("username", metavar="USERNAME")
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Set it, and print it only where it was generated."""
        person = self.identity(options["username"])
        given = password_from_stdin() if options["password_stdin"] else None
        password = given or credentials.new_password()
        set_password(self.system, person.id, password)
        self.say(f"{person.username} has a new password, and every session of theirs has ended.")
        if given is None:
            self.say("The password, shown this once:")
            self.stdout.write(password)
