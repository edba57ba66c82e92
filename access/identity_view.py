"""A person or service account as others see it: no address, no password, no right."""

from dataclasses import asdict, dataclass
from typing import Any

from access.models import Identity


@dataclass(frozen=True, slots=True)
class IdentityView:
    """What Owners and administrators are shown of an identity. ``active`` is false for a disabled one."""

    identity_id: str
    name: str
    username: str
    kind: str
    active: bool

    @classmethod
    def of(cls, identity: Identity) -> "IdentityView":
        """The view of a row."""
        return cls(identity.id, identity.name, identity.username, identity.kind, identity.is_active)

    def as_dict(self) -> dict[str, Any]:
        """The identity as plain JSON values."""
        return asdict(self)
