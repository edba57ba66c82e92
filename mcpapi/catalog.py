"""Which tools and actions a connection sees, and how they are described to it."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from access.principals import Principal
from core.errors import InvalidArgument
from core.types import Capability
from mcpapi.arguments import public_schema
from mcpapi.envelope import UnknownTool
from mcpapi.operations import ONLY_READS, Action, Tool
from mcpapi.tools import (
    browse_knowledgebase,
    manage_knowledgebase_access,
    read_knowledgebase,
    update_knowledgebase,
)

TOOLS: tuple[Tool, ...] = (
    browse_knowledgebase.TOOL,
    read_knowledgebase.TOOL,
    update_knowledgebase.TOOL,
    manage_knowledgebase_access.TOOL,
)
_BY_NAME = {tool.name: tool for tool in TOOLS}


def tool_for(principal: Principal, name: str) -> Tool:
    """The tool, if the caller sees any action of it. Raises UnknownTool."""
    tool = _BY_NAME.get(name)
    if tool is None or not visible_actions(tool, principal):
        raise UnknownTool
    return tool


def action_for(tool: Tool, principal: Principal, name: object) -> Action:
    """The action, if the caller sees it. Raises InvalidArgument, the same for one that does not exist."""
    visible = visible_actions(tool, principal)
    for action in visible:
        if action.name == name:
            return action
    names = ", ".join(action.name for action in visible)
    raise InvalidArgument("action", f"For this connection the action is one of: {names}.")


def lacks_scope(principal: Principal, name: object, action: object) -> bool:
    """Whether an OAuth client calls what it would see, had its person allowed it to write."""
    connection = principal.connection
    tool = _BY_NAME.get(name) if isinstance(name, str) else None
    if tool is None or connection is None or not connection.is_oauth:
        return False
    writing = replace(principal, connection=replace(connection, capability=Capability.WRITE))
    seen = [one.name for one in visible_actions(tool, principal)]
    return action not in seen and action in [one.name for one in visible_actions(tool, writing)]


def visible_actions(tool: Tool, principal: Principal) -> tuple[Action, ...]:
    """The actions of a tool that the caller sees, in their order."""
    if principal.is_access_builder and not tool.manages_access:
        return ()
    return tuple(action for action in tool.actions if action.is_visible_to(principal))


def listing(principal: Principal) -> list[Mapping[str, Any]]:
    """The tools that the caller sees, as ``tools/list`` of both eras shows them, always in the same order."""
    seen = [(tool, visible_actions(tool, principal)) for tool in TOOLS]
    return [_listed(tool.name, tuple(action.name for action in actions)) for tool, actions in seen if actions]


@functools.cache
def _listed(tool_name: str, action_names: tuple[str, ...]) -> Mapping[str, Any]:
    tool = _BY_NAME[tool_name]
    actions = [action for action in tool.actions if action.name in action_names]
    listed: dict[str, Any] = {
        "name": tool.name,
        "title": tool.title,
        "description": _description(tool, actions),
        "inputSchema": public_schema({action.name: action.arguments for action in actions}),
        "annotations": tool.hints if _changes(actions) else ONLY_READS,
    }
    if tool.meta:
        listed["_meta"] = dict(tool.meta)
    return listed


def _description(tool: Tool, actions: Sequence[Action]) -> str:
    lines = [tool.summary, ""]
    for action in actions:
        example = json.dumps(action.example, ensure_ascii=False, separators=(",", ":"))
        lines.append(f"- {action.name}: {action.description} Example: {example}")
    advice = f"{tool.advice} {tool.changing_advice}" if _changes(actions) else tool.advice
    return "\n".join([*lines, "", advice.strip()])


def _changes(actions: Sequence[Action]) -> bool:
    return any(action.needs is Capability.WRITE for action in actions)
