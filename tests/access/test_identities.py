import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from access.models import AuditEvent, Identity, Organization
from access.principals import Principal
from access.services.change_identity import change_identity
from access.services.create_identity import create_person, create_service_account
from access.services.create_organization import create_organization, the_organization
from access.services.set_active import disable_identity, enable_identity
from access.services.set_password import set_password
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


def test_an_administrator_changes_what_is_known_of_a_person(world: World) -> None:
    root = world.person("root", is_admin=True)
    ada = world.person("ada")

    change_identity(root, ada.identity_id, name="Ada Byron", email="ada@example.org", is_read_only=True)

    changed = world.identity("ada")
    assert (changed.name, changed.email, changed.is_read_only) == ("Ada Byron", "ada@example.org", True)
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.actor_username, event.subject_username) == ("change_identity", "root", "ada")
    assert event.before == "name: ada, e-mail: , read-only: no"
    assert event.after == "name: Ada Byron, e-mail: ada@example.org, read-only: yes"


def test_what_a_service_account_is_for_can_be_said_and_changed(world: World) -> None:
    bot = create_service_account(
        world.system, username="deploy-bot", description="Deploys.\r\nCheckout alone."
    )
    assert bot.description == "Deploys.\nCheckout alone."
    assert AuditEvent.objects.latest("id").after == "Deploys.\nCheckout alone."

    change_identity(world.system, bot.id, description="Deploys everything.")

    bot.refresh_from_db()
    assert bot.description == "Deploys everything."
    event = AuditEvent.objects.latest("id")
    assert (event.before, event.after) == (
        "description: Deploys.\nCheckout alone.",
        "description: Deploys everything.",
    )
    with pytest.raises(LimitExceeded):
        change_identity(world.system, bot.id, description="d" * 501)


def test_what_is_so_already_is_no_change(world: World) -> None:
    root = world.person("root", is_admin=True)
    ada = world.person("ada")
    events = AuditEvent.objects.count()

    change_identity(root, ada.identity_id, name="ada", email="", is_admin=False, is_read_only=False)

    assert AuditEvent.objects.count() == events


@pytest.mark.parametrize(
    ("facts", "field"), [({"name": ""}, "name"), ({"email": "nonsense"}, "email"), ({"name": "a\nb"}, "name")]
)
def test_impossible_facts_change_nothing(world: World, facts: dict[str, str], field: str) -> None:
    root = world.person("root", is_admin=True)
    ada = world.person("ada")

    with pytest.raises(InvalidArgument) as refused:
        change_identity(root, ada.identity_id, **{"is_read_only": True, **facts})  # type: ignore[arg-type]

    assert refused.value.details["field"] == field
    assert not world.identity("ada").is_read_only


def test_a_service_account_gets_neither_address_nor_place_of_an_administrator(world: World) -> None:
    root = world.person("root", is_admin=True)
    bot = world.service_account("deploy-bot")

    with pytest.raises(InvalidArgument):
        change_identity(root, bot.identity_id, is_admin=True)
    with pytest.raises(InvalidArgument):
        change_identity(root, bot.identity_id, email="bot@example.org")
    with pytest.raises(InvalidArgument):
        set_password(root, bot.identity_id, PASSWORD)

    assert change_identity(root, bot.identity_id, name="Deploys").name == "Deploys"


def test_the_last_administrator_stays(world: World) -> None:
    root = world.person("root", is_admin=True)
    other = world.person("priya", is_admin=True)
    world.disable("priya")

    with pytest.raises(InvalidArgument) as refused:
        change_identity(root, root.identity_id, is_admin=False)
    assert "last administrator" in refused.value.details["problem"]
    with pytest.raises(InvalidArgument):
        disable_identity(root, root.identity_id)
    assert world.identity("root").is_staff

    enable_identity(root, other.identity_id)
    change_identity(root, root.identity_id, is_admin=False)

    assert not world.identity("root").is_admin
    # The shell may, since it can also undo it.
    world.disable("priya")


def test_a_new_password_ends_the_old_one(world: World) -> None:
    root = world.person("root", is_admin=True)
    ada = world.person("ada")
    before = world.identity("ada").get_session_auth_hash()

    with pytest.raises(InvalidArgument) as refused:
        set_password(root, ada.identity_id, "password")
    assert refused.value.details["field"] == "password"
    assert world.identity("ada").check_password(PASSWORD)

    set_password(root, ada.identity_id, "a better horse battery")

    assert world.identity("ada").check_password("a better horse battery")
    assert world.identity("ada").get_session_auth_hash() != before
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.subject_username, event.after) == ("set_password", "ada", "")


def test_only_administrators_change_others(world: World) -> None:
    ada = world.person("ada", role=Role.OWNER)
    priya = world.person("priya")

    with pytest.raises(Forbidden):
        change_identity(ada, priya.identity_id, name="P")
    with pytest.raises(Forbidden):
        change_identity(ada, ada.identity_id, is_admin=True)
    with pytest.raises(Forbidden):
        set_password(ada, priya.identity_id, PASSWORD)

    refused = AuditEvent.objects.filter(refusal="FORBIDDEN").values_list("action", flat=True)
    assert list(refused) == ["change_identity", "change_identity", "set_password"]
    assert world.identity("priya").name == "priya"
