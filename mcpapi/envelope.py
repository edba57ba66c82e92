"""The form of an answer: a tool's result or its refusal, encoded once for both eras."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from core.errors import BrainError


class UnknownTool(Exception):
    """There is no such tool, or this connection does not see it. Both are told in the same words."""

    sentence = "There is no tool of this name for this connection."


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers: one JSON object, shown to clients as ``structuredContent`` and as their one text block."""

    structured: Mapping[str, Any]
    is_error: bool
    encoded: bytes

    @property
    def text(self) -> str:
        """The object as JSON text: complete, since some clients show a model nothing else."""
        return self.encoded.decode()


def success(result: Mapping[str, Any]) -> ToolResult:
    """The result of a call that did what it was asked."""
    return ToolResult(result, is_error=False, encoded=msgspec.json.encode(result))


def failure(refusal: BrainError) -> ToolResult:
    """The result of a call that was refused."""
    error = {"error": refusal.as_dict()}
    return ToolResult(error, is_error=True, encoded=msgspec.json.encode(error))
