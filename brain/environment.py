"""Reading settings from environment variables, and taking the secrets out of the environment after it.

A variable that Brain does not know is a mistake somebody should hear of, and a secret that has nowhere to go is one
that must stop the start: it was meant for something.
"""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

PREFIX = "BRAIN_"
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})
SECRET_FILE_MAX_BYTES = 64 * 1024
NUMBER_MAX_DIGITS = 32
SHOWN_MAX_CHARACTERS = 200

# Endings of variables that carry a secret, themselves or in the file they name.
SECRET_ENDINGS = ("_PAT", "_KEY", "_TOKEN", "_PASSWORD")


class Environment:
    """The ``BRAIN_`` variables of a process. Each is read once; ``unknown()`` tells which nobody asked for."""

    def __init__(self, variables: MutableMapping[str, str]) -> None:
        self._variables = variables
        self._asked: set[str] = set()
        self._secrets: set[str] = set()

    def text(self, name: str, default: str) -> str:
        """The variable without surrounding blanks; an empty one counts as absent."""
        self._asked.add(name)
        return self._variables.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """1, true, yes, on or 0, false, no, off."""
        value = self.text(name, "").lower()
        if value == "":
            return default
        if value in TRUE:
            return True
        if value in FALSE:
            return False
        raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.")

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number from ``least`` to ``most``."""
        value = self.text(name, str(default))
        is_number = value.isascii() and value.isdigit() and len(value) <= NUMBER_MAX_DIGITS
        if not is_number or not least <= int(value) <= most:
            raise ImproperlyConfigured(
                f"{name} must be a whole number from {least} to {most}, not {_shown(value)}."
            )
        return int(value)

    def directory(self, name: str, default: Path) -> Path:
        """An absolute path, ``~`` and links followed, so that later opens may refuse every link."""
        value = self.text(name, str(default))
        try:
            return Path(value).expanduser().resolve()
        except (RuntimeError, OSError, ValueError) as error:
            raise ImproperlyConfigured(f"{name} names no directory: {_shown(value)}.") from error

    def origin(self, name: str, default: str) -> str:
        """``http://host[:port]`` or ``https://host[:port]``, without anything after it."""
        value = self.text(name, default).rstrip("/")
        try:
            parts = urlsplit(value)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        shown_host = f"[{host}]" if host and ":" in host else host
        place = f"{shown_host}:{port}" if port is not None else shown_host
        # Compared with its own parts: a path, a user, a fragment and stray characters all leave a difference.
        if (
            not host
            or not value.isprintable()
            or value.lower() not in (f"http://{place}", f"https://{place}")
        ):
            raise ImproperlyConfigured(
                f"{name} must be http://host[:port] or https://host[:port], without a path or a user"
                + ("." if "@" in value else f", not {_shown(value)}.")  # a user may have a password
            )
        return value

    def secret(self, name: str) -> str | None:
        """The secret in the variable, or in the file that ``<name>_FILE`` names."""
        self._secrets |= {name, f"{name}_FILE"}
        given = self._variables.get(name, "").strip()
        file = self._variables.get(f"{name}_FILE", "").strip()
        if given and file:
            raise ImproperlyConfigured(f"Give {name} or {name}_FILE, not both.")
        if not file:
            return given or None
        try:
            with Path(file).open("rb") as opened:
                written = opened.read(SECRET_FILE_MAX_BYTES + 1)
            secret = written.decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ImproperlyConfigured(f"The file that {name}_FILE names cannot be read.") from error
        if not secret or len(written) > SECRET_FILE_MAX_BYTES:
            raise ImproperlyConfigured(
                f"The file that {name}_FILE names is empty or far too long for a secret."
            )
        return secret

    def unknown(self) -> list[str]:
        """Variables with Brain's prefix that no setting asked for, sorted. Raises where one of them is a secret."""
        unknown = sorted(
            name
            for name in self._variables
            if name.startswith(PREFIX) and name not in self._asked | self._secrets
        )
        for name in unknown:
            if name.removesuffix("_FILE").endswith(SECRET_ENDINGS) and self._variables[name].strip():
                raise ImproperlyConfigured(
                    f"{name} holds a secret, but {_destination(name, self._variables)}"
                )
        return unknown

    def drop_secrets(self) -> None:
        """Take every secret that was read out of the environment: no child process and no crash report gets it.

        Last of all, so that a start which fails before fails the same way when it is tried again.
        """
        for name in self._secrets:
            self._variables.pop(name, None)


def _shown(value: str) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN_MAX_CHARACTERS else f"{shown[:SHOWN_MAX_CHARACTERS]}…"


def _destination(name: str, variables: Mapping[str, str]) -> str:
    if name.startswith("BRAIN_BACKUP_") and not variables.get("BRAIN_BACKUP_REMOTE"):
        return "BRAIN_BACKUP_REMOTE does not say where it belongs. Set both or neither."
    if name.startswith("BRAIN_CHAT_") and not variables.get("BRAIN_CHAT_PROVIDER"):
        return "BRAIN_CHAT_PROVIDER does not say where it belongs. Set both or neither."
    return "this version of Brain has no setting of this name. Remove it from the environment."
