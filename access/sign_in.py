"""Signing in with a password: for people alone, with the same work whoever is named."""

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.hashers import make_password

from access.models import Identity


class PeopleBackend(BaseBackend):
    """Django's door to the identities. A service account never passes it, nor does a disabled person."""

    def authenticate(
        self, request: Any, username: str | None = None, password: str | None = None, **credentials: Any
    ) -> Identity | None:
        """The person with this username, in any case, and password; None for everything else."""
        if username is None or password is None:
            return None
        identity = Identity.objects.filter(username=username.lower()).first()
        if identity is None:
            # One hash, as for a name that exists: the time of the answer does not tell who there is.
            make_password(password)
            return None
        if not identity.check_password(password):
            return None
        return identity if _may_sign_in(identity) else None

    def get_user(self, user_id: str) -> Identity | None:
        """The person of a session; None as soon as they are disabled, which ends it."""
        identity = Identity.objects.filter(id=user_id).first()
        return identity if identity is not None and _may_sign_in(identity) else None


def _may_sign_in(identity: Identity) -> bool:
    return identity.is_person and identity.is_active
