"""Issue a token."""

from argparse import ArgumentParser
from typing import Any

from access.services.issue_token import FolderScope, issue_token
from brain.management.shell_command import Refused, ShellCommand
from core.types import Capability, ConnectionKind, Role


class Command(ShellCommand):
    """``create_token IDENTITY --name N --capability C``: the token alone on standard output, once."""

    help = (
        "Issue a token for a person or service account. It is printed this once; Brain keeps only its hash."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("identity", metavar="IDENTITY", help="username")
        parser.add_argument("--name", metavar="N", required=True, help="what the token is listed as")
        parser.add_argument(
            "--capability", choices=[capability.value for capability in Capability], required=True
        )
        content = parser.add_mutually_exclusive_group()
        content.add_argument(
            "--scope",
            metavar="PATH=reader|editor",
            action="append",
            dest="scopes",
            help="narrow the token to this folder and at most this role; may be repeated",
        )
        content.add_argument("--no-content", action="store_true", help="no access to any content")
        parser.add_argument(
            "--expires", metavar="DAYS", type=int, help="days from now; else it does not expire"
        )
        parser.add_argument(
            "--kind",
            choices=[kind.value for kind in ConnectionKind],
            default=ConnectionKind.EXTERNAL.value,
            help="managed: held by a workflow",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Issue it."""
        identity = self.identity(options["identity"])
        scopes = [self._scope(text) for text in options["scopes"] or ()]
        issued = issue_token(
            self.system,
            identity.id,
            name=options["name"],
            capability=Capability(options["capability"]),
            kind=ConnectionKind(options["kind"]),
            folder_scopes=scopes if scopes or options["no_content"] else None,
            expires_in_days=options["expires"],
        )
        self.say(f"Token {issued.connection} of {identity.username}, shown this once:")
        self.stdout.write(issued.token)

    def _scope(self, text: str) -> FolderScope:
        path, _, word = text.rpartition("=")
        if word not in (Role.READER.word, Role.EDITOR.word):
            raise Refused(f"--scope {text}: write PATH=reader or PATH=editor.")
        return self.folder(path), Role.from_word(word)
