"""A real server for the tests of a module, with the people of the stories in it, and agents that visit it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live import LiveBrain
from tests.mcpapi.agent import Agent, Era, through_network
from tests.server import RunningBrain, manage, running_brain


class Live:
    """A running Brain and the commands of its shell."""

    def __init__(self, brain: RunningBrain, data_dir: Path) -> None:
        self.brain = brain
        self.data_dir = data_dir
        self._tokens: dict[tuple[str, ...], str] = {}

    @property
    def url(self) -> str:
        """What an MCP client is given."""
        return f"{self.brain.url}/mcp"

    @property
    def port(self) -> int:
        return int(self.brain.url.rpartition(":")[2])

    def manage(self, *arguments: str) -> str:
        """What a command prints; it must succeed."""
        done = manage(self.data_dir, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def seed(self, steps: list[dict[str, Any]]) -> None:
        """Make people, folders and entries: see tests/seed.py."""
        LiveBrain(self.brain, self.data_dir).seed(steps)

    def new_token(self, username: str, *options: str, capability: str = "write") -> str:
        """A token that no other test has."""
        return self.manage(
            "create_token", username, "--name", f"of {username}", "--capability", capability, *options
        )

    def token(self, username: str, *options: str, capability: str = "write") -> str:
        """A token, the same for all who ask for such a one."""
        wanted = (username, *options, capability)
        if wanted not in self._tokens:
            self._tokens[wanted] = self.new_token(username, *options, capability=capability)
        return self._tokens[wanted]

    def agent(self, token: str, era: Era = "modern") -> Agent:
        """Somebody who shows this token over the network."""
        return Agent(token, era, through_network(self.port))


@contextmanager
def live(data_dir: Path) -> Iterator[Live]:
    """A server for the length of a block."""
    with running_brain(data_dir) as brain:
        yield Live(brain, data_dir)
