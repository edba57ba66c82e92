import io
from typing import Any

import pytest
from django.core.management import ManagementUtility, call_command

from access import credentials
from access.authorizer import sight_of
from access.models import AuditEvent, Connection
from access.principals import principal_of_session
from brain.management.shell_command import Refused
from core.types import Capability, ConnectionKind, Role
from tests.access.test_sign_in import sign_in
from tests.world import PASSWORD, World

PAYMENTS = "Engineering/Payments"


class Said:
    """What a command printed."""

    def __init__(self, *arguments: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        call_command(*arguments, stdout=out, stderr=err)
        self.out = out.getvalue()
        self.err = err.getvalue()


def refusal(*arguments: str) -> str:
    with pytest.raises(Refused) as refused:
        call_command(*arguments, stdout=io.StringIO(), stderr=io.StringIO())
    return str(refused.value)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    def type_line(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return type_line


# People and service accounts


def test_create_user_prints_the_generated_password_alone_and_once(world: World) -> None:
    said = Said("create_user", "ada", "--name", "Ada Lovelace", "--email", "ada@example.org")

    password = said.out.removesuffix("\n")
    assert sign_in("ada", password) is not None
    assert password not in said.err
    ada = world.identity("ada")
    assert (ada.name, ada.email, ada.is_admin) == ("Ada Lovelace", "ada@example.org", False)


def test_create_user_takes_the_password_from_standard_input_and_prints_none(world: World, typed: Any) -> None:
    typed(f"{PASSWORD}\r\nmore\n")

    said = Said("create_user", "root", "--admin", "--password-stdin")

    assert said.out == ""
    assert sign_in("root", PASSWORD) is not None
    assert world.identity("root").is_admin


def test_create_user_refuses_an_empty_password_and_a_weak_one(world: World, typed: Any) -> None:
    typed("\n")
    assert "no password" in refusal("create_user", "ada", "--password-stdin")
    typed("12345678901\n")
    assert refusal("create_user", "ada", "--password-stdin").startswith("password: ")

    assert sign_in("ada", "12345678901") is None


@pytest.mark.parametrize(("given", "says"), [("\udcff" * 12, "not UTF-8"), ("x" * 4_097, "more than 4096")])
def test_create_user_refuses_what_can_be_no_password(world: World, typed: Any, given: str, says: str) -> None:
    typed(given)

    assert says in refusal("create_user", "ada", "--password-stdin")


def test_a_name_that_is_taken_or_not_allowed_is_refused_in_one_line(world: World) -> None:
    Said("create_service_account", "deploy-bot", "--name", "Deployment")

    assert "has this name already" in refusal("create_user", "deploy-bot")
    assert refusal("create_service_account", "Deploy Bot").startswith("username: A name has 1 to 64")
    assert "64 characters" in refusal("create_user", "a" * 65)
    assert world.identity("deploy-bot").name == "Deployment"


def test_a_command_before_the_first_organization_says_what_to_do(db: None) -> None:
    assert "provision" in refusal("create_user", "ada")


# Grants


def test_create_folder_makes_the_missing_parents_and_may_be_repeated(world: World) -> None:
    Said("create_folder", PAYMENTS)
    first = world.folder(PAYMENTS).id
    Said("create_folder", PAYMENTS)

    assert world.folder(PAYMENTS).id == first
    assert "path: " in refusal("create_folder", "Engineering/../Sales")


def test_grant_and_revoke_give_and_take_a_direct_role(world: World) -> None:
    ada = world.person("ada")
    payments = world.folder(PAYMENTS)

    assert "now reader" in Said("grant", "ada", PAYMENTS, "reader").err
    assert "now editor" in Said("grant", "ADA", PAYMENTS.lower(), "editor").err
    assert "already" in Said("grant", "ada", PAYMENTS, "editor").err
    assert sight_of(ada).role_on(payments) is Role.EDITOR

    assert "no longer editor" in Said("revoke", "ada", PAYMENTS).err
    assert sight_of(ada).role_on(payments) is None


@pytest.mark.parametrize("root", ["", "/"])
def test_the_root_is_an_empty_path_or_a_slash(world: World, root: str) -> None:
    ada = world.person("ada")

    Said("grant", "ada", root, "owner")

    assert sight_of(ada).role_on(world.folder("")) is Role.OWNER


def test_revoke_tells_what_other_grants_still_give(world: World) -> None:
    world.person("ada", role=Role.READER)
    world.grant("ada", Role.EDITOR, PAYMENTS)

    assert "still reader" in Said("revoke", "ada", PAYMENTS).err
    assert refusal("revoke", "ada", PAYMENTS).endswith("Revoke it there. (/)")


def test_grant_names_what_it_does_not_find(world: World) -> None:
    world.person("ada")

    assert "'nobody'" in refusal("grant", "nobody", "/", "reader")
    assert refusal("grant", "ada", "Nowhere", "reader").startswith("Nowhere: ")


def test_commands_act_as_the_system_and_are_audited(world: World) -> None:
    world.person("ada")
    before = AuditEvent.objects.count()

    Said("grant", "ada", "/", "reader")
    Said("create_token", "ada", "--name", "laptop", "--capability", "read")
    Said("revoke_token", "laptop")
    Said("disable", "ada")
    Said("enable", "ada")

    events = AuditEvent.objects.order_by("id")[before:]
    assert [event.action for event in events] == ["grant", "issue_token", "revoke_token", "disable", "enable"]
    assert {(event.actor_kind, event.through) for event in events} == {("system", "shell")}


# Tokens


def test_create_token_prints_the_token_alone_on_standard_output(world: World) -> None:
    world.person("ada")

    said = Said("create_token", "ada", "--name", "laptop", "--capability", "write")

    token = said.out.removesuffix("\n")
    ada = credentials.authenticate_token(token)
    assert (ada.username, ada.connection.name if ada.connection else "") == ("ada", "laptop")
    assert token not in said.err
    assert "laptop" in said.err


def test_create_token_narrows_as_it_is_told(world: World) -> None:
    world.person("ada", role=Role.EDITOR, on=PAYMENTS)
    world.folder("Engineering/Payments/Checkout")

    token = Said(
        *("create_token", "ada", "--name", "flow", "--capability", "read", "--kind", "managed"),
        *("--scope", f"{PAYMENTS}=reader", "--scope", f"{PAYMENTS}/Checkout=editor", "--expires", "30"),
    ).out.strip()

    row = world.connection(token)
    assert (row.capability, row.kind) == (Capability.READ, ConnectionKind.MANAGED)
    assert row.folder_scopes == [
        {"folder_id": world.folder(PAYMENTS).id, "max_role": "reader"},
        {"folder_id": world.folder(f"{PAYMENTS}/Checkout").id, "max_role": "editor"},
    ]
    assert row.expires_at is not None
    assert (row.expires_at - row.created_at).days in (29, 30)


def test_a_token_without_content_has_an_empty_list_of_caps(world: World) -> None:
    world.person("ada", role=Role.OWNER)

    token = Said("create_token", "ada", "--name", "n", "--capability", "read", "--no-content").out.strip()

    assert world.connection(token).folder_scopes == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--scope", "Engineering=owner"], "PATH=reader or PATH=editor"),
        (["--scope", "Engineering"], "PATH=reader or PATH=editor"),
        (["--scope", "Nowhere=reader"], "Nowhere: "),
        (["--scope", "Engineering=reader"], "no role on Engineering"),
        (["--expires", "0"], "at least one day"),
        (["--expires", "100000"], "More than 3,650 days"),
    ],
)
def test_a_token_that_may_not_be_is_refused_and_nothing_is_kept(
    world: World, arguments: list[str], reason: str
) -> None:
    world.person("ada")
    world.folder("Engineering")

    assert reason in refusal("create_token", "ada", "--name", "n", "--capability", "read", *arguments)
    assert not Connection.objects.exists()


def test_revoke_token_refuses_a_name_that_several_tokens_have_and_lists_them(world: World) -> None:
    world.person("ada")
    world.person("bo")
    adas, bos = world.connection(world.token("ada")), world.connection(world.token("bo"))

    listed = refusal("revoke_token", "laptop")

    assert f"brn_{adas.prefix}" in listed
    assert f"brn_{bos.prefix}" in listed
    assert "of bo" in listed
    assert Connection.objects.filter(revoked_at=None).count() == 2

    Said("revoke_token", f"brn_{adas.prefix}")

    assert Connection.objects.get(revoked_at=None) == bos
    assert "no token" in refusal("revoke_token", adas.prefix)


def test_rotate_token_prints_the_new_one_alone_and_says_when_the_old_one_ends(world: World) -> None:
    world.person("ada")
    old = world.token("ada")

    said = Said("rotate_token", "laptop", "--overlap", "3")

    new = said.out.removesuffix("\n")
    assert world.through(new).identity_id == world.through(old).identity_id
    assert new not in said.err
    assert "still works until" in said.err

    # The name now means the successor.
    assert "is revoked" in Said("rotate_token", "laptop", "--overlap", "0").err
    assert world.connection(new).revoked_at is not None
    assert "More than 720 hours" in refusal("rotate_token", "laptop", "--overlap", "721")
    assert "no token" in refusal("rotate_token", "desk")


def test_disable_and_enable_bite_at_once(world: World) -> None:
    world.person("ada", role=Role.READER)
    ada = principal_of_session(world.identity("ada"))

    Said("disable", "ada")
    assert sight_of(ada).role_on(world.folder("")) is None

    Said("enable", "ada")
    assert sight_of(ada).role_on(world.folder("")) is Role.READER


@pytest.mark.django_db(transaction=True)
def test_a_refusal_at_the_terminal_is_one_line_and_exit_code_1(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", "grant", "nobody", "/", "reader"]).execute()

    printed = capsys.readouterr()
    assert ended.value.code == 1
    assert printed.out == ""
    assert printed.err == "Refused: There is no person or service account named 'nobody'.\n"


# What Django brings along, and arguments that are no text


def test_changepassword_sets_a_new_password_once_audited_and_shown_alone(world: World) -> None:
    world.person("ada")

    said = Said("changepassword", "ADA")

    assert sign_in("ada", said.out.removesuffix("\n")) is not None
    assert sign_in("ada", PASSWORD) is None
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.subject_username, event.through) == ("set_password", "ada", "shell")


def test_changepassword_takes_a_password_and_refuses_a_weak_one(world: World, typed: Any) -> None:
    world.person("ada")
    world.service_account("deploy-bot")

    typed("a long enough phrase\n")
    assert Said("changepassword", "ada", "--password-stdin").out == ""
    assert sign_in("ada", "a long enough phrase") is not None

    typed("12345678901\n")
    assert refusal("changepassword", "ada", "--password-stdin").startswith("password: ")
    assert "no password" in refusal("changepassword", "deploy-bot")
    assert "named 'nobody'" in refusal("changepassword", "nobody")


@pytest.mark.parametrize(
    "arguments", [[], ["--noinput", "--username", "root", "--email", "root@example.org"]]
)
def test_createsuperuser_says_what_to_call_instead(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", "createsuperuser", *arguments]).execute()

    printed = capsys.readouterr()
    assert ended.value.code == 1
    assert printed.err == (
        "Refused: Brain has administrators instead. Make one with `manage.py create_user USERNAME --admin`.\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["grant", "ada\udcff", "/", "reader"],
        ["grant", "ada", "\udcff", "reader"],
        ["disable", "\udcff"],
        ["revoke_token", "\udcff"],
        ["create_token", "ada", "--name", "n", "--capability", "read", "--scope", "\udcff=reader"],
        ["provision", "--organization", "Acme", "--admin", "\udcff"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_argument_that_is_not_utf_8_is_refused(world: World, arguments: list[str]) -> None:
    world.person("ada")

    assert refusal(*arguments).endswith("this is not UTF-8.")
