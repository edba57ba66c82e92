"""The JSON API: who is let in, what it takes, what it tells and to whom."""

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core import limits
from core.errors import StorageUnavailable
from core.types import Capability, ConnectionKind, EntryLocator, Role
from kb.services.update_entry import update_entry
from tests.mcpapi.agent import Agent
from tests.web.conftest import Visit
from tests.world import World

DEPLOY = "Engineering/Payments/Checkout/deployment.md"
TEXT = "# Deploy\n\nAsk first.\n\n## Rollback\n\nVerify the health check.\n\n## Rollback\n\nAgain.\n"
LISTS = ["folders", "entries", "search", "backup", "access", "access/explain", "schema"]
QUERY = {"search": "q=health", "access/explain": "folder_path=Engineering/Payments"}
ADDRESSES = [
    *(f"{name}/{'?' + QUERY[name] if name in QUERY else ''}" for name in LISTS),
    f"entries/{DEPLOY}",
]


@pytest.fixture(autouse=True)
def content(world: World) -> None:
    entry = world.entry(DEPLOY, TEXT, title="Deploy", type="skill")
    update_entry(
        world.system,
        None,
        EntryLocator(entry_id=entry.entry_id),
        expected_version=entry.version,
        tags=["night watch", "ops"],
    )
    world.entry("Engineering/Billing/plan.md", "The health check of Billing.\n", title="The plan")
    world.entry("Engineering/Payments/empty.md", "", title="Empty")
    world.person("root", is_admin=True)
    world.person("ada", role=Role.EDITOR, on="Engineering/Payments")
    world.person("priya", role=Role.READER, on="Engineering/Payments/Checkout")
    world.person("mallory")


class Caller:
    """Somebody at the API, through a token or a session."""

    def __init__(self, client: Client, **headers: str) -> None:
        self._client = client
        self._headers = headers

    def ask(self, rest: str, method: str = "GET") -> Any:
        return self._client.generic(method, f"/api/v1/{rest}", headers=self._headers)

    def get(self, rest: str, status: int = 200) -> Any:
        answer = self.ask(rest)
        assert answer.status_code == status, answer.content
        assert answer["Content-Type"] == "application/json"
        assert answer["Cache-Control"] == "no-store"
        assert "ETag" not in answer
        return json.loads(answer.content)

    def refusal(self, rest: str, status: int = 400) -> dict[str, Any]:
        body = self.get(rest, status)
        assert list(body) == ["error"]
        error: dict[str, Any] = body["error"]
        return error


def through(world: World, username: str, **narrowed: Any) -> Caller:
    return Caller(Client(), Authorization=f"Bearer {world.token(username, **narrowed)}")


@pytest.fixture
def ada(world: World) -> Caller:
    return through(world, "ada")


# -- who is let in


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
def test_strangers_learn_nothing(method: str) -> None:
    unfit = ("search/?nonsense=1", "entries/a.md?start_line=x", "folders/?limit=0")
    for address in (*ADDRESSES, *unfit, "", "nowhere", "nowhere/"):
        answer = Caller(Client()).ask(address, method)
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer"), address
        if method != "HEAD":
            assert json.loads(answer.content)["error"]["code"] == "UNAUTHENTICATED"


def test_a_token_that_is_no_good_is_not_made_up_for_by_a_session(visit: Visit) -> None:
    client = visit("ada")
    assert Caller(client).ask("folders/").status_code == 200

    unknown = "Bearer brn_" + "x" * 43
    for header in ("", "Bearer", "Bearer ", unknown, "Basic YWRhOmFkYQ==", "Token x", "Bearer a, b"):
        answer = Caller(client, Authorization=header).ask("folders/")
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer"), header


def test_who_was_disabled_or_revoked_is_out_at_once(world: World, visit: Visit) -> None:
    session, token = Caller(visit("ada")), through(world, "ada")
    assert (session.ask("folders/").status_code, token.ask("folders/").status_code) == (200, 200)

    world.disable("ada")

    assert (session.ask("folders/").status_code, token.ask("folders/").status_code) == (401, 401)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_but_reading_is_done_here(ada: Caller, visit: Visit, method: str) -> None:
    for caller in (ada, Caller(visit("ada"))):
        for address in (*ADDRESSES, "nowhere/"):
            answer = caller.ask(address, method)
            assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD"), address
            assert json.loads(answer.content)["error"]["code"] == "INVALID_ARGUMENT"


def test_head_is_get_without_the_body(ada: Caller) -> None:
    for address in ADDRESSES:
        head, get = ada.ask(address, "HEAD"), ada.ask(address)
        assert (head.status_code, head.content) == (200, b""), address
        assert {**head.headers, "Content-Length": ""} == {**get.headers, "Content-Length": ""}


def test_whatever_a_browser_would_like_the_answer_is_json(world: World) -> None:
    token = world.token("ada")
    for accept in ("text/html", "application/xml", "image/*", "nonsense"):
        caller = Caller(Client(), Authorization=f"Bearer {token}", Accept=accept)
        assert caller.get("folders/")["folders"]
    assert (
        Caller(Client(), Authorization=f"Bearer {token}").refusal("folders/?format=api")["code"]
        == "INVALID_ARGUMENT"
    )


def test_too_many_calls_have_to_wait(world: World, settings: Any) -> None:
    settings.CALLS_PER_MINUTE = 3
    caller = through(world, "ada")
    answers = [caller.ask("folders/?nonsense=1") for _ in range(4)]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 429]
    assert int(answers[3]["Retry-After"]) >= 1
    assert json.loads(answers[3].content)["error"]["code"] == "RATE_LIMITED"


def test_a_store_that_cannot_says_when_to_come_back(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise StorageUnavailable

    monkeypatch.setattr("mcpapi.tools.browse_knowledgebase.browse_folders", fails)
    answer = ada.ask("folders/")

    assert (answer.status_code, answer["Retry-After"]) == (503, "3")
    assert json.loads(answer.content)["error"]["code"] == "STORAGE_UNAVAILABLE"


def test_a_bug_tells_its_reference_and_nothing_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("a secret")

    token = world.token("ada")
    monkeypatch.setattr("mcpapi.tools.browse_knowledgebase.browse_folders", breaks)
    answer = Caller(Client(raise_request_exception=False), Authorization=f"Bearer {token}").ask("folders/")

    assert answer.status_code == 500
    error = json.loads(answer.content)["error"]
    assert (error["code"], list(error["details"])) == ("INTERNAL_ERROR", ["reference"])
    assert b"secret" not in answer.content


# -- what it tells


def test_it_tells_what_the_tools_tell(world: World) -> None:
    token = world.token("ada")
    agent, caller = Agent(token), Caller(Client(), Authorization=f"Bearer {token}")
    entry_id = agent.read(path=DEPLOY)["entry"]["entry_id"]
    folder_id = agent.browse(action="folders", recursive=True)["folders"][1]["folder_id"]

    pairs = [
        ("folders/?recursive=true", agent.browse(action="folders", recursive=True)),
        (f"folders/?folder_id={folder_id}", agent.browse(action="folders", folder_id=folder_id)),
        ("entries/?recursive=true", agent.browse(action="entries", recursive=True)),
        (
            "entries/?recursive=true&tags=ops&tags=night+watch&type=skill&name_contains=DEP",
            agent.browse(
                action="entries",
                recursive=True,
                tags=["ops", "night watch"],
                type="skill",
                name_contains="DEP",
            ),
        ),
        (f"entries/{DEPLOY}", agent.read(path=DEPLOY)),
        (f"entries/{quote(DEPLOY.upper(), safe='')}", agent.read(path=DEPLOY)),
        (f"entries/{entry_id}", agent.read(entry_id=entry_id)),
        (f"entries/{entry_id}/", agent.read(entry_id=entry_id)),
        (f"entries/{DEPLOY}?start_line=3&end_line=3", agent.read(path=DEPLOY, start_line=3, end_line=3)),
        (
            f"entries/{DEPLOY}?heading=Rollback&occurrence=2",
            agent.read(path=DEPLOY, section={"heading": "Rollback", "occurrence": 2}),
        ),
        ("search/?q=HEALTH", agent.call("read_knowledgebase", action="search", query="HEALTH")),
        (
            "search/?q=HEALTH&case_sensitive=true",
            agent.call("read_knowledgebase", action="search", query="HEALTH", case_sensitive=True),
        ),
        (
            "search/?q=e&folder_path=Engineering/Payments&type=skill&tags=ops",
            agent.call(
                "read_knowledgebase",
                action="search",
                query="e",
                folder_path="Engineering/Payments",
                type="skill",
                tags=["ops"],
            ),
        ),
        ("access/", agent.inspect()),
        (
            "access/?folder_path=Engineering/Payments",
            agent.inspect(folder_path="Engineering/Payments"),
        ),
    ]

    for address, told in pairs:
        assert caller.get(address) == told, address


def test_a_forgotten_slash_changes_nothing(ada: Caller) -> None:
    for name in LISTS:
        query = f"?{QUERY[name]}" if name in QUERY else ""
        assert ada.get(f"{name}{query}") == ada.get(f"{name}/{query}")


def test_a_list_goes_on_by_its_cursor_for_the_same_query_and_caller_alone(world: World, ada: Caller) -> None:
    for number in range(5):
        world.entry(f"Engineering/Payments/Long/n{number}.md", "needle\n")
    for address, key in [
        ("entries/?folder_path=Engineering/Payments/Long", "entries"),
        ("search/?q=needle", "results"),
        ("backup/?folder_path=Engineering/Payments/Long", "entries"),
    ]:
        first = ada.get(f"{address}&limit=3")
        second = ada.get(f"{address}&limit=2&cursor={first['next_cursor']}")
        assert (len(first[key]), len(second[key]), second["next_cursor"]) == (3, 2, None)

        for caller, elsewhere in [(through(world, "ada"), address), (ada, address.replace("needle", "n"))]:
            if (caller, elsewhere) != (ada, address):
                refusal = caller.refusal(f"{elsewhere}&cursor={first['next_cursor']}")
                assert (refusal["code"], refusal["details"]["field"]) == ("INVALID_ARGUMENT", "cursor")


def test_the_backup_is_not_configured_yet(ada: Caller) -> None:
    status = ada.get("backup/")

    assert [(entry["path"], entry["state"]) for entry in status.pop("entries")] == [
        (DEPLOY, "not_configured"),
        ("Engineering/Payments/empty.md", "not_configured"),
    ]
    assert status == {
        "configured": False,
        "branch": None,
        "aggregate": None,
        "deletions": [],
        "receipts": [],
        "last_backup_error": None,
        "last_successful_backup_at": None,
        "next_cursor": None,
    }


def test_a_label_has_folders_and_nothing_else(world: World) -> None:
    priya = through(world, "priya")

    assert [folder["role"] for folder in priya.get("folders/?folder_path=Engineering")["folders"]] == [None]
    assert priya.get("entries/?folder_path=Engineering")["entries"] == []
    assert priya.refusal("backup/?folder_path=Engineering", 404)["code"] == "NOT_FOUND"
    assert priya.refusal("access/?folder_path=Engineering", 404)["code"] == "NOT_FOUND"


def test_only_owners_learn_who_else_has_access(world: World, ada: Caller) -> None:
    world.grant("root", Role.OWNER, "Engineering/Payments")
    address = "access/?folder_path=Engineering/Payments"

    assert ada.get(address)["grants"] is None
    grants = through(world, "root").get(address)["grants"]
    assert [(grant["username"], grant["role"]) for grant in grants] == [("ada", "editor"), ("root", "owner")]


def test_owners_ask_about_others_and_nobody_else_does(world: World, ada: Caller) -> None:
    world.grant("root", Role.OWNER, "Engineering/Payments")
    ids = {name: world.identity(name).id for name in ("ada", "priya")}
    agent, root = Agent(world.token("root")), through(world, "root")
    payments = "Engineering/Payments"

    pairs: list[tuple[str, dict[str, Any]]] = [
        (
            f"access/explain/?folder_path={payments}&identity_id={ids['priya']}&role=editor",
            {"action": "explain", "folder_path": payments, "identity_id": ids["priya"], "role": "editor"},
        ),
        ("access/list/?what=identities&query=PRI", {"action": "list", "what": "identities", "query": "PRI"}),
        ("access/list/?what=folders&limit=2", {"action": "list", "what": "folders", "limit": 2}),
    ]
    for address, told in pairs:
        answer, expected = root.get(address), agent.call("manage_knowledgebase_access", **told)
        assert {**answer, "next_cursor": ""} == {**expected, "next_cursor": ""}
    assert ada.get(f"access/explain/?folder_path={payments}")["role"] == "editor"
    for address in (
        f"access/explain/?folder_path={payments}&identity_id={ids['priya']}",
        "access/list/?what=identities",
        "access/list/?what=folders",
    ):
        assert ada.refusal(address, 403)["code"] == "FORBIDDEN"


def test_a_connection_that_is_narrowed_does_not_look_into_access(world: World) -> None:
    narrowed = [
        through(world, "root", capability=Capability.READ),
        through(world, "root", kind=ConnectionKind.MANAGED),
        through(world, "root", scopes={"Engineering": Role.EDITOR}),
    ]
    for caller in narrowed:
        assert caller.get("access/")["identity"]["username"] == "root"
        for address in ("explain/?folder_path=", "explain/?nonsense", "list/?what=identities", "list/"):
            assert caller.refusal(f"access/{address}", 403)["code"] == "FORBIDDEN"


def test_what_was_saved_a_moment_ago_is_there(world: World, ada: Caller) -> None:
    world.entry("Engineering/Payments/new.md", "brandnew\n")

    assert [result["entry"]["path"] for result in ada.get("search/?q=brandnew")["results"]] == [
        "Engineering/Payments/new.md"
    ]


# -- what it takes


UNFIT = [
    ("folders/?nonsense=1", "INVALID_ARGUMENT", "nonsense"),
    ("folders/?action=entries", "INVALID_ARGUMENT", "action"),
    ("folders/?" + "n" * 99 + "=1", "INVALID_ARGUMENT", "n" * 64 + "…"),
    ("folders/?limit=0", "INVALID_ARGUMENT", "limit"),
    ("folders/?limit=101", "INVALID_ARGUMENT", "limit"),
    ("folders/?limit=1.0", "INVALID_ARGUMENT", "limit"),
    ("folders/?limit=%201", "INVALID_ARGUMENT", "limit"),
    ("folders/?limit=%D9%A1", "INVALID_ARGUMENT", "limit"),
    ("folders/?limit=01", "INVALID_ARGUMENT", "limit"),
    ("folders/?limit=" + "9" * 5_000, "INVALID_ARGUMENT", "limit"),
    ("folders/?limit", "INVALID_ARGUMENT", "limit"),
    ("folders/?limit=1&limit=1", "INVALID_ARGUMENT", "limit"),
    ("folders/?recursive=True", "INVALID_ARGUMENT", "recursive"),
    ("folders/?recursive=1", "INVALID_ARGUMENT", "recursive"),
    ("folders/?recursive=", "INVALID_ARGUMENT", "recursive"),
    ("folders/?cursor=", "INVALID_ARGUMENT", "cursor"),
    ("folders/?cursor=x", "INVALID_ARGUMENT", "cursor"),
    ("folders/?folder_id=a&folder_path=b", "INVALID_ARGUMENT", "folder_path"),
    ("folders/?folder_path=a//b", "INVALID_ARGUMENT", "folder_path"),
    ("folders/?folder_path=%FF", "INVALID_ARGUMENT", "folder_path"),
    ("folders/?%FF=1", "INVALID_ARGUMENT", "query"),
    ("folders/?folder_path=" + "/".join(["n" * 60] * 20), "LIMIT_EXCEEDED", "folder_path"),
    ("entries/?type=banana", "INVALID_ARGUMENT", "type"),
    ("entries/?tags=a&tags=a", "INVALID_ARGUMENT", "tags"),
    ("entries/?" + "&".join(f"tags={number}" for number in range(51)), "LIMIT_EXCEEDED", "tags"),
    ("entries/?name_contains=", "INVALID_ARGUMENT", "name_contains"),
    ("search/", "INVALID_ARGUMENT", "q"),
    ("search/?q=", "INVALID_ARGUMENT", "q"),
    ("search/?query=x", "INVALID_ARGUMENT", "query"),
    ("search/?q=a&q=b", "INVALID_ARGUMENT", "q"),
    ("search/?q=a%0Ab", "INVALID_ARGUMENT", "q"),
    ("search/?q=" + "x" * (limits.QUERY_MAX_CHARACTERS + 1), "LIMIT_EXCEEDED", "q"),
    ("search/?q=x&format=json", "INVALID_ARGUMENT", "format"),
    ("schema/?format=yaml", "INVALID_ARGUMENT", "format"),
    (f"entries/{DEPLOY}?start_line=1", "INVALID_ARGUMENT", "end_line"),
    (f"entries/{DEPLOY}?start_line=2&end_line=1", "INVALID_ARGUMENT", "start_line"),
    (f"entries/{DEPLOY}?start_line=0&end_line=1", "INVALID_ARGUMENT", "start_line"),
    (f"entries/{DEPLOY}?occurrence=1", "INVALID_ARGUMENT", "heading"),
    (f"entries/{DEPLOY}?heading=", "INVALID_ARGUMENT", "heading"),
    (f"entries/{DEPLOY}?heading=Rollback&occurrence=0", "INVALID_ARGUMENT", "occurrence"),
    (f"entries/{DEPLOY}?heading=Rollback&start_line=1&end_line=1", "INVALID_ARGUMENT", "heading"),
    (f"entries/{DEPLOY}?heading=" + "h" * 501, "LIMIT_EXCEEDED", "heading"),
    (f"entries/{DEPLOY}?entry_id=x", "INVALID_ARGUMENT", "entry_id"),
    ("entries/a//b.md", "INVALID_ARGUMENT", "entry"),
    ("entries/a.txt", "INVALID_ARGUMENT", "entry"),
    ("entries/" + "i" * 65, "LIMIT_EXCEEDED", "entry"),
]


def test_a_parameter_that_does_not_fit_is_named(ada: Caller) -> None:
    for address, code, field in UNFIT:
        refusal = ada.refusal(address)
        assert (refusal["code"], refusal["details"]["field"]) == (code, field), address


def test_what_stands_raw_in_an_address_is_read_as_utf8(world: World, ada: Caller) -> None:
    world.entry("Engineering/Payments/words.md", "café a+b\n")

    for written in ("caf%C3%A9+a%2Bb", "café a%2Bb"):
        answer = Client().get(
            "/api/v1/search/",
            QUERY_STRING=f"q={written}".encode().decode("latin-1"),
            headers={"Authorization": f"Bearer {world.token('ada')}"},
        )
        assert [result["entry"]["filename"] for result in answer.json()["results"]] == ["words.md"]


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        (f"entries/{DEPLOY}?start_line=99&end_line=99", 400, "RANGE_OUT_OF_BOUNDS"),
        (f"entries/{DEPLOY}?heading=Rollback", 400, "AMBIGUOUS_SECTION"),
        (f"entries/{DEPLOY}?heading=Nothing", 404, "SECTION_NOT_FOUND"),
    ],
)
def test_a_part_that_is_not_there_says_what_is(ada: Caller, address: str, status: int, code: str) -> None:
    refusal = ada.refusal(address, status)

    assert refusal["code"] == code
    assert refusal["details"]


# -- what it tells nobody

FORMS = [
    "folders/?folder_path={folder}",
    "folders/?folder_id={folder_id}",
    "entries/?folder_path={folder}&recursive=true",
    "entries/?folder_id={folder_id}&name_contains=x",
    "search/?q=health&folder_path={folder}",
    "search/?q=health&folder_id={folder_id}",
    "backup/?folder_path={folder}",
    "access/?folder_path={folder}",
    "access/?folder_id={folder_id}",
    "access/explain/?folder_path={folder}",
    "access/explain/?folder_id={folder_id}&role=editor",
    "entries/{entry}",
    "entries/{entry_id}",
    "entries/{entry}?start_line=99&end_line=99",
    "entries/{entry}?heading=Nothing",
]


@pytest.mark.parametrize("credential", ["session", "token", "capped"])
def test_hidden_is_missing(world: World, visit: Visit, credential: str) -> None:
    if credential == "capped":
        world.grant("priya", Role.READER, "Engineering")
        caller = through(world, "priya", scopes={"Engineering/Payments/Checkout": Role.READER})
    else:
        caller = Caller(visit("priya")) if credential == "session" else through(world, "priya")
    entry = world.entry("Engineering/Billing/other.md", "x\n")
    hidden = {
        "folder": "Engineering/Billing",
        "folder_id": world.folder("Engineering/Billing").id,
        "entry": "Engineering/Billing/plan.md",
        "entry_id": entry.entry_id,
    }
    missing = {
        "folder": "Engineering/Nothing",
        "folder_id": "fld_none",
        "entry": "Engineering/Nothing/plan.md",
        "entry_id": "ent_none",
    }
    caller.ask("folders/")

    for form in FORMS:
        seen = []
        for names in (hidden, missing):
            with CaptureQueriesContext(connection) as queries:
                answer = caller.ask(form.format(**names))
            statements = [re.sub(r"'[^']*'", "", query["sql"]) for query in queries.captured_queries]
            seen.append((answer.status_code, dict(answer.headers), answer.content, statements))
        assert seen[0] == seen[1], form
        if credential == "capped" and form.startswith("access/explain/"):
            continue  # not for connections that something narrows, whatever the folder
        assert (seen[0][0], json.loads(seen[0][2])["error"]["code"]) == (404, "NOT_FOUND"), form


def test_what_is_no_address_is_not_found_either(ada: Caller) -> None:
    for address in ("", "nowhere", "nowhere/", "folders/x", "searching/", "schema.json", "v2/folders/"):
        assert ada.get(address, 404) == ada.get("entries/ent_none", 404), address


def test_nothing_of_what_is_hidden_is_listed_or_counted(world: World) -> None:
    priya = through(world, "priya")
    addresses = ["folders/?recursive=true", "entries/?recursive=true", "search/?q=e", "backup/", "access/"]
    before = [priya.ask(address).content for address in addresses]

    for number in range(120):
        world.entry(f"Engineering/Billing/more{number}.md", "the health\n")

    assert [priya.ask(address).content for address in addresses] == before
    assert b"Billing" not in b"".join(before)


def test_the_caps_of_a_connection_count(world: World) -> None:
    reading = through(
        world, "ada", capability=Capability.READ, scopes={"Engineering/Payments/Checkout": Role.READER}
    )
    managed = through(world, "ada", kind=ConnectionKind.MANAGED)
    nothing = through(world, "ada", scopes={})

    assert [entry["path"] for entry in reading.get("entries/?recursive=true")["entries"]] == [DEPLOY]
    assert reading.get("access/?folder_path=Engineering/Payments/Checkout")["role"] == "reader"
    assert len(managed.get("search/?q=e")["results"]) == 2
    assert nothing.get("search/?q=e") == {"results": [], "next_cursor": None}
    assert nothing.refusal(f"entries/{DEPLOY}", 404)["code"] == "NOT_FOUND"


QUERIES = {
    "folders/?recursive=true": 2,
    "entries/?recursive=true": 2,
    "search/?q=text": 2,
    "entries/{deep}/Page.md": 2,
    "backup/": 2,
    "backup/?folder_path={deep}": 3,
    "access/?folder_path={deep}": 4,
    "access/explain/?folder_path={deep}": 3,
    "schema/": 1,
}


def test_one_query_knows_the_caller_and_each_look_takes_one_more_however_deep(world: World) -> None:
    deep = "Engineering/" + "/".join(f"L{level}" for level in range(20))
    world.entry(f"{deep}/Page.md", "text\n")
    for folder in ("Engineering", "Engineering/L0", "Engineering/L0/L1/L2/L3", "Ops", "Pay"):
        world.grant("priya", Role.EDITOR, folder)
    priya = through(world, "priya")
    priya.ask("search/?q=text")

    for address, queries in QUERIES.items():
        with CaptureQueriesContext(connection) as asked:
            priya.get(address.format(deep=deep))
        assert len(asked) == queries, (address, [query["sql"][:90] for query in asked])
