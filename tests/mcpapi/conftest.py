import io
import logging
from collections.abc import Iterator

import pytest
from structlog.stdlib import ProcessorFormatter

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


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is written into the log from here on, in the form that an operator reads."""
    root = logging.getLogger()
    (formatter,) = [h.formatter for h in root.handlers if isinstance(h.formatter, ProcessorFormatter)]
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(formatter)
    root.addHandler(handler)
    yield handler.stream
    root.removeHandler(handler)
