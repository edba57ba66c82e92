import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from access.models import AuditEvent, Identity, Organization
from access.principals import Principal
from access.services.create_identity import create_person, create_service_account
from access.services.create_organization import create_organization, the_organization
from access.services.set_active import disable_identity, enable_identity
from core.errors import Forbidden, InvalidArgument, LimitExceeded, NotFound, UsernameTaken
from core.types import Role
from tests.world import PASSWORD, World


def new_person(principal: Principal, username: str, *, name: str = "", email: str = "") -> Identity:
    return create_person(principal, username=username, password=PASSWORD, name=name, email=email)


def test_an_installation_has_one_organization(db: None) -> None:
    assert the_organization() is None
    acme = create_organization("Acme")
    assert the_organization() == acme

    with pytest.raises(InvalidArgument):
        create_organization("Acme two")

    assert Organization.objects.count() == 1


def test_a_person_is_named_by_their_username_unless_they_have_another_name(world: World) -> None:
    assert new_person(world.system, "ada").name == "ada"
    assert new_person(world.system, "priya", name="Priya Nair").name == "Priya Nair"


@pytest.mark.parametrize("username", ["", "Ada", "-ada", "ada lovelace", "ädä", "a/b", "ada\n", "a" * 65])
def test_a_username_outside_the_policy_is_refused(world: World, username: str) -> None:
    with pytest.raises((InvalidArgument, LimitExceeded)) as refused:
        new_person(world.system, username)
    with pytest.raises((InvalidArgument, LimitExceeded)):
        create_service_account(world.system, username=username)

    assert refused.value.details["field"] == "username"
    assert not Identity.objects.exists()


@pytest.mark.parametrize("name", ["two\nlines", "a" * 121, "  "])
def test_a_display_name_is_one_line_of_120_characters_at_most(world: World, name: str) -> None:
    with pytest.raises((InvalidArgument, LimitExceeded)) as refused:
        new_person(world.system, "ada", name=name)

    assert refused.value.details["field"] == "name"


@pytest.mark.parametrize("email", ["nonsense", "a@b", "ada@example.org\n", "a" * 250 + "@example.org"])
def test_an_address_that_is_none_is_refused(world: World, email: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        new_person(world.system, "ada", email=email)

    assert refused.value.details["field"] == "email"


@pytest.mark.parametrize("password", ["", "short", "password123", "ada-lovelace", "priya@example.org"])
def test_a_weak_password_is_refused_and_the_reason_told(world: World, password: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        create_person(
            world.system,
            username="ada-lovelace",
            password=password,
            name="Priya",
            email="priya@example.org",
        )

    assert refused.value.details["field"] == "password"
    assert len(refused.value.details["problem"]) > 10


def test_people_and_service_accounts_share_one_list_of_names(world: World) -> None:
    world.person("deploy-bot")
    events = AuditEvent.objects.count()

    with pytest.raises(UsernameTaken) as refused:
        create_service_account(world.system, username="deploy-bot")

    assert refused.value.code == "NAME_CONFLICT"
    assert AuditEvent.objects.count() == events


def test_the_database_compares_usernames_without_case(world: World) -> None:
    world.person("ada")
    ada = world.identity("ada")
    ada.pk, ada.username = "idn_another", "ADA"

    with pytest.raises(IntegrityError), transaction.atomic():
        ada.save(force_insert=True)


def test_only_administrators_manage_accounts(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER)

    with pytest.raises(Forbidden):
        new_person(ada, "mallory")
    with pytest.raises(Forbidden):
        create_service_account(ada, username="mallory")
    with pytest.raises(Forbidden):
        disable_identity(ada, ada.identity_id)
    with pytest.raises(Forbidden):
        enable_identity(ada, ada.identity_id)

    assert [identity.username for identity in Identity.objects.all()] == ["ada"]


def test_an_administrator_manages_accounts(world: World) -> None:
    root = world.person("root", is_admin=True)

    ada = new_person(root, "ada")
    create_service_account(root, username="deploy-bot")
    disable_identity(root, ada.id)

    assert not world.identity("ada").is_active


def test_an_account_that_does_not_exist_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        disable_identity(world.system, "idn_nobody")


def test_identities_are_never_deleted(world: World) -> None:
    world.person("ada")

    with pytest.raises(ProtectedError):
        world.identity("ada").delete()
    with pytest.raises(ProtectedError):
        Identity.objects.all().delete()
    with pytest.raises(ProtectedError):
        Identity.objects.filter(username="ada").delete()

    assert Identity.objects.count() == 1


def test_a_service_account_is_never_an_administrator(world: World) -> None:
    world.service_account("deploy-bot")

    with pytest.raises(IntegrityError), transaction.atomic():
        Identity.objects.filter(username="deploy-bot").update(is_admin=True)


def test_djangos_own_permissions_give_nobody_anything(world: World) -> None:
    world.person("root", is_admin=True)
    root = world.identity("root")

    assert not root.has_perm("access.owner")
    assert not root.has_perms(["access.owner"])
    assert not root.has_module_perms("access")


def test_the_admin_site_is_for_active_administrators(world: World) -> None:
    world.person("root", is_admin=True)
    world.person("ada", role=Role.OWNER)
    assert world.identity("root").is_staff
    assert not world.identity("ada").is_staff

    world.disable("root")

    assert not world.identity("root").is_staff
