"""The rows of the matrix, made from what there is: every action of every tool, every address that is routed.

What names a target stands here once with the hidden one and once with a missing one of the same shape; what names none
is asked before and after the hidden part exists. A required argument, an endpoint or a page that no table here knows
is a KeyError or a failing test, so nothing new escapes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from mcpapi.catalog import TOOLS
from mcpapi.operations import Action
from tests.leaks.callers import WORD

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """An entry, a folder and somebody's connection, hidden or missing."""

    entry_path: str
    entry_id: str
    folder_path: str
    folder_id: str
    connection_id: str


# A value for every argument that an action requires, whatever the tool.
REQUIRED: dict[str, Any] = {
    "request_id": "r1",
    "expected_version": "v_1",
    "filename": "New.md",
    "type": "note",
    "title": "New",
    "content": "x\n",
    "name": "New",
    "query": WORD,
    "what": "identities",
    "identity_id": "idn_somebody",
    "role": "reader",
    "expected_acl_version": 0,
    "description": "A robot.",
}
# More ways to call an action: arguments on top of the required ones. Without a line here it is called with those alone.
DIFF = "--- a\n+++ b\n@@ -1,1 +1,1 @@\n-hello\n+bye\n"
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "read": [
        {},
        {"start_line": 1, "end_line": 1},
        {"start_line": 99, "end_line": 99},
        {"section": {"heading": "Heading"}},
        {"section": {"heading": "None", "occurrence": 3}},
    ],
    "update": [
        {"content": "y\n"},
        {"diff": DIFF},
        {"edits": [{"old_text": "the", "new_text": "a"}]},
        {"edits": [{"old_text": "nowhere", "new_text": "a"}], "dry_run": True},
        {"metadata": {"title": "T"}, "reason": "why"},
    ],
    "create": [{}, {"filename": "Codes.md"}, {"filename": "More.md"}],
    "create_folder": [{}, {"name": "Inner"}],
    "folders": [{}, {"recursive": True}],
    "entries": [{}, {"recursive": True}, {"type": "note", "name_contains": "o"}],
    "explain": [{}, {"role": "owner"}, {"identity_id": "idn_somebody"}],
    "list": [{"what": what} for what in ("identities", "service_accounts", "folders")],
    "grant": [{}, {"role": "owner"}],
    "search": [{}, {"case_sensitive": True}],
}


def actions() -> Iterator[tuple[str, Action]]:
    """Every action of every tool."""
    for tool in TOOLS:
        for action in tool.actions:
            yield tool.name, action


def variants_of(action: Action) -> Iterator[dict[str, Any]]:
    """The arguments of one action in each variant, without a locator."""
    required = {
        name: REQUIRED[name]
        for name, field in action.arguments.model_fields.items()
        if field.is_required() and name != "action"
    }
    for variant in VARIANTS.get(action.name, [{}]):
        yield {"action": action.name, **required, **variant}


def locators_of(action: Action, target: Target) -> Iterator[dict[str, str]]:
    """The ways in which the action can name the target; none for an action that names none."""
    fields = action.arguments.model_fields
    if "path" in fields:
        yield {"path": target.entry_path}
        yield {"path": target.entry_path.upper()}
        yield {"entry_id": target.entry_id}
    if "folder_path" in fields:
        yield {"folder_path": target.folder_path}
        yield {"folder_path": target.folder_path.upper()}
        yield {"folder_id": target.folder_id}


def targeted(target: Target) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tool and arguments of every call that can name the target."""
    for tool, action in actions():
        for locator in locators_of(action, target):
            for variant in variants_of(action):
                yield tool, {**variant, **locator}


def untargeted() -> Iterator[tuple[str, dict[str, Any]]]:
    """Tool and arguments of every call that needs to name nothing and changes nothing."""
    for tool, action in actions():
        fields = action.arguments.model_fields
        if "request_id" in fields or "path" in fields:
            continue
        for variant in variants_of(action):
            yield tool, variant


# Addresses below the pages and the JSON API that name a target, ``{entry}`` or ``{folder}`` in their place.
PAGES: dict[str, list[str]] = {
    "files/<path:path>": [
        "/files/{entry}",
        "/files/{entry}?view=source",
        "/files/{entry}?view=source&from=1",
        "/files/{entry}?view=nothing",
        "/files/{folder}/",
        "/files/{folder}",
        "/files/{folder}/?folders=x",
        "/files/{folder}/?entries=x",
    ],
    "search/": [f"/search/?q={WORD}&folder={{folder}}", f"/search/?q={WORD}&folder={{folder}}&case=1"],
    "access/<path:path>": ["/access/{folder}/", "/access/{folder}", "/access/{folder}/?view=direct"],
    "tokens/": ["/tokens/?folder={folder}"],
    "tokens/shown/<str:key>/": ["/tokens/shown/{connection}/"],
    "tokens/<str:connection_id>/rotate/": ["/tokens/{connection}/rotate/"],
    "tokens/<str:connection_id>/revoke/": ["/tokens/{connection}/revoke/"],
}
# Addresses that name no target.
LISTS: dict[str, list[str]] = {
    "": ["/"],
    "files/": ["/files/", "/files/?folders=x", "/files/?entries=x"],
    "search/": [f"/search/?q={WORD}", "/search/?q=o", "/search/"],
    "access/": ["/access/", "/access/?view=direct"],
    "tokens/": ["/tokens/"],
}
# Endpoints of the JSON API: what follows the name, for a target and without one. An endpoint without a line fails.
BY_FOLDER = ["?folder_path={folder}", "?folder_id={folder_id}"]
ENDPOINTS: dict[str, tuple[list[str], list[str]]] = {
    "folders": ([*BY_FOLDER, "?folder_path={folder}&recursive=true"], ["", "?recursive=true"]),
    "entries": (
        [*BY_FOLDER, "?folder_path={folder}&recursive=true"],
        ["", "?recursive=true", "?name_contains=o"],
    ),
    "search": (
        [f"?q={WORD}&folder_path={{folder}}", f"?q={WORD}&folder_id={{folder_id}}"],
        [f"?q={WORD}", "?q=o"],
    ),
    "backup": (BY_FOLDER, [""]),
    "access": (BY_FOLDER, [""]),
    "access/explain": ([*BY_FOLDER, "?folder_path={folder}&role=owner"], [""]),
    "access/list": ([], ["?what=folders", "?what=identities"]),
    "schema": ([], [""]),
}
API = "api/v1/"
ENTRY_ROUTE = f"{API}entries/<path:entry>"
PAGES[ENTRY_ROUTE] = [
    f"/{API}entries/{name}{query}"
    for name in ("{entry}", "{entry_id}")
    for query in ("", "?start_line=1&end_line=1", "?start_line=9&end_line=9", "?heading=Heading")
]
for _name, (_with, _without) in ENDPOINTS.items():
    for _slash in ("/", ""):
        PAGES[f"{API}{_name}{_slash}"] = [f"/{API}{_name}{_slash}{query}" for query in _with]
        LISTS[f"{API}{_name}{_slash}"] = [f"/{API}{_name}{_slash}{query}" for query in _without]
# Routes that tell nothing of content, each with the reason.
TELL_NOTHING: dict[str, str] = {
    "healthz": "one word",
    "readyz": "one word",
    "login/": "before anybody is known",
    "logout/": "ends the session",
    "theme/": "light or dark",
    "mcp": "the tools, above",
    "mcp/": "the tools, above",
    API: "no endpoint",
    f"{API}<path:rest>": "no endpoint",
}
# The desk refuses everybody who is no administrator, before anything is looked up (tests/desk).
DESK = "admin/"


def routes() -> list[str]:
    """Every address that is routed, as its pattern."""

    def below(patterns: list[Any], prefix: str) -> Iterator[str]:
        for pattern in patterns:
            where = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from below(pattern.url_patterns, where)
            else:
                assert isinstance(pattern, URLPattern)
                yield where

    return list(below(get_resolver().url_patterns, ""))


def addresses(table: Mapping[str, list[str]], target: Target | None = None) -> Iterator[str]:
    """The addresses of a table, with the target in its place."""
    for templates in table.values():
        for template in templates:
            if target is None:
                yield template
            else:
                yield template.format(
                    entry=target.entry_path,
                    entry_id=target.entry_id,
                    folder=target.folder_path,
                    folder_id=target.folder_id,
                    connection=target.connection_id,
                )
