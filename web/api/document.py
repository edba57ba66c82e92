"""The OpenAPI document: drf-spectacular walks the endpoints, and each tells its own operation from what it runs on."""

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

from core.errors import BrainError, InternalError, RateLimited, Unauthenticated
from web.api import answers
from web.api.parameters import Parameter

if TYPE_CHECKING:
    from web.api.endpoints import Endpoint

VERSION = "1"
PREFIX = "api/v1/"
# What any call can be told, wherever it goes.
ALWAYS: tuple[type[BrainError], ...] = (Unauthenticated, RateLimited, InternalError)
HEADERS = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "The challenge: Bearer."},
    HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": "Seconds to wait."},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "Seconds to wait."},
}
DESCRIPTION = """\
Reads what the caller may read, in the shapes of Brain's MCP tools; it changes nothing. Send a token as a bearer, or \
come with the session of the pages. A connection's limits count here too. What may not be seen and what does not exist \
answer alike. Parameters that an endpoint does not have are refused.\
"""


class EndpointSchema(AutoSchema):
    """An endpoint's operation."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any
    ) -> dict[str, Any]:
        """The operation, whole."""
        view = cast("Endpoint", self.view)
        parameters = [
            *(_parameter(parameter, "path") for parameter in view.path_parameters()),
            *(_parameter(parameter, "query") for parameter in view.query_parameters()),
        ]
        operation: dict[str, Any] = {
            "operationId": view.name.replace("/", "_"),
            "summary": view.summary,
            "parameters": parameters,
            "responses": {"200": _success(view.answer), **_refused((*ALWAYS, *view.refusals))},
            "security": [{"bearer": []}, {"session": []}],
        }
        return operation


@cache
def document() -> dict[str, Any]:
    """The document, as plain JSON values."""
    generator = SchemaGenerator(  # type: ignore[no-untyped-call]
        patterns=[path(PREFIX, include("web.api.urls"))], api_version=VERSION
    )
    found = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Brain", "version": VERSION, "description": DESCRIPTION},
        "paths": found["paths"],
        "components": {
            "schemas": answers.components(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token: brn_ and 43 characters.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": settings.SESSION_COOKIE_NAME,
                    "description": "The session of a person who signed in at /login/.",
                },
            },
        },
    }


def _parameter(parameter: Parameter, where: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": parameter.name,
        "in": where,
        "required": parameter.is_required,
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }
    if parameter.schema["type"] == "array":
        told |= {"style": "form", "explode": True}
    return told


def _success(answer: type | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"} if answer is None else answers.reference(answer)
    return {"description": "What was asked for.", "content": {"application/json": {"schema": schema}}}


def _refused(refusals: tuple[type[BrainError], ...]) -> dict[str, Any]:
    by_status: dict[int, list[type[BrainError]]] = {}
    for refusal in refusals:
        by_status.setdefault(refusal.http_status, []).append(refusal)
    responses: dict[str, Any] = {}
    for status, those in sorted(by_status.items()):
        responses[str(status)] = {
            "description": answers.codes_of(tuple(those)),
            "content": {"application/json": {"schema": answers.reference(answers.Error)}},
        }
        if headers := HEADERS.get(HTTPStatus(status)):
            responses[str(status)]["headers"] = {
                name: {"description": said, "schema": {"type": "string"}} for name, said in headers.items()
            }
    return responses
