"""Set up an installation: database, organization, root folder, administrator."""

from argparse import ArgumentParser
from typing import Any

from brain import first_start
from brain.management.shell_command import ShellCommand, password_from_stdin


class Command(ShellCommand):
    """``provision --organization NAME --admin USERNAME``: may be repeated, and then does what is missing."""

    help = "Make the organization, its root folder and its administrator, as far as they are missing."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("--organization", metavar="NAME", required=True)
        parser.add_argument("--admin", metavar="USERNAME", required=True)
        parser.add_argument("--email", metavar="E", default="")
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input"
        )
        parser.add_argument(
            "--sample", action="store_true", help="with sample knowledge, where there is none yet"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Provision, and print the password only where it was generated."""
        password = password_from_stdin() if options["password_stdin"] else None
        with first_start.one_at_a_time():
            made = first_start.provision(
                organization=options["organization"],
                admin=options["admin"],
                email=options["email"],
                password=password,
                sample=options["sample"],
            )
        self.say(f"{'Created' if made.is_new_organization else 'There is'} organization {made.organization}.")
        self.say(f"{'Created' if made.is_new_admin else 'There is'} administrator {made.admin}.")
        if made.password is not None:
            self.say("The password, shown this once:")
            self.stdout.write(made.password)
