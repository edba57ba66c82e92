import pytest

from core.types import Role
from tests.mcpapi.agent import ERAS, Agent, Era
from tests.world import World


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    """Both eras, one after the other."""
    found: Era = request.param
    return found


@pytest.fixture
def ada(world: World, era: Era) -> Agent:
    """The agent of Ada, who edits Eng."""
    world.person("ada", role=Role.EDITOR, on="Eng")
    return Agent(world.token("ada"), era)
