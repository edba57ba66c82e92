from pathlib import Path

import pytest

from access.credentials import authenticate_token
from access.models import AuditEvent, Connection, Identity, Organization
from access.principals import system_principal
from brain import first_start
from core.errors import BrainError, InvalidArgument
from core.types import Capability, EntryLocator, FolderLocator, Role
from kb.services.browse_entries import browse_entries
from kb.services.delete_entry import delete_entry
from kb.services.read_entry import read_entry

pytestmark = pytest.mark.django_db(transaction=True)
WELCOME = EntryLocator(path="Handbook/Welcome.md")


def start(**wishes: object) -> first_start.Provisioned:
    wanted: dict[str, object] = {"organization": "Acme", "admin": "admin", "sample": True, "token": True}
    return first_start.provision(**(wanted | wishes))  # type: ignore[arg-type]


def test_the_first_start_makes_everything_that_is_needed(data_dir: Path) -> None:
    made = start()

    admin = Identity.objects.get()
    assert (admin.username, admin.is_admin, Organization.objects.get().name) == ("admin", True, "Acme")
    assert made.password
    assert admin.check_password(made.password)
    assert admin.password.startswith("argon2$")
    assert made.token
    connection = authenticate_token(made.token).connection
    assert connection is not None
    assert (connection.capability, connection.folder_scopes) == (Capability.WRITE, None)
    assert read_entry(system_principal(admin.organization_id), WELCOME).content.startswith(
        "# Welcome to Brain\n"
    )


def test_passwords_and_tokens_are_kept_as_hashes_only(data_dir: Path) -> None:
    made = start()

    kept = [
        *Identity.objects.values_list(),
        *Connection.objects.values_list(),
        *AuditEvent.objects.values_list(),
    ]
    files = b"".join(path.read_bytes() for path in data_dir.rglob("*") if path.is_file())
    for secret in (made.password, made.token):
        assert secret
        assert secret not in str(kept)
        assert secret.encode() not in files


def test_a_second_start_changes_nothing_and_shows_no_secret(data_dir: Path) -> None:
    start()
    system = system_principal(Organization.objects.get().id)
    welcome = read_entry(system, WELCOME)
    delete_entry(system, None, WELCOME, expected_version=welcome.version)
    before = (list(Identity.objects.values_list()), AuditEvent.objects.count())

    again = start()

    assert (again.password, again.token, again.is_new_admin, again.is_new_organization) == (
        None,
        None,
        False,
        False,
    )
    assert (list(Identity.objects.values_list()), AuditEvent.objects.count()) == before
    with pytest.raises(BrainError):
        read_entry(system, WELCOME)


@pytest.mark.parametrize(
    "cut_off_at", ["create_organization", "provision_store", "import_markdown", "create_person"]
)
def test_a_start_that_was_cut_off_is_finished_by_the_next(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, cut_off_at: str
) -> None:
    def cut_off(*args: object, **named: object) -> None:
        raise OSError("cut off")

    with monkeypatch.context() as once:
        once.setattr(first_start, cut_off_at, cut_off)
        with pytest.raises(OSError, match="cut off"):
            start()
    assert first_start.is_needed()

    made = start()

    assert made.password
    assert made.token
    assert not first_start.is_needed()
    system = system_principal(Organization.objects.get().id)
    listed = browse_entries(system, FolderLocator(), recursive=True).items
    sample = sorted(
        path.relative_to(first_start.SAMPLE).as_posix() for path in first_start.SAMPLE.rglob("*.md")
    )
    assert sorted(entry.path for entry in listed) == sample


def test_an_installation_has_one_organization(data_dir: Path) -> None:
    start()

    with pytest.raises(InvalidArgument) as refused:
        start(organization="Globex")

    assert refused.value.details["field"] == "organization"
    assert Organization.objects.get().name == "Acme"


def test_a_second_administrator_can_be_provisioned(data_dir: Path) -> None:
    start()

    made = start(admin="root", password="a password of their own")

    assert (made.is_new_admin, made.password) == (True, None)
    assert Identity.objects.get(username="root").check_password("a password of their own")


def test_an_account_that_is_no_administrator_is_not_made_one(data_dir: Path) -> None:
    start()
    Identity.objects.create(
        organization=Organization.objects.get(), kind="person", username="ada", name="Ada", password="!"
    )

    with pytest.raises(InvalidArgument):
        start(admin="ada")

    assert not Identity.objects.get(username="ada").is_admin


def test_the_first_token_is_the_administrators_own_role(data_dir: Path) -> None:
    from access import authorizer
    from kb.services.locate_folder import locate_folder

    made = start()
    assert made.token
    principal = authenticate_token(made.token)
    root = locate_folder(principal, FolderLocator())

    assert authorizer.sight_of(principal).role_on(root) is Role.OWNER
