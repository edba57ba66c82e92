"""Revoke a token."""

from argparse import ArgumentParser
from typing import Any

from access.services.revoke_token import find_unrevoked_tokens, revoke_token
from brain.management.shell_command import ShellCommand, the_one_meant


class Command(ShellCommand):
    """``revoke_token NAME_OR_PREFIX``: at once. Where several tokens answer to it, it revokes none."""

    help = "Revoke a token, at once and for good."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("token", metavar="NAME_OR_PREFIX", help="its name, or how its text begins")

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke the one that is meant."""
        found = the_one_meant(find_unrevoked_tokens(self.system, options["token"]))
        token = revoke_token(self.system, found.id)
        self.say(f"Revoked token {token} of {token.identity.username}.")
