"""A real server, started once for all tests of a module, with the people of the stories in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mcpapi.agent import Agent, Era, through_network
from tests.server import RunningBrain, manage, running_brain


@dataclass
class Live:
    """A running Brain and the commands of its shell."""

    brain: RunningBrain
    data_dir: Path

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

    def person(self, username: str, role: str, on: str) -> None:
        """Somebody with one grant."""
        self.manage("create_user", username)
        self.manage("create_folder", on)
        self.manage("grant", username, on, role)

    def service_account(self, username: str, role: str, on: str) -> None:
        """A service account with one grant."""
        self.manage("create_service_account", username)
        self.manage("create_folder", on)
        self.manage("grant", username, on, role)

    def token(self, username: str, *options: str, capability: str = "write") -> str:
        """A new token."""
        return self.manage(
            "create_token", username, "--name", f"of {username}", "--capability", capability, *options
        )

    def agent(self, token: str, era: Era = "modern") -> Agent:
        """Somebody who shows this token over the network."""
        return Agent(token, era, through_network(self.port))


@contextmanager
def live(data_dir: Path) -> Iterator[Live]:
    """A server for the length of a block."""
    with running_brain(data_dir) as brain:
        yield Live(brain, data_dir)
