"""Set up an installation: database, organization, root folder, administrator."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from brain import first_start
from core.errors import BrainError
from kb.store.filesystem import UnsuitableFilesystem
from kb.store.provision import UnknownFormat


class Command(BaseCommand):
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
        """Provision, and print a password only where one was generated."""
        password = None
        if options["password_stdin"]:
            password = sys.stdin.readline().rstrip("\r\n")
            if not password:
                raise CommandError("There is no password on standard input.")
        try:
            made = first_start.provision(
                organization=options["organization"],
                admin=options["admin"],
                email=options["email"],
                password=password,
                sample=options["sample"],
            )
        except BrainError as error:
            raise CommandError(f"{error.message} {error.details.get('problem', '')}".strip()) from error
        except (UnsuitableFilesystem, UnknownFormat) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Organization: {made.organization}{'' if made.is_new_organization else ' (as it was)'}"
        )
        self.stdout.write(f"Administrator: {made.admin}{'' if made.is_new_admin else ' (as it was)'}")
        if made.password:
            self.stdout.write(f"Password: {made.password}")
            self.stdout.write("It is shown this once; Brain keeps only its hash.")
