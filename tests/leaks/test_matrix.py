"""What a caller may not read answers as what does not exist, on every way in: whole replies and queries.

The rows are generated (``rows``), the callers listed (``callers``). What is compared is everything a caller gets, and
the number and text of the database's queries, which is what the time of an answer could tell.
"""

import datetime
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core.errors import Forbidden, NotFound
from core.types import EntryLocator, Role
from kb import locate
from kb.services.read_entry import read_entry
from tests.leaks import rows
from tests.leaks.callers import CALLERS, ENTRY, FOLDER, WORD, Caller, browser_of, build, hide
from tests.leaks.rows import Target
from tests.mcpapi.agent import ERAS, Agent, Era
from tests.world import World

NOW = datetime.datetime(2026, 12, 1, 12, 0, tzinfo=datetime.UTC)
# What differs from one answer to the next whoever asks: proofs of forms, and cursors, which are encrypted anew.
PROOF = re.compile(r'(name="csrfmiddlewaretoken" value=")[^"]+')
CURSOR = re.compile(r'((?:\\?"next_cursor\\?": ?\\?"|[?&]cursor=|\?(?:folders|entries)=))[\w%=-]{8,}')

Answer = tuple[Any, ...]
OWNERS = ("owner elsewhere", "owner of the child")


@pytest.fixture(autouse=True)
def still_clock() -> Iterator[None]:
    """All answers of a test are of one moment."""
    with time_machine.travel(NOW, tick=False):
        yield


def observed(ask: Callable[[], Any]) -> Answer:
    """Status, headers and body of an answer, and the queries behind it."""
    with CaptureQueriesContext(connection) as queries:
        answer = ask()
    statements = [re.sub(r"'[^']*'", "", query["sql"]) for query in queries.captured_queries]
    body = answer.body if hasattr(answer, "body") else answer.content
    headers = {key.lower(): value for key, value in answer.headers.items()}
    text = CURSOR.sub(r"\1", PROOF.sub(r"\1", body.decode()))
    status = answer.status if hasattr(answer, "status") else answer.status_code
    headers.pop("content-length", None)  # of a body that is compared itself, without proofs and cursors
    return status, headers, text, statements


def call(agent: Agent, tool: str, arguments: dict[str, Any]) -> Answer:
    """A tool's whole reply, with an id of the message that is always the same."""
    message = agent.message("tools/call", {"name": tool, "arguments": arguments}) | {"id": 1}
    return observed(
        lambda: agent.send(json.dumps(message).encode(), agent.headers("tools/call", {"name": tool}))
    )


def targets(world: World) -> tuple[Target, Target]:
    """The hidden and the missing: of the same shape, and of the same length."""
    entry_id = read_entry(world.system, EntryLocator(path=ENTRY)).entry.entry_id
    folder_id = world.folder(FOLDER).id

    def another(id_: str) -> str:
        return id_[:-4] + ("aaaa" if id_[-4:] != "aaaa" else "bbbb")

    connection_id = world.connection(world.token("insider")).id
    hidden = Target(ENTRY, entry_id, FOLDER, folder_id, connection_id)
    missing = Target(
        "Secret/Plans/Cakes.md",
        another(entry_id),
        "Secret/Plans/Outer",
        another(folder_id),
        another(connection_id),
    )
    return hidden, missing


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", CALLERS)
def test_over_mcp_hidden_is_missing(world: World, kind: str, era: Era) -> None:
    build(world)
    hide(world)
    agent = Agent(CALLERS[kind].token(world), era)
    hidden, missing = targets(world)
    agent.request("tools/list")  # the token's use is noted once an hour

    compared = 0
    for (tool, arguments), (_, instead) in zip(rows.targeted(hidden), rows.targeted(missing), strict=True):
        there, nowhere = call(agent, tool, arguments), call(agent, tool, instead)
        assert there == nowhere, (tool, arguments)
        assert WORD not in there[2].replace(json.dumps(arguments), ""), (tool, arguments)
        compared += 1
    assert compared > 60


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", CALLERS)
def test_over_mcp_nothing_hidden_is_listed_or_counted(world: World, kind: str, era: Era) -> None:
    build(world)
    world.folder("Secret/Plans")
    agent = Agent(CALLERS[kind].token(world), era)
    agent.request("tools/list")
    before = [call(agent, tool, arguments) for tool, arguments in rows.untargeted()]

    hide(world)

    after = [call(agent, tool, arguments) for tool, arguments in rows.untargeted()]
    for (tool, arguments), bare, again in zip(rows.untargeted(), before, after, strict=True):
        if (
            tool == "manage_knowledgebase_access"
            and arguments["action"] == "list"
            and kind == "owner elsewhere"
        ):
            continue  # an Owner may know every account, and one more came to be
        if (
            tool == "manage_knowledgebase_access"
            and arguments["action"] == "list"
            and kind == "owner of the child"
        ):
            continue
        assert bare == again, (tool, arguments)


def people() -> list[str]:
    """The kinds that come to the pages."""
    return [kind for kind, caller in CALLERS.items() if caller.comes]


def visitor(world: World, kind: str) -> tuple[Caller, Client]:
    caller = CALLERS[kind]
    caller.token(world)
    return caller, browser_of(caller)


@pytest.mark.parametrize("kind", people())
def test_on_pages_hidden_is_missing(world: World, kind: str) -> None:
    build(world)
    hide(world)
    _, browser = visitor(world, kind)
    hidden, missing = targets(world)

    for there, nowhere in zip(
        rows.addresses(rows.PAGES, hidden), rows.addresses(rows.PAGES, missing), strict=True
    ):
        for ask in (browser.get, browser.head, browser.post):
            one = observed(lambda ask=ask, there=there: ask(there))  # type: ignore[misc]
            other = observed(lambda ask=ask, nowhere=nowhere: ask(nowhere))  # type: ignore[misc]
            assert without_address(one, hidden) == without_address(other, missing), there


def without_address(answer: Answer, target: Target) -> Answer:
    """The answer without the address that was asked for, where it is given back: a field of the form, a redirect."""
    status, headers, text, statements = answer

    def blank(said: str) -> str:
        for name in (
            target.entry_path,
            target.entry_id,
            target.folder_path,
            target.folder_id,
            target.connection_id,
        ):
            said = said.replace(name, "").replace(name.replace("/", "%2F"), "")
        return said

    return status, {key: blank(value) for key, value in headers.items()}, blank(text), statements


@pytest.mark.parametrize("kind", people())
def test_on_pages_nothing_hidden_is_listed_or_counted(world: World, kind: str) -> None:
    build(world)
    world.folder("Secret/Plans")
    _, browser = visitor(world, kind)
    where = [path for path in rows.addresses(rows.LISTS) if not (kind in OWNERS and "identities" in path)]
    before = [observed(lambda path=path: browser.get(path)) for path in where]  # type: ignore[misc]

    hide(world)

    for path, bare in zip(where, before, strict=True):
        assert observed(lambda path=path: browser.get(path)) == bare, path  # type: ignore[misc]


def api(table: dict[str, list[str]]) -> dict[str, list[str]]:
    """The part of a table that speaks to programs."""
    return {route: templates for route, templates in table.items() if route.startswith(rows.API)}


@pytest.mark.parametrize("kind", CALLERS)
def test_over_the_api_hidden_is_missing(world: World, kind: str) -> None:
    build(world)
    hide(world)
    bearer = {"Authorization": f"Bearer {CALLERS[kind].token(world)}"}
    hidden, missing = targets(world)
    Client().get("/api/v1/access/", headers=bearer)  # the token's use is noted once an hour

    table = api(rows.PAGES)
    for there, nowhere in zip(rows.addresses(table, hidden), rows.addresses(table, missing), strict=True):
        one = observed(lambda there=there: Client().get(there, headers=bearer))  # type: ignore[misc]
        other = observed(lambda nowhere=nowhere: Client().get(nowhere, headers=bearer))  # type: ignore[misc]
        assert one == other, there
        assert one[0] in (401, 403, 404, 400), there


@pytest.mark.parametrize("kind", CALLERS)
def test_over_the_api_nothing_hidden_is_listed_or_counted(world: World, kind: str) -> None:
    build(world)
    world.folder("Secret/Plans")
    bearer = {"Authorization": f"Bearer {CALLERS[kind].token(world)}"}
    where = [
        path for path in rows.addresses(api(rows.LISTS)) if not (kind in OWNERS and "identities" in path)
    ]
    Client().get("/api/v1/access/", headers=bearer)
    before = [observed(lambda path=path: Client().get(path, headers=bearer)) for path in where]  # type: ignore[misc]

    hide(world)

    for path, bare in zip(where, before, strict=True):
        assert observed(lambda path=path: Client().get(path, headers=bearer)) == bare, path  # type: ignore[misc]


def test_every_address_is_in_a_row() -> None:
    known = set(rows.PAGES) | set(rows.LISTS) | set(rows.TELL_NOTHING)
    unknown = [route for route in rows.routes() if route not in known and not route.startswith(rows.DESK)]

    assert unknown == []
    assert known - set(rows.routes()) == set()


def test_every_argument_has_a_value() -> None:
    """A new action is in the matrix by itself; what it requires must be known here."""
    assert {action.name for _, action in rows.actions() if list(rows.variants_of(action))} == {
        action.name for _, action in rows.actions()
    }
    assert set(rows.VARIANTS) <= {action.name for _, action in rows.actions()} | {"grant"}


@pytest.mark.parametrize("era", ERAS)
def test_a_stored_outcome_is_as_hidden_as_its_folder(world: World, era: Era) -> None:
    """Who lost access learns as much from the request ids of then as from new ones."""
    build(world)
    world.person("ada", role=Role.EDITOR, on="Secret/Plans")
    agent = Agent(world.token("ada"), era)
    create = {
        "action": "create", "folder_path": "Secret/Plans", "request_id": "c1", "filename": "A.md", "type": "note",
        "title": "A", "content": "a\n",
    }  # fmt: skip
    entry = agent.update(**create)["entry"]
    update = {
        "action": "update", "entry_id": entry["entry_id"], "request_id": "u1",
        "expected_version": entry["version"], "content": "b\n",
    }  # fmt: skip
    version = agent.update(**update)["entry"]["version"]
    delete = {
        "action": "delete", "path": "Secret/Plans/A.md", "request_id": "d1", "expected_version": version,
    }  # fmt: skip
    agent.update(**delete)
    folder = {"action": "create_folder", "folder_path": "Secret/Plans", "request_id": "f1", "name": "More"}
    agent.update(**folder)

    world.revoke("ada", "Secret/Plans")

    for arguments in (create, update, delete, folder):
        again = call(agent, "update_knowledgebase", arguments)
        anew = call(agent, "update_knowledgebase", {**arguments, "request_id": "new"})
        assert json.loads(again[2])["result"]["structuredContent"]["error"]["code"] == "NOT_FOUND"
        assert again[:3] == anew[:3]


def test_the_matrix_sees_a_leak(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal that tells hidden from missing, as in a service that looks up before it asks."""
    honest = locate.find_entry

    def leaky(view: Any, sight: Any, locator: Any) -> Any:
        try:
            return honest(view, sight, locator)
        except NotFound:
            if locate._look_up_entry(view, locator) is not None:
                raise Forbidden from None
            raise

    monkeypatch.setattr("kb.services.read_entry.find_entry", leaky)

    with pytest.raises(AssertionError):
        test_over_mcp_hidden_is_missing(world, "stranger", "modern")
