"""Where things stand in the viewer, and where a link that was written into an entry leads.

Pure: a link is resolved by its letters alone. Whether its target exists and may be seen is asked when somebody
follows it, so that no page tells of entries its reader cannot open.
"""

import re
from urllib.parse import quote, unquote

FILES_ADDRESS = "/files/"
ACCESS_ADDRESS = "/access/"
# Before every id that an entry brings along, so that none can pass for one of the page's own.
ID_PREFIX = "md-"
SCHEMES = frozenset({"http", "https", "mailto"})

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# What browsers take out of an address before they read it.
_INVISIBLE = re.compile(r"[\t\n\r]")
_CONTROL_AND_BLANK = "".join(map(chr, range(0x21)))


def address_of_entry(path: str) -> str:
    """The page of an entry."""
    return FILES_ADDRESS + quote(path)


def address_of_folder(path: str) -> str:
    """The page of a folder; the root's path is empty."""
    return FILES_ADDRESS + quote(path) + ("/" if path else "")


def address_of_access(path: str) -> str:
    """The page on which the folder's access is seen and managed; the root's path is empty."""
    return ACCESS_ADDRESS + quote(path) + ("/" if path else "")


def resolve(href: str, folder_path: str) -> str | None:
    """The address that ``href`` means in an entry of the folder; None for one that leads nowhere we allow.

    A relative path starts at the folder, one with a leading slash at the root of the tree. ``..`` stops at the root,
    as it does in browsers. Fragments get ``ID_PREFIX``.
    """
    href = _INVISIBLE.sub("", href.strip(_CONTROL_AND_BLANK))
    if scheme := _SCHEME.match(href):
        return href if scheme[1].lower() in SCHEMES else None
    before, _, fragment = href.partition("#")
    anchor = f"#{fragment if fragment.startswith(ID_PREFIX) else ID_PREFIX + fragment}" if fragment else ""
    path = before.partition("?")[0].replace("\\", "/")
    if path.startswith("//"):
        return f"https:{path}{before[len(path) :]}{'#' + fragment if fragment else ''}"
    if not path:
        return anchor or None
    return _inside(unquote(path), folder_path) + anchor


def _inside(path: str, folder_path: str) -> str:
    path = path.replace("\\", "/")
    if path.startswith(FILES_ADDRESS):
        # Copied from the address bar.
        path = path[len(FILES_ADDRESS) - 1 :]
    names = [] if path.startswith("/") else folder_path.split("/")
    for name in path.split("/"):
        if name == "..":
            names = names[:-1]
        elif name not in ("", "."):
            names.append(name)
    names = [name for name in names if name]
    resolved = "/".join(names)
    is_folder = path.rpartition("/")[2] in ("", ".", "..")
    return address_of_folder(resolved) if is_folder else address_of_entry(resolved)
