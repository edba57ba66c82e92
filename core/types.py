"""The words that every floor shares: roles, kinds, locators, a folder with its lineage, a request.

All of them are frozen values without behaviour that needs a database or a disk.
"""

import enum
from dataclasses import dataclass


class Role(enum.IntEnum):
    """What a grant gives; a higher role includes the lower ones."""

    READER = 1
    EDITOR = 2
    OWNER = 3

    @property
    def word(self) -> str:
        """``reader``, ``editor`` or ``owner``, as callers write it."""
        return self.name.lower()

    @classmethod
    def from_word(cls, word: str) -> "Role":
        """The role of a caller's word. Raises KeyError."""
        return cls[word.upper()]


class IdentityKind(enum.StrEnum):
    """Who acts. The shell and imports act as ``SYSTEM``."""

    PERSON = "person"
    SERVICE_ACCOUNT = "service_account"
    SYSTEM = "system"


class Capability(enum.StrEnum):
    """What a connection may do at most; ``WRITE`` includes reading."""

    READ = "read"
    WRITE = "write"


class ConnectionKind(enum.StrEnum):
    """Who holds a connection: an agent of one's own, or a workflow that Brain's operators run for many."""

    EXTERNAL = "external"
    MANAGED = "managed"


class EntryType(enum.StrEnum):
    """The label of an entry. All types share storage, access, search, reading and updating."""

    SKILL = "skill"
    NOTE = "note"
    FACT = "fact"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who made a change, as it is written into the store: names are kept as text."""

    id: str
    name: str
    kind: IdentityKind


SYSTEM_ACTOR = Actor(id="system", name="System", kind=IdentityKind.SYSTEM)


@dataclass(frozen=True, slots=True)
class FolderRef:
    """One folder with the ids above it. ``kb`` makes it, ``access`` judges it.

    ``path`` is organization-relative with the stored spelling, the root's is empty. ``lineage`` holds the
    ids from the root down to the folder itself, so its length is one more than the number of components.
    """

    id: str
    path: str
    lineage: tuple[str, ...]

    @property
    def name(self) -> str:
        """The last component; empty for the root."""
        return self.path.rpartition("/")[2]

    @property
    def parent_id(self) -> str | None:
        """The id of the folder above; None for the root."""
        return self.lineage[-2] if len(self.lineage) > 1 else None

    def path_at(self, depth: int) -> str:
        """The path of ``lineage[depth]``."""
        return "/".join(self.path.split("/")[:depth]) if depth else ""

    @property
    def upwards(self) -> "tuple[FolderRef, ...]":
        """The folder itself and those above it, up to the root."""
        return tuple(
            FolderRef(self.lineage[depth], self.path_at(depth), self.lineage[: depth + 1])
            for depth in reversed(range(len(self.lineage)))
        )


@dataclass(frozen=True, slots=True)
class FolderLocator:
    """A folder by exactly one of id and path. ``FolderLocator()`` is the root."""

    folder_id: str | None = None
    folder_path: str | None = None


ROOT = FolderLocator()


@dataclass(frozen=True, slots=True)
class EntryLocator:
    """An entry by exactly one of id and path."""

    entry_id: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class MutationRequest:
    """One mutating call that may be repeated: at most one effect within seven days.

    ``key`` names claim and outcome (``ids.request_key``), ``arguments_hash`` is the SHA-256 of the
    canonical arguments including the action.
    """

    key: str
    arguments_hash: str
