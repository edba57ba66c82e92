"""What a tool and an action are: the words that clients see, the arguments, and the function that does it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from access.principals import Principal
from core.types import Capability
from mcpapi.arguments import ToolArguments


@dataclass(frozen=True, slots=True)
class Action:
    """One operation of a tool.

    ``needs`` is the capability of the connections that see it; what they may do with it where, the services judge.
    ``example`` are arguments that fit; they stand in the tool's description.
    """

    name: str
    arguments: type[ToolArguments]
    run: Callable[[Principal, Any], Mapping[str, Any]]
    description: str
    example: Mapping[str, Any]
    needs: Capability = Capability.READ

    def is_visible_to(self, principal: Principal) -> bool:
        """Whether the caller's connection may know of this action. A session has no connection that narrows it."""
        connection = principal.connection
        return (
            connection is None or self.needs is Capability.READ or connection.capability is Capability.WRITE
        )


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the catalog. ``advice`` follows the actions in its description: how to go on after what answer.

    ``hints`` and ``meta`` are MCP's ``annotations`` and ``_meta``. A tool that ``writes_content`` is held to the bytes
    that a connection may write.
    """

    name: str
    title: str
    summary: str
    advice: str
    actions: Sequence[Action]
    hints: Mapping[str, bool]
    meta: Mapping[str, Any] = field(default_factory=dict)
    writes_content: bool = False
