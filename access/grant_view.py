"""A grant as Owners see it."""

from dataclasses import dataclass
from typing import Any

from core.types import Role


@dataclass(frozen=True, slots=True)
class GrantView:
    """One grant that reaches a folder. ``folder_path`` is None where the caller may not read the granting folder."""

    identity_id: str
    name: str
    username: str
    kind: str
    role: Role
    folder_path: str | None
    inherited: bool

    def as_dict(self) -> dict[str, Any]:
        """The grant as plain JSON values."""
        return {
            "identity_id": self.identity_id,
            "name": self.name,
            "username": self.username,
            "kind": self.kind,
            "role": self.role.word,
            "folder_path": self.folder_path,
            "inherited": self.inherited,
        }
