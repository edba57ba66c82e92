"""An identity by its username, for an Owner who is about to change its role."""

from access import authorizer
from access.models import Identity
from access.principals import Principal
from core.errors import InvalidArgument
from core.types import FolderRef, Role


def find_identity(principal: Principal, folder: FolderRef, username: str) -> Identity:
    """The identity of this username, in any case, active or not.

    Raises NotFound, Forbidden unless the caller is an Owner of the folder, InvalidArgument for a name nobody has.
    """
    authorizer.sight_of(principal).require(Role.OWNER, folder)
    found = Identity.objects.filter(
        username=username.strip().lower(), organization_id=principal.organization_id
    ).first()
    if found is None:
        raise InvalidArgument(
            "username", f"There is no person or service account named “{username.strip()}”."
        )
    return found
