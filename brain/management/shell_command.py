"""What the account commands share: they act as the system, and a refusal is one line and exit code 1.

A secret is the only line on standard output, so that it can be piped; everything said about it goes to standard error.
"""

import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from access.models import Connection, Identity
from access.principals import Principal, system_principal
from access.services.create_organization import the_organization
from core import locks
from core.errors import BrainError, StorageUnavailable
from core.types import FolderLocator, FolderRef
from kb.services.locate_folder import locate_folder
from kb.store.data_format import UnknownFormat, check_format_if_any
from kb.store.filesystem import UnsuitableFilesystem

PASSWORD_MAX_CHARACTERS = 4_096
UNDER_WAY = "A start, a sweep, a purge, a backup or a restore is under way here. Try again after it."


class Refused(CommandError):
    """What the person at the terminal is told when a command cannot do what they asked."""


class ShellCommand(BaseCommand):
    """A command that goes through the services like everybody, as the system."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; what it is refused, by Brain or by the machine, becomes one sentence (``Refused``)."""
        try:
            _refuse_what_is_no_text(options)
            check_format_if_any(settings.DATA_DIR)
            return super().execute(*args, **options)
        except BrainError as error:
            raise Refused(sentence_of(error)) from error
        except (UnknownFormat, UnsuitableFilesystem) as error:
            raise Refused(str(error)) from error
        except locks.LockBusy as error:
            raise Refused(UNDER_WAY) from error
        except OperationalError as error:
            raise Refused(f"The database cannot be used: {error}.") from error
        except BrokenPipeError:
            raise  # whoever read the output has gone
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise Refused(f"The disk refused: {error.strerror or error}{where}.") from error

    @cached_property
    def system(self) -> Principal:
        """Who acts. Raises Refused before ``provision``."""
        # Where nothing was provisioned there is no database to ask either.
        organization = the_organization() if check_format_if_any(settings.DATA_DIR) else None
        if organization is None:
            raise Refused("There is no organization yet. Run `make run` or `manage.py provision` first.")
        return system_principal(organization.id)

    def identity(self, username: str) -> Identity:
        """The person or service account of this name, in any case. Raises Refused."""
        identity = Identity.objects.filter(
            username=username.lower(), organization_id=self.system.organization_id
        ).first()
        if identity is None:
            raise Refused(f"There is no person or service account named {username!r}.")
        return identity

    def folder(self, path: str) -> FolderRef:
        """The folder of this path; the root is an empty path or ``/``. Raises Refused."""
        path = "" if path == "/" else path
        try:
            return locate_folder(self.system, FolderLocator(folder_path=path))
        except BrainError as error:
            raise Refused(f"{shown(path)}: {sentence_of(error)}") from error

    def say(self, sentence: str) -> None:
        """Tell something beside the output proper."""
        self.stderr.write(sentence, lambda text: text)


def _refuse_what_is_no_text(options: Mapping[str, Any]) -> None:
    # Bytes of an argument that are not UTF-8 arrive as lone surrogates, which no name and no database holds. A path
    # on the machine may be of such bytes; it arrives as a Path.
    for name, value in options.items():
        for given in value if isinstance(value, list) else [value]:
            if isinstance(given, str) and not given.isascii():
                try:
                    given.encode()
                except UnicodeEncodeError as error:
                    raise Refused(f"{name}: this is not UTF-8.") from error


def password_from_stdin() -> str:
    """The first line of standard input. Raises Refused where there is none that could be a password."""
    try:
        line = sys.stdin.readline(PASSWORD_MAX_CHARACTERS + 1)
        line.encode("utf-8")  # where the locale is none, strange bytes come as lone surrogates
    except UnicodeError as error:
        raise Refused("The password on standard input is not UTF-8.") from error
    if len(line) > PASSWORD_MAX_CHARACTERS:
        raise Refused(f"The password on standard input has more than {PASSWORD_MAX_CHARACTERS} characters.")
    password = line.rstrip("\r\n")
    if not password:
        raise Refused("There is no password on standard input.")
    return password


def the_one_meant(tokens: Iterable[Connection]) -> Connection:
    """The only one of the tokens that answer to what was typed. Raises Refused, with a list where there are several."""
    found = list(tokens)
    if not found:
        raise Refused("There is no token with this name or prefix that is not revoked already.")
    if len(found) > 1:
        listed = "".join(f"\n  {token} of {token.identity.username}" for token in found)
        raise Refused(f"Several tokens answer to this; name one by its prefix:{listed}")
    return found[0]


def shown(path: str) -> str:
    """A folder's path as a person reads it."""
    return path or "/"


def sentence_of(error: BrainError) -> str:
    """A refusal in one line for a terminal."""
    if isinstance(error, StorageUnavailable):
        return (
            "The store cannot do this now: it is busy, or its disk is full, read-only or failing. The lines above tell "
            "which; `manage.py check_store` looks at everything."
        )
    details = error.details
    if "problem" in details:
        above = details.get("granting_folders")
        where = f" ({', '.join(map(shown, above))})" if above else ""
        return f"{details['field']}: {details['problem']}{where}"
    if "limit" in details:
        return f"{details['field']}: More than {details['limit']:,} {details['unit']}."
    return error.message
