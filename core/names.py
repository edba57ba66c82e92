"""The name policy: which names folders and entries may have, and when two of them collide.

Pure and argument-only, so a refusal tells nothing about what exists. A stem has 1 to
64 of ASCII letters, digits, blank, ``_`` and ``-``, begins with a letter or digit and does not end in a blank;
an entry's filename is a stem and ``.md``; a path joins names with ``/`` and has at most 1,024 bytes.
"""

import re

from core import limits
from core.errors import InvalidArgument, LimitExceeded

ENTRY_SUFFIX = ".md"
ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _-")
DEVICE_NAMES = frozenset(
    ["con", "nul", "aux", "prn", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))]
)
USERNAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


def check_folder_name(name: str, *, field: str = "name") -> str:
    """``name`` itself, if a new folder may have it. Raises InvalidArgument, LimitExceeded."""
    return _check_stem(name, field)


def check_filename(filename: str, *, field: str = "filename") -> str:
    """``filename`` itself, if a new entry may have it. Raises InvalidArgument, LimitExceeded."""
    if not filename.endswith(ENTRY_SUFFIX):
        raise InvalidArgument(field, "A filename ends in the lowercase extension .md.")
    _check_stem(filename[: -len(ENTRY_SUFFIX)], field)
    return filename


def split_folder_path(path: str, *, field: str = "folder_path") -> list[str]:
    """The names in a folder's path; the root's empty path has none. Raises InvalidArgument, LimitExceeded."""
    if path == "":
        return []
    _check_length(path, field)
    return [_check_stem(name, field) for name in path.split("/")]


def split_entry_path(path: str, *, field: str = "path") -> tuple[list[str], str]:
    """The folder names and the filename in an entry's path. Raises InvalidArgument, LimitExceeded.

    Looking up disregards case, so the extension may be spelled ``.MD`` here.
    """
    if path == "":
        raise InvalidArgument(field, "A path is not empty.")
    _check_length(path, field)
    *folders, filename = path.split("/")
    if fold(filename[-len(ENTRY_SUFFIX) :]) != ENTRY_SUFFIX:
        raise InvalidArgument(field, "The path of an entry ends in .md.")
    _check_stem(filename[: -len(ENTRY_SUFFIX)], field)
    return [_check_stem(name, field) for name in folders], filename


def join(parent_path: str, name: str, *, field: str) -> str:
    """The path of ``name`` below ``parent_path``. Raises LimitExceeded when it grows too long."""
    path = f"{parent_path}/{name}" if parent_path else name
    _check_length(path, field)
    return path


def fold(name: str) -> str:
    """The key under which a name or path is looked up: two names collide when their keys are equal."""
    # Nearly every name is ASCII, and for those ``lower`` is the same and ten times quicker.
    return name.lower() if name.isascii() else name.translate(_LOWER)


def check_username(username: str, *, field: str = "username") -> str:
    """``username`` itself, if a person or service account may have it. Raises InvalidArgument, LimitExceeded."""
    if len(username) > limits.USERNAME_MAX_CHARACTERS:
        raise LimitExceeded(field, limit=limits.USERNAME_MAX_CHARACTERS, unit="characters")
    if not USERNAME.fullmatch(username):
        raise InvalidArgument(
            field, "A name has 1 to 64 of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit."
        )
    return username


def is_stem(stem: str) -> bool:
    """Whether the policy allows this as a folder's name or as a filename without its extension."""
    return (
        0 < len(stem) <= limits.NAME_MAX_CHARACTERS
        and set(stem) <= ALLOWED
        and stem[0] not in " _-"
        and not stem.endswith(" ")
        and fold(stem) not in DEVICE_NAMES
    )


_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def _check_stem(stem: str, field: str) -> str:
    if is_stem(stem):
        return stem
    if stem == "":
        raise InvalidArgument(field, "A name is not empty.")
    if stem in (".", ".."):
        raise InvalidArgument(field, "'.' and '..' are not names.")
    if not set(stem) <= ALLOWED:
        raise InvalidArgument(field, "A name has only ASCII letters, digits, blanks, '_' and '-'.")
    if len(stem) > limits.NAME_MAX_CHARACTERS:
        raise LimitExceeded(field, limit=limits.NAME_MAX_CHARACTERS, unit="characters")
    if stem[0] in " _-":
        raise InvalidArgument(field, "A name begins with a letter or digit.")
    if stem.endswith(" "):
        raise InvalidArgument(field, "A name does not end in a blank.")
    raise InvalidArgument(field, "This name belongs to a device on Windows and is not allowed.")


def _check_length(path: str, field: str) -> None:
    if len(path.encode("utf-8", "surrogatepass")) > limits.PATH_MAX_BYTES:
        raise LimitExceeded(field, limit=limits.PATH_MAX_BYTES, unit="bytes")
