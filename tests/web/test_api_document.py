"""The OpenAPI document says the truth: schemathesis calls the app as it says, and holds the answers to it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.conf import settings as django_settings
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.result import Ok

from brain.wsgi import application
from core import limits
from core.types import Role
from tests.web.conftest import Visit
from tests.world import World
from web.api import answers
from web.api.document import document
from web.api.urls import LISTS

DEPLOY = "Engineering/Payments/Checkout/deployment.md"
# All but the document's own: schemathesis does not call what it was loaded from.
OPERATIONS = ["folders", "entries", "entry", "search", "backup", "access", "access_explain", "access_list"]
EXAMPLES = 60
# What fits the document and is there, so that more than refusals is looked at. The document cannot say it: what an
# entry is called, which cursor is of this list, that two parameters belong together.
ENTRIES = [{"entry": DEPLOY}, {"entry": "Engineering/Billing/plan.md"}, {"entry": "ent_none"}]
THERE: dict[str, list[dict[str, Any]]] = {
    "entry": [
        {},
        {"start_line": 1, "end_line": 3},
        {"heading": "Rollback"},
        {"start_line": 99, "end_line": 99},
    ],
    "search": [{"q": "health"}, {"q": "e", "type": "skill"}],
    "folders": [{"folder_path": ""}, {"folder_path": "Engineering/Payments", "recursive": "true"}],
    "entries": [{"folder_path": "Engineering/Payments", "recursive": "true"}],
    "backup": [{"folder_path": "Engineering/Payments/Checkout"}],
    "access_explain": [
        {"folder_path": "Engineering/Payments"},
        {"folder_path": "Engineering/Payments", "role": "owner"},
    ],
    "access_list": [{"what": "identities"}, {"what": "folders", "query": "Pay"}],
    "access": [{"folder_path": "Engineering/Payments"}, {"folder_path": "Engineering/Billing"}],
}


@pytest.fixture
def token(world: World) -> str:
    """Ada's, in a world where she may read some of it."""
    world.entry(DEPLOY, "# Deploy\n\n## Rollback\n\nThe health check.\n", title="Deploy", type="skill")
    world.entry("Engineering/Payments/empty.md", "")
    world.entry("Engineering/Billing/plan.md", "health\n")
    world.person("ada", role=Role.OWNER, on="Engineering/Payments")
    return world.token("ada")


@pytest.mark.django_db(
    transaction=True
)  # between requests the app lets go of a transaction that is not its own
@pytest.mark.parametrize("credential", ["token", "session"])
def test_the_app_answers_as_the_document_says(token: str, visit: Visit, credential: str) -> None:
    cookie = visit("ada").cookies["brain_session"].value
    bearer = {"Authorization": f"Bearer {token}"}
    api = schemathesis.openapi.from_wsgi("/api/v1/schema/", application, headers=bearer)
    api.config.generation.update(with_security_parameters=False)

    @api.auth()
    class Ada:
        def get(self, case: Any, context: Any) -> str:
            return credential

        def set(self, case: Any, data: str, context: Any) -> None:
            if data == "token":
                case.headers = {**(case.headers or {}), **bearer}
            else:
                case.cookies = {**(case.cookies or {}), "brain_session": cookie}

    def sent(case: Any) -> int:
        answer = case.call_and_validate(checks=checks)
        status: int = answer.status_code
        return status

    load_all_checks()
    # Left out: that everything fitting the document is accepted. It cannot say which names are allowed.
    checks = [check for check in CHECKS.get_all() if check.__name__ != "positive_data_acceptance"]
    statuses: dict[str, Counter[int]] = {name: Counter() for name in OPERATIONS}

    for found in api.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        name = operation.definition.raw["operationId"]
        counted = statuses[name]
        fixed = THERE.get(name, [{}])
        entries = ENTRIES if name == "entry" else [None]
        for query in fixed:
            for entry in entries:
                case = operation.Case(query=query, path_parameters=entry or {})
                Ada().set(case, credential, None)
                case._has_explicit_auth = True
                counted[sent(case)] += 1
        cases = st.sampled_from(
            [
                operation.as_strategy(mode, query=query, path_parameters=entry)
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
                for query in (None, *fixed)
                for entry in (None, *entries)
            ]
        ).flatmap(lambda strategy: strategy)

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def call(case: Any) -> None:
            counted[sent(case)] += 1  # noqa: B023 - called in this round of the loop

        call()

    assert set(statuses) == set(OPERATIONS)
    for name, counted in statuses.items():
        assert counted[200] >= 1, (name, statuses)
        assert counted[400] >= 10, (name, statuses)
        assert set(counted) <= {200, 400, 404}, (name, statuses)


def _told() -> dict[str, dict[str, Any]]:
    return {
        operation["get"]["operationId"]: {
            parameter["name"]: parameter for parameter in operation["get"]["parameters"]
        }
        for operation in document()["paths"].values()
    }


def test_every_endpoint_stands_in_it_and_nothing_else() -> None:
    assert sorted(document()["paths"]) == sorted(
        [*(f"/api/v1/{endpoint.name}/" for endpoint in LISTS), "/api/v1/entries/{entry}"]
    )
    assert all(list(operation) == ["get"] for operation in document()["paths"].values())


def test_parameters_have_the_bounds_that_hold() -> None:
    told = _told()
    folder = {"folder_id", "folder_path"}
    page = {"limit", "cursor"}

    assert {name: set(parameters) for name, parameters in told.items()} == {
        "folders": folder | page | {"recursive"},
        "entries": folder | page | {"recursive", "type", "tags", "name_contains"},
        "entry": {"entry", "start_line", "end_line", "heading", "occurrence"},
        "search": folder | page | {"q", "type", "tags", "case_sensitive"},
        "backup": folder | page,
        "access": folder,
        "access_explain": folder | {"identity_id", "role"},
        "access_list": {"what", "query", "limit", "cursor"},
        "schema": set(),
    }
    search = {name: parameter["schema"] for name, parameter in told["search"].items()}
    assert search["q"] == {"type": "string", "minLength": 1, "maxLength": limits.QUERY_MAX_CHARACTERS}
    assert search["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": limits.PAGE_MAX,
        "default": limits.PAGE_DEFAULT,
    }
    assert search["type"] == {"type": "string", "enum": ["skill", "note", "fact", "source"]}
    assert search["tags"]["maxItems"] == limits.TAGS_MAX
    assert search["tags"]["items"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": limits.TAG_MAX_CHARACTERS,
    }
    assert told["entry"]["heading"]["schema"]["maxLength"] == limits.HEADING_MAX_CHARACTERS
    assert [name for name, parameter in told["search"].items() if parameter["required"]] == ["q"]
    assert [name for name, parameter in told["entry"].items() if parameter["required"]] == ["entry"]
    assert all(parameter["description"] for parameters in told.values() for parameter in parameters.values())


def test_refusals_and_credentials_are_told() -> None:
    schemes = document()["components"]["securitySchemes"]
    assert (schemes["bearer"]["scheme"], schemes["session"]["name"]) == ("bearer", "brain_session")
    for operation in document()["paths"].values():
        assert operation["get"]["security"] == [{"bearer": []}, {"session": []}]
        responses = operation["get"]["responses"]
        assert {"200", "400", "401", "429", "500"} <= set(responses)
        assert "WWW-Authenticate" in responses["401"]["headers"]
        assert "Retry-After" in responses["429"]["headers"]
        for status, response in responses.items():
            if status != "200":
                schema = response["content"]["application/json"]["schema"]
                assert schema == answers.reference(answers.Error)


def test_it_is_served_as_json_and_no_page_comes_with_it(world: World) -> None:
    world.person("mallory")
    client = Client(headers={"Authorization": f"Bearer {world.token('mallory')}"})
    answer = client.get("/api/v1/schema/", headers={"Accept": "text/html"})

    assert answer["Content-Type"] == "application/json"
    assert json.loads(answer.content) == json.loads(json.dumps(document()))
    for address in ("/api/v1/schema/swagger-ui/", "/api/v1/docs/", "/api/v1/schema/redoc/"):
        assert client.get(address).status_code == 404


def test_the_reference_names_every_endpoint_and_parameter() -> None:
    page = Path(django_settings.BASE_DIR, "docs", "reference", "json-api.md").read_text("utf-8")

    for address, operation in document()["paths"].items():
        assert f"`{address}`" in page, address
        for parameter in operation["get"]["parameters"]:
            name = parameter["name"]
            assert f"`{name}`" in page or f"{{{name}}}" in page, name
