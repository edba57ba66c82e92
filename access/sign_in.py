"""Signing in with a password: for people alone, with the same work whoever is named.

django-axes keeps the wrong ones, by name and address; its settings call the functions below.
"""

import ipaddress
from datetime import timedelta
from typing import Any

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.hashers import make_password
from django.db.models import Max

from access.models import Identity
from core import clock, limits

# One household or host has as many IPv6 addresses as it likes, all of them in one such network.
IPV6_NETWORK_BITS = 64


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


def name_tried(request: Any, credentials: dict[str, Any] | None) -> str:
    """The name that somebody tries, in the one spelling that counts: else each spelling had tries of its own."""
    name = (credentials or request.POST).get("username") or ""
    return str(name).lower()[: limits.USERNAME_MAX_CHARACTERS]


def address_of(request: Any) -> str | None:
    """Where a request comes from: the address itself, of IPv6 its network. None where no address is to be had.

    Behind proxies it is the address that the outermost of ours saw. What a client writes into the header itself
    stands before that and counts for nothing.
    """
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.PROXY_COUNT else ""
    seen = [
        *(part.strip() for part in forwarded.split(",") if part.strip()),
        request.META.get("REMOTE_ADDR", ""),
    ]
    try:
        address = ipaddress.ip_address(seen[-min(settings.PROXY_COUNT + 1, len(seen))])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        network = ipaddress.ip_network((address.packed, IPV6_NETWORK_BITS), strict=False)
        return str(network.network_address)
    return str(address)


def seconds_of_pause(username: str, address: str | None) -> int:
    """How long this name is not listened to from this address, at most; 0 where it is."""
    found = AccessAttempt.objects.filter(username=username, ip_address=address)
    latest = found.aggregate(latest=Max("attempt_time"))["latest"]
    if latest is None:
        return 0
    left: timedelta = latest + settings.AXES_COOLOFF_TIME - clock.now()
    return max(0, round(left.total_seconds()))


def _may_sign_in(identity: Identity) -> bool:
    return identity.is_person and identity.is_active
