"""The organization whose knowledge this is."""

from django.db import transaction

from access import audit
from access.audit import AuditAction
from access.models import Organization
from access.principals import system_principal
from core import text
from core.errors import InvalidArgument


def create_organization(name: str) -> Organization:
    """The first organization; its store is made by ``kb.store.stores.provision_store``, its administrator after it.

    Raises InvalidArgument where there is one already, LimitExceeded.
    """
    text.clean_display_name(name, field="organization")
    with transaction.atomic():
        if Organization.objects.exists():
            raise InvalidArgument(
                "organization", "There is an organization already; an installation has one."
            )
        organization = Organization.objects.create(name=name)
        audit.record(system_principal(organization.id), AuditAction.CREATE_ORGANIZATION, after=name)
    return organization


def the_organization() -> Organization | None:
    """The installation's organization; None before ``provision``."""
    return Organization.objects.first()
