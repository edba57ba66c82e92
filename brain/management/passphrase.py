"""The passphrase that seals the keys in an instance backup: asked for at the terminal, or read from a file."""

import getpass
import sys
from pathlib import Path

from brain.management.shell_command import Refused
from core.sealing import PASSPHRASE_MIN_CHARACTERS

FILE_MAX_BYTES = 4096


def new_passphrase(file: Path | None) -> str:
    """A passphrase to seal with: the first line of ``file``, or asked for twice. Raises Refused."""
    passphrase = _read(file) if file else _ask("Passphrase for the secrets: ")
    if len(passphrase) < PASSPHRASE_MIN_CHARACTERS:
        raise Refused(f"A passphrase has {PASSPHRASE_MIN_CHARACTERS} characters or more.")
    if file is None and _ask("Once more: ") != passphrase:
        raise Refused("The two are not the same.")
    return passphrase


def known_passphrase(file: Path | None) -> str:
    """The passphrase that the secrets were sealed with. Raises Refused."""
    return _read(file) if file else _ask("Passphrase of the secrets: ")


def _ask(question: str) -> str:
    if not sys.stdin.isatty():
        raise Refused("There is no terminal to ask for the passphrase: give --passphrase-file.")
    return getpass.getpass(question)


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(FILE_MAX_BYTES).decode("utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"The passphrase file {file} cannot be read.") from error
