"""Create a person."""

from argparse import ArgumentParser
from typing import Any

from access import credentials
from access.services.create_identity import create_person
from brain.management.shell_command import ShellCommand, password_from_stdin


class Command(ShellCommand):
    """``create_user USERNAME``: prints a generated password alone on standard output, once."""

    help = "Create a person. Without --password-stdin a password is generated and printed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("username", metavar="USERNAME")
        parser.add_argument("--name", metavar="DISPLAY", default="", help="display name")
        parser.add_argument("--email", metavar="E", default="")
        parser.add_argument("--admin", action="store_true", help="an organization administrator")
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the person, and print the password only where it was generated."""
        system = self.system
        given = password_from_stdin() if options["password_stdin"] else None
        password = given or credentials.new_password()
        person = create_person(
            system,
            username=options["username"],
            password=password,
            name=options["name"],
            email=options["email"],
            is_admin=options["admin"],
        )
        self.say(f"Created {'administrator' if person.is_admin else 'person'} {person.username}.")
        if given is None:
            self.say("The password, shown this once:")
            self.stdout.write(password)
