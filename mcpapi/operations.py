"""What a tool and an action are: the words that clients see, the arguments, and the function that does it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from access.principals import Principal
from core.types import Capability, ConnectionKind
from mcpapi.arguments import ToolArguments

ONLY_READS: Mapping[str, bool] = {"readOnlyHint": True, "openWorldHint": False}


@dataclass(frozen=True, slots=True)
class Action:
    """One operation of a tool.

    ``needs`` is the capability of the connections that see it, and an action that ``manages`` access is seen only
    through connections that nothing narrows. What they may do with it where, the services judge.
    ``example`` are arguments that fit; they stand in the tool's description.
    """

    name: str
    arguments: type[ToolArguments]
    run: Callable[[Principal, Any], Mapping[str, Any]]
    description: str
    example: Mapping[str, Any]
    needs: Capability = Capability.READ
    manages: bool = False

    def is_visible_to(self, principal: Principal) -> bool:
        """Whether the caller's connection may know of this action. A session has no connection that narrows it."""
        connection = principal.connection
        if connection is None:
            return True
        if self.manages and (
            connection.kind is not ConnectionKind.EXTERNAL or connection.folder_scopes is not None
        ):
            return False
        return self.needs is Capability.READ or connection.capability is Capability.WRITE


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the catalog. ``advice`` follows the actions in its description: how to go on after what answer.

    ``changing_advice`` follows where actions are seen that need the capability to write. ``hints`` and ``meta`` are
    MCP's ``annotations`` and ``_meta``; who sees none of those actions is told that the tool only reads. A tool that
    ``writes_content`` is held to the bytes that a connection may write; the access builder sees only one that
    ``manages_access``.
    """

    name: str
    title: str
    summary: str
    advice: str
    actions: Sequence[Action]
    hints: Mapping[str, bool]
    meta: Mapping[str, Any] = field(default_factory=dict)
    writes_content: bool = False
    manages_access: bool = False
    changing_advice: str = ""
