"""The people and service accounts that access can be given to."""

from collections.abc import Iterator

from access import authorizer
from access.identity_view import IdentityView
from access.models import Identity
from access.pages import Page, Paging
from access.principals import Principal
from core import limits, text
from core.folding import fold
from core.types import IdentityKind


def list_identities(
    principal: Principal,
    *,
    kind: IdentityKind | None = None,
    query: str | None = None,
    limit: int = limits.PAGE_DEFAULT,
    cursor: str | None = None,
) -> Page[IdentityView]:
    """Everybody in the organization by username, disabled accounts too; of one ``kind`` where it is given.

    ``query`` is a literal text in name or username, in any case. For Owners of at least one folder and for
    administrators; addresses are not shown. One query for who asks and one for the page.

    Raises Forbidden, InvalidArgument (``query``, ``limit``, ``cursor``), LimitExceeded.
    """
    wanted = "" if query is None else fold(text.check_query(query))
    authorizer.sight_of(principal).require_owner_somewhere()
    paging = Paging(principal, ["identities", kind, query], limit=limit, cursor=cursor)
    return paging.cut(
        _identities(principal, kind, wanted, paging.after),
        place=lambda row: row.username,
        shape=lambda row: row,
    )


def _identities(
    principal: Principal, kind: IdentityKind | None, wanted: str, after: str
) -> Iterator[IdentityView]:
    rows = Identity.objects.filter(organization_id=principal.organization_id, username__gt=after)
    if kind is not None:
        rows = rows.filter(kind=kind)
    columns = ("id", "name", "username", "kind", "is_active")
    # Compared here, since databases know no Unicode case.
    for row in rows.order_by("username").values_list(*columns).iterator():
        view = IdentityView(*row)
        if wanted in fold(view.name) or wanted in view.username:
            yield view
