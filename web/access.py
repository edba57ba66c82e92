"""The Access pages: who has what on a folder and why, and, for its Owners, the form that changes it.

A change is two steps: the first shows what it would do, the second, with the same facts and the folder's ACL version,
does it through the service.
"""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from access.grant_view import GrantView
from access.models import Identity
from access.principals import Principal, principal_of_session
from access.services.find_identity import find_identity
from access.services.grant_role import grant_role
from access.services.inspect_access import AccessView, inspect_access
from access.services.revoke_role import revoke_role
from core.errors import AccessVersionConflict, InvalidArgument, NotFound
from core.types import FolderLocator, FolderRef, Role
from kb.entry import FolderView
from kb.links import address_of_access
from kb.services.locate_folder import locate_folder
from kb.services.reveal_folder import Level, reveal_folder
from web.files import refuse_impossible
from web.tree import crumbs_of, tree_of

ROLES = [(role.word, role.word.capitalize()) for role in sorted(Role)]
NO_ROLE = ""


class Change(forms.Form):
    """Whose direct role on the folder shall become what; no role takes the grant away."""

    username = forms.CharField(label="Who", max_length=64)
    role = forms.ChoiceField(label="Role", choices=[*ROLES, (NO_ROLE, "No role")], required=False)
    acl_version = forms.IntegerField(min_value=0)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change would do, in words."""

    identity: Identity
    direct: Role | None
    inherited: Role | None
    wanted: Role | None

    @property
    def before(self) -> Role | None:
        """What the identity has on the folder now."""
        return max((role for role in (self.direct, self.inherited) if role is not None), default=None)

    @property
    def after(self) -> Role | None:
        """What it would have."""
        return max((role for role in (self.wanted, self.inherited) if role is not None), default=None)

    @property
    def is_nothing(self) -> bool:
        """Whether the direct grant would stay as it is."""
        return self.direct is self.wanted


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def access(request: HttpRequest, path: str = "") -> HttpResponse:
    """The access to one folder. On a folder that is only a label it is not found, but for the root."""
    assert isinstance(request.user, Identity)
    principal = principal_of_session(request.user)
    path = path.removesuffix("/")
    refuse_impossible(path.split("/") if path else [], is_entry=False)
    levels = reveal_folder(principal, FolderLocator(folder_path=path))
    here = levels[-1].folder
    if here.role is None and here.path:
        raise NotFound
    if address_of_access(here.path) != request.path:
        return HttpResponseRedirect(address_of_access(here.path))
    if here.role is None:
        if request.method == "POST":
            raise NotFound
        return _page(request, levels, {"view": None})
    folder = locate_folder(principal, FolderLocator(folder_id=here.folder_id))
    if request.method == "POST":
        return _change(request, principal, levels, folder)
    return _page(request, levels, _lists(request, inspect_access(principal, folder)))


def _lists(request: HttpRequest, view: AccessView) -> dict[str, Any]:
    is_direct = request.GET.get("view") == "direct"
    grants = [grant for grant in view.grants or () if not (is_direct and grant.inherited)]
    return {
        "view": view,
        "is_direct": is_direct,
        "grants": grants,
        "roles": ROLES,
        "username": request.GET.get("username", ""),
    }


def _change(
    request: HttpRequest, principal: Principal, levels: list[Level], folder: FolderRef
) -> HttpResponse:
    form = Change(request.POST)
    view = inspect_access(principal, folder)
    if not form.is_valid():
        return _refused(request, levels, view, "Say who, which role, and send the form from this page.")
    wanted = Role.from_word(form.cleaned_data["role"]) if form.cleaned_data["role"] else None
    version = form.cleaned_data["acl_version"]
    try:
        identity = find_identity(principal, folder, form.cleaned_data["username"])
        effect = _effect_on(view, identity, wanted)
        if effect.is_nothing:
            return _refused(request, levels, view, _nothing_to_do(effect))
        if request.POST.get("step") != "confirm":
            return _page(request, levels, {"view": view, "effect": effect, "acl_version": version})
        if wanted is None:
            revoke_role(principal, folder, identity.id, expected_acl_version=version)
        else:
            grant_role(principal, folder, identity.id, wanted, expected_acl_version=version)
    except AccessVersionConflict:
        sentence = (
            "Somebody else changed the access to this folder meanwhile. Look again, then repeat your change."
        )
        return _refused(request, levels, inspect_access(principal, folder), sentence)
    except InvalidArgument as error:
        return _refused(request, levels, view, error.details["problem"])
    messages.success(request, _done(effect))
    return HttpResponseRedirect(address_of_access(folder.path))


def _effect_on(view: AccessView, identity: Identity, wanted: Role | None) -> Effect:
    theirs: list[GrantView] = [grant for grant in view.grants or () if grant.identity_id == identity.id]
    direct = next((grant.role for grant in theirs if not grant.inherited), None)
    inherited = max((grant.role for grant in theirs if grant.inherited), default=None)
    return Effect(identity, direct, Role.OWNER if identity.is_staff else inherited, wanted)


def _nothing_to_do(effect: Effect) -> str:
    name = effect.identity.name
    if effect.wanted is None:
        return f"{name} has no role of their own here to take away."
    return f"{name} is {effect.wanted.word.capitalize()} here already."


def _done(effect: Effect) -> str:
    name = effect.identity.name
    if effect.after is None:
        return f"{name} has no access here now."
    return f"{name} is {effect.after.word.capitalize()} here now."


def _refused(request: HttpRequest, levels: list[Level], view: AccessView, sentence: str) -> HttpResponse:
    context = _lists(request, view) | {"problem": sentence, "username": request.POST.get("username", "")}
    return _page(request, levels, context, status=400)


def _page(
    request: HttpRequest, levels: list[Level], context: dict[str, Any], status: int = 200
) -> HttpResponse:
    here: FolderView = levels[-1].folder
    return render(
        request,
        "access/folder.html",
        {
            "tree": tree_of(levels),
            "crumbs": crumbs_of(levels),
            "folder": here,
            "role": here.role,
            "is_access": True,
            **context,
        },
        status=status,
    )
