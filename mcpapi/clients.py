"""What to paste into the programs that speak MCP, so that they find this Brain."""

import json
import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one program is told: ``text`` belongs ``where``."""

    client: str
    where: str
    text: str


def recipes(url: str, token: str) -> list[Recipe]:
    """The lines for each program, with the address ``…/mcp`` and the token in them."""
    bearer = f"Authorization: Bearer {token}"
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "browse_knowledgebase", "arguments": {"action": "folders"}},
    }
    return [
        Recipe(
            "Claude Code",
            "a terminal",
            f"claude mcp add --transport http brain {_word(url)} --header {_word(bearer)}",
        ),
        Recipe(
            "Cursor",
            "~/.cursor/mcp.json",
            _json({"mcpServers": {"brain": {"url": url, "headers": {"Authorization": f"Bearer {token}"}}}}),
        ),
        Recipe(
            "VS Code",
            ".vscode/mcp.json; VS Code asks for the token once and keeps it",
            _json(
                {
                    "inputs": [
                        {
                            "type": "promptString",
                            "id": "brain-token",
                            "description": "Brain token",
                            "password": True,
                        }
                    ],
                    "servers": {
                        "brain": {
                            "type": "http",
                            "url": url,
                            "headers": {"Authorization": "Bearer ${input:brain-token}"},
                        }
                    },
                }
            ),
        ),
        Recipe(
            "MCP Inspector",
            "a terminal with Node 22",
            f"npx @modelcontextprotocol/inspector@2 --cli {_word(url)} --transport http \\\n"
            f"  --header {_word(bearer)} --method tools/list --format json",
        ),
        Recipe(
            "curl",
            "a terminal",
            f"curl -s {_word(url)} -H {_word(bearer)} -H {_word('Content-Type: application/json')} \\\n"
            f"  -d {_word(json.dumps(call))}",
        ),
    ]


def _word(text: str) -> str:
    # One word for a shell; in double quotes where that is enough, as people write it.
    quoted = shlex.quote(text)
    return f'"{text}"' if quoted != text and not set(text) & set("\"$`\\!'") else quoted


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
