"""Owners' and administrators' agents manage access over MCP: each action, each answer, each refusal and their order."""

from contextlib import ExitStack
from typing import Any

import pytest

from access import writer
from access.models import AuditEvent
from core import ids, limits, locks
from core.types import MutationRequest, Role
from kb.store.stores import store_of
from tests.mcpapi.agent import Agent, Era
from tests.mcpapi.test_error_codes import error_of, held
from tests.world import World

TOOL = "manage_knowledgebase_access"


class Desk:
    """Olga owns Eng, Ada edits it, Root administers; agents of each, and ids of everybody."""

    def __init__(self, world: World, era: Era) -> None:
        self.world = world
        world.entry("Eng/Deploy.md", "text\n")
        world.entry("Secret/Codes.md", "x")
        world.person("olga", role=Role.OWNER, on="Eng")
        world.person("ada", role=Role.EDITOR, on="Eng")
        world.person("priya")
        world.person("root", is_admin=True)
        self.olga, self.ada, self.priya, self.root = (
            Agent(world.token(name), era) for name in ("olga", "ada", "priya", "root")
        )

    def id_of(self, username: str) -> str:
        return self.world.identity(username).id

    def grant(self, agent: Agent | None = None, **given: Any) -> dict[str, Any]:
        arguments = {
            "request_id": "g",
            "folder_path": "Eng",
            "identity_id": self.id_of("priya"),
            "role": "reader",
            "expected_acl_version": 2,
        }
        return (agent or self.olga).call(TOOL, action="grant", **{**arguments, **given})

    def revoke(self, agent: Agent | None = None, **given: Any) -> dict[str, Any]:
        arguments = {
            "request_id": "r",
            "folder_path": "Eng",
            "identity_id": self.id_of("ada"),
            "expected_acl_version": 2,
        }
        return (agent or self.olga).call(TOOL, action="revoke", **{**arguments, **given})

    def create(self, agent: Agent | None = None, **given: Any) -> dict[str, Any]:
        arguments = {"request_id": "c", "name": "deploy-bot", "description": "Deploys Checkout."}
        return (agent or self.root).call(TOOL, action="create_service_account", **{**arguments, **given})

    def disable(self, agent: Agent | None = None, **given: Any) -> dict[str, Any]:
        arguments = {"request_id": "d", "identity_id": "idn_none"}
        return (agent or self.root).call(TOOL, action="disable_service_account", **{**arguments, **given})


@pytest.fixture
def desk(world: World, era: Era) -> Desk:
    return Desk(world, era)


def code(answer: dict[str, Any]) -> str:
    found: str = error_of(answer)["code"]
    return found


# What it does


def test_an_owners_agent_finds_somebody_grants_changes_and_revokes(desk: Desk) -> None:
    assert code(desk.priya.read(path="Eng/Deploy.md")) == "NOT_FOUND"
    (priya,) = desk.olga.call(TOOL, action="list", what="identities", query="PRI")["identities"]
    (eng,) = desk.olga.call(TOOL, action="list", what="folders")["folders"]
    told = desk.olga.call(
        TOOL,
        action="explain",
        folder_id=eng["folder_id"],
        identity_id=priya["identity_id"],
        role="reader",
    )
    assert (told["role"], told["would_be"], told["because"]) == (None, "reader", [])

    granted = desk.olga.call(
        TOOL,
        action="grant",
        request_id="one",
        folder_id=eng["folder_id"],
        identity_id=priya["identity_id"],
        role="reader",
        expected_acl_version=eng["acl_version"],
    )

    assert granted == {
        "acl_version": eng["acl_version"] + 1,
        "grant": {
            "identity_id": priya["identity_id"],
            "name": "priya",
            "username": "priya",
            "kind": "person",
            "role": "reader",
            "folder_path": "Eng",
            "inherited": False,
        },
        "previous_role": None,
    }
    assert granted["grant"] in desk.olga.inspect(folder_path="Eng")["grants"]
    assert desk.priya.read(path="Eng/Deploy.md")["content"] == "text\n"
    changed = desk.grant(role="editor", expected_acl_version=3, request_id="two")
    assert (changed["previous_role"], changed["grant"]["role"]) == ("reader", "editor")
    revoked = desk.revoke(identity_id=priya["identity_id"], expected_acl_version=4, request_id="three")
    assert revoked == {"acl_version": 5, "removed_role": "editor", "remaining_role": None}
    assert code(desk.priya.read(path="Eng/Deploy.md")) == "NOT_FOUND"


def test_what_other_grants_still_give_is_told(desk: Desk) -> None:
    desk.world.grant("ada", Role.READER, "")

    assert desk.revoke()["remaining_role"] == "reader"
    assert desk.ada.read(path="Eng/Deploy.md")["content"] == "text\n"


def test_the_last_owner_who_steps_down_is_warned_and_obeyed(desk: Desk) -> None:
    answer = desk.revoke(identity_id=desk.id_of("olga"))

    assert [warning["kind"] for warning in answer["warnings"]] == ["last_owner", "self_lockout"]
    assert answer["removed_role"] == "owner"
    assert code(desk.grant()) == "NOT_FOUND"


def test_an_administrators_agent_makes_a_service_account_and_stops_it(desk: Desk) -> None:
    made = desk.create()

    identity = made["identity"]
    assert made == {
        "identity": {
            "identity_id": desk.id_of("deploy-bot"),
            "name": "deploy-bot",
            "username": "deploy-bot",
            "kind": "service_account",
            "active": True,
        }
    }
    account = desk.world.identity("deploy-bot")
    assert (account.description, account.has_usable_password()) == ("Deploys Checkout.", False)
    bot = Agent(desk.world.token("deploy-bot"), desk.root.era)
    assert desk.grant(identity_id=identity["identity_id"])["acl_version"] == 3
    assert bot.read(path="Eng/Deploy.md")["content"] == "text\n"

    stopped = desk.disable(identity_id=identity["identity_id"])

    assert stopped == {"identity": {**identity, "active": False}}
    assert bot.request("tools/list").status == 401
    listed = desk.root.call(TOOL, action="list", what="service_accounts")["identities"]
    assert listed == [stopped["identity"]]
    # A disabled one is disabled again without a change.
    assert desk.disable(identity_id=identity["identity_id"], request_id="again") == stopped


def test_lists_are_paged(desk: Desk) -> None:
    listed: list[str] = []
    given: dict[str, Any] = {"action": "list", "what": "identities", "limit": 3}
    page = desk.olga.call(TOOL, **given)
    listed += [identity["username"] for identity in page["identities"]]
    page = desk.olga.call(TOOL, **given, cursor=page["next_cursor"])
    listed += [identity["username"] for identity in page["identities"]]

    assert listed == ["ada", "olga", "priya", "root"]
    assert page["next_cursor"] is None
    for identity in page["identities"]:
        assert identity.keys() == {"identity_id", "name", "username", "kind", "active"}


# What it refuses


def test_not_found(desk: Desk) -> None:
    for answer in (
        desk.grant(folder_path="Secret"),
        desk.grant(folder_path="Nowhere"),
        desk.grant(folder_path=""),
        desk.grant(identity_id="idn_nobody"),
        desk.revoke(folder_path="Secret"),
        desk.revoke(identity_id="idn_nobody"),
        desk.disable(),
        desk.olga.call(TOOL, action="explain", folder_path="Secret"),
        desk.olga.call(TOOL, action="explain", folder_path="Eng", identity_id="idn_nobody"),
    ):
        assert code(answer) == "NOT_FOUND"
        assert answer["error"]["details"] == {}


def test_forbidden(desk: Desk) -> None:
    before = desk.world.grants()
    for answer in (
        desk.grant(desk.ada),
        desk.grant(desk.ada, identity_id="idn_nobody"),
        desk.revoke(desk.ada),
        desk.revoke(desk.ada, expected_acl_version=0),
        desk.create(desk.olga),
        desk.disable(desk.olga),
        desk.disable(desk.olga, identity_id=desk.id_of("ada")),
        desk.ada.call(TOOL, action="explain", folder_path="Eng", identity_id=desk.id_of("olga")),
        desk.ada.call(TOOL, action="list", what="identities"),
        desk.ada.call(TOOL, action="list", what="service_accounts"),
        desk.ada.call(TOOL, action="list", what="folders"),
    ):
        assert code(answer) == "FORBIDDEN"
        assert answer["error"]["details"] == {}
    assert desk.world.grants() == before


def test_version_conflict_tells_the_version_to_try_with(desk: Desk) -> None:
    for answer in (desk.grant(expected_acl_version=1), desk.revoke(expected_acl_version=10**30)):
        assert code(answer) == "VERSION_CONFLICT"
        assert answer["error"]["details"] == {"current_acl_version": 2}
    assert desk.grant(expected_acl_version=2)["acl_version"] == 3


def test_a_role_that_is_only_inherited_is_revoked_where_it_was_granted(desk: Desk) -> None:
    desk.world.folder("Eng/Sub")
    desk.world.grant("priya", Role.READER, "")

    answer = desk.revoke(folder_path="Eng/Sub", expected_acl_version=0)
    above = desk.revoke(folder_path="Eng/Sub", identity_id=desk.id_of("priya"), expected_acl_version=0)

    assert code(answer) == "INVALID_ARGUMENT"
    assert answer["error"]["details"]["granting_folders"] == ["Eng"]
    # Olga does not read the root.
    assert above["error"]["details"]["granting_folders"] == []
    assert code(desk.revoke(identity_id=desk.id_of("root"))) == "INVALID_ARGUMENT"


def test_invalid_argument(desk: Desk) -> None:
    desk.world.disable("priya")
    for answer, field in (
        (desk.grant(), "identity_id"),
        (desk.grant(role="admin"), "role"),
        (desk.grant(role="none"), "role"),
        (desk.grant(identity_id="Priya Raman"), "identity_id"),
        (desk.grant(expected_acl_version="2"), "expected_acl_version"),
        (desk.grant(expected_acl_version=-1), "expected_acl_version"),
        (desk.grant(folder_path="Eng/.."), "folder_path"),
        (desk.grant(user_id="idn_x"), "user_id"),
        (desk.create(name="Deploy Bot"), "name"),
        (desk.create(description="a\x00b"), "description"),
        (desk.disable(identity_id=desk.id_of("ada")), "identity_id"),
        (desk.olga.call(TOOL, action="list", what="tokens"), "what"),
        (desk.olga.call(TOOL, action="list", what="folders", query=""), "query"),
        (desk.olga.call(TOOL, action="list", what="folders", cursor="c"), "cursor"),
        (desk.olga.call(TOOL, action="list", what="folders", folder_path=""), "folder_path"),
        (desk.olga.call(TOOL, action="explain"), "folder_path"),
        (desk.root.call(TOOL, action="configure_backup"), "action"),
    ):
        assert (code(answer), answer["error"]["details"]["field"]) == ("INVALID_ARGUMENT", field)
    assert desk.world.identity("ada").is_active


def test_limit_exceeded(desk: Desk) -> None:
    for answer, field, limit in (
        (desk.create(name="b" * 65), "name", limits.USERNAME_MAX_CHARACTERS),
        (desk.create(description="d" * 501), "description", limits.PURPOSE_MAX_CHARACTERS),
        (desk.grant(request_id="r" * 129), "request_id", limits.REQUEST_ID_MAX_CHARACTERS),
        (desk.olga.call(TOOL, action="list", what="folders", query="q" * 257), "query", 256),
    ):
        assert code(answer) == "LIMIT_EXCEEDED"
        assert (answer["error"]["details"]["field"], answer["error"]["details"]["limit"]) == (field, limit)
    assert desk.create(name="b" * 64, description="d" * 500)["identity"]["active"]


def test_name_conflict(desk: Desk) -> None:
    assert code(desk.create(name="ada")) == "NAME_CONFLICT"
    assert desk.create(name="ada-bot")["identity"]["username"] == "ada-bot"


def test_request_id_reuse(desk: Desk) -> None:
    desk.grant(request_id="used")
    desk.create(request_id="used")

    for answer in (
        desk.grant(request_id="used", role="editor"),
        desk.grant(request_id="used", folder_path="Secret"),
        desk.revoke(request_id="used"),
        desk.create(request_id="used", description=""),
        desk.disable(request_id="used"),
    ):
        assert code(answer) == "REQUEST_ID_REUSE"


def test_ids_of_content_and_of_access_are_apart(desk: Desk) -> None:
    """Ids belong to identity and tool: what one tool keeps, the other does not know."""
    desk.olga.update(action="create_folder", request_id="same", folder_path="Eng", name="Sub")

    granted = desk.grant(request_id="same")

    assert granted["acl_version"] == 3
    assert desk.grant(request_id="same") == granted
    again = desk.olga.update(action="create_folder", request_id="same", folder_path="Eng", name="Sub")
    assert again["folder"]["path"] == "Eng/Sub"


@pytest.mark.parametrize("change", ["grant", "revoke", "create", "disable"])
def test_request_in_progress(desk: Desk, change: str) -> None:
    agent, name = (desk.root, "root") if change in ("create", "disable") else (desk.olga, "olga")
    key = ids.request_key(
        organization_id=desk.world.organization_id,
        identity_id=desk.id_of(name),
        tool=TOOL,
        request_id="now",
    )
    store = store_of(desk.world.organization_id)

    with held(lambda: store.claim(MutationRequest(key=key, arguments_hash=""))):
        answer = getattr(desk, change)(agent, request_id="now")

    assert (code(answer), answer["error"]["retry_after_seconds"]) == ("REQUEST_IN_PROGRESS", 1)


def test_storage_unavailable(desk: Desk) -> None:
    queue = writer.writer_queue(desk.world.organization_id)

    # Somebody saves, and as many wait for it as may.
    with ExitStack() as busy:
        busy.enter_context(held(queue.hold))
        for _ in range(limits.HEAVY_WORK_MAX):
            busy.enter_context(held(locks.heavy_work))
        refused = [desk.grant(), desk.revoke()]

    assert [code(answer) for answer in refused] == ["STORAGE_UNAVAILABLE"] * 2
    # The same call, repeated as told, succeeds.
    assert desk.grant()["acl_version"] == 3


def test_the_first_fault_on_the_way_is_the_one_told(desk: Desk) -> None:
    """Arguments, then a repeated request, then reading, then owning, then names, then versions, then what is asked."""
    desk.world.folder("Eng/Sub")
    desk.grant(request_id="used")
    stale: dict[str, Any] = {"expected_acl_version": 99}

    assert code(desk.grant(request_id="used", folder_path="Secret", bogus=1)) == "INVALID_ARGUMENT"
    assert code(desk.grant(request_id="used", folder_path="Secret/..")) == "INVALID_ARGUMENT"
    assert code(desk.grant(request_id="used", folder_path="Secret")) == "REQUEST_ID_REUSE"
    assert code(desk.grant(folder_path="Secret", identity_id="idn_nobody", **stale)) == "NOT_FOUND"
    assert code(desk.grant(desk.ada, identity_id="idn_nobody", **stale)) == "FORBIDDEN"
    assert code(desk.grant(identity_id="idn_nobody", **stale)) == "NOT_FOUND"
    assert code(desk.revoke(folder_path="Eng/Sub", **stale)) == "VERSION_CONFLICT"
    assert code(desk.revoke(folder_path="Eng/Sub", expected_acl_version=0)) == "INVALID_ARGUMENT"

    desk.create(request_id="used")
    assert code(desk.create(desk.olga, name="Ada")) == "INVALID_ARGUMENT"
    assert code(desk.create(request_id="used", name="Ada")) == "INVALID_ARGUMENT"
    assert code(desk.create(request_id="used", name="ada")) == "REQUEST_ID_REUSE"
    assert code(desk.create(desk.olga, name="ada")) == "FORBIDDEN"
    assert code(desk.create(name="ada")) == "NAME_CONFLICT"


# What is written down


def test_what_was_done_and_what_was_refused_are_events(desk: Desk) -> None:
    first = AuditEvent.objects.order_by("id").last()
    assert first is not None
    desk.grant()
    desk.grant()
    desk.grant(desk.ada, request_id="a")
    desk.grant(folder_path="Secret", request_id="b")
    desk.revoke(folder_path="Nowhere", request_id="c")
    desk.create(desk.olga)
    desk.create()

    events = AuditEvent.objects.filter(id__gt=first.id).order_by("id")

    assert [
        (e.action, e.refusal, e.actor_username, e.through, e.subject_username, e.folder_path, e.after)
        for e in events
    ] == [
        ("grant", "", "olga", "connection", "priya", "Eng", "reader"),
        ("grant", "FORBIDDEN", "ada", "connection", "priya", "Eng", ""),
        ("grant", "NOT_FOUND", "olga", "connection", "priya", "Secret", ""),
        ("revoke", "NOT_FOUND", "olga", "connection", "ada", "Nowhere", ""),
        ("create_service_account", "FORBIDDEN", "olga", "connection", "", "", ""),
        ("create_service_account", "", "root", "connection", "deploy-bot", "", "Deploys Checkout."),
    ]
    assert {e.through_name for e in events} == {"laptop"}
