"""The one place where a call becomes an answer, whichever way it came. It knows no transport.

Here stands the one ``except BrainError`` of the agents' door: a refusal becomes a tool result, and a bug becomes
INTERNAL_ERROR with a reference id that the log has too.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from access import throttle
from access.principals import Principal
from core import limits, locks, log
from core.errors import BrainError, InternalError, InvalidArgument
from mcpapi import arguments, catalog, envelope, messages
from mcpapi.envelope import ToolResult
from mcpapi.operations import Tool

logger = log.get_logger(__name__)

REFERENCE_BYTES = 8


@contextmanager
def admitted(principal: Principal, body_bytes: int) -> Iterator[BrainError | None]:
    """Count one call of the connection, and hold one of the few places for large bodies while it is carried out.

    Yields the refusal to answer a tool with where it was one call too many, or no place is free.
    """
    with ExitStack() as stack:
        refusal: BrainError | None = None
        try:
            throttle.admit(principal)
            if body_bytes > limits.LARGE_BODY_BYTES:
                stack.enter_context(locks.heavy_work())
        except BrainError as too_much:
            refusal = too_much
        yield refusal


def call_tool(
    principal: Principal, name: str, given: Mapping[str, Any], *, refusal: BrainError | None = None
) -> ToolResult:
    """Call a tool of the caller's catalog. ``given`` are the arguments as they were decoded, strange keys and all.

    ``refusal`` is what ``admitted`` yielded; it comes before everything. Raises UnknownTool; everything else is a
    result.
    """
    if refusal is not None:
        logger.info("tool refused", outcome=refusal.code, **_who(principal))
        return envelope.failure(refusal)
    tool = catalog.tool_for(principal, name)
    asked = given.get("action")
    action = asked if asked in [known.name for known in tool.actions] else "?"
    try:
        result = envelope.success(_carry_out(principal, tool, given))
        outcome = "ok"
    except BrainError as error:
        result, outcome = envelope.failure(error), error.code
    except Exception:  # the caller learns nothing but the reference
        reference = secrets.token_hex(REFERENCE_BYTES)
        logger.error("tool failed", tool=name, action=action, reference=reference, exc_info=True)
        result, outcome = envelope.failure(InternalError(reference=reference)), InternalError.code
    logger.info("tool called", tool=name, action=action, outcome=outcome, **_who(principal))
    return result


def _carry_out(principal: Principal, tool: Tool, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if tool.writes_content:
        throttle.require_room_to_write(principal)
    for field, problem in messages.problems(given):
        raise InvalidArgument(field, problem)
    action = catalog.action_for(tool, principal, given.get("action"))
    return action.run(principal, arguments.check(action.arguments, given))


def _who(principal: Principal) -> dict[str, str]:
    connection = principal.connection
    return {"identity": principal.identity_id} | ({"connection": connection.id} if connection else {})
