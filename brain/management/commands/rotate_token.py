"""Rotate a token."""

from argparse import ArgumentParser
from typing import Any

from access.services.revoke_token import find_unrevoked_tokens
from access.services.rotate_token import rotate_token
from brain.management.shell_command import ShellCommand, the_one_meant
from core import clock, limits


class Command(ShellCommand):
    """``rotate_token NAME_OR_PREFIX``: the new token alone on standard output, once; the old one ends later."""

    help = "Replace a token by a new one. The old one goes on working for a while, so that nothing stops."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which one, and how long both work."""
        parser.add_argument("token", metavar="NAME_OR_PREFIX", help="its name, or how its text begins")
        parser.add_argument(
            "--overlap",
            metavar="HOURS",
            type=int,
            default=limits.TOKEN_OVERLAP_DEFAULT_HOURS,
            help="how long the old token still works (default %(default)s; 0 ends it at once)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Rotate the one that is meant; one that was replaced before is not."""
        found = find_unrevoked_tokens(self.system, options["token"]).filter(replaced_by=None)
        old = the_one_meant(found)
        issued = rotate_token(self.system, old.id, overlap_hours=options["overlap"])
        old.refresh_from_db()
        end = old.expires_at if old.revoked_at is None else None
        until = f"still works until {clock.timestamp(end)}" if end else "is revoked"
        self.say(f"Token {old} {until}. Its successor {issued.connection}, shown this once:")
        self.stdout.write(issued.token)
