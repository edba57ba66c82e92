from collections.abc import Callable

import pytest

from core.ids import request_key
from core.types import MutationRequest


@pytest.fixture
def request_of() -> Callable[..., MutationRequest]:
    """A request of this id; ``arguments`` stands for what was asked."""

    def make(request_id: str, arguments: str = "the arguments") -> MutationRequest:
        key = request_key(
            organization_id="org", identity_id="ada", tool="update_knowledgebase", request_id=request_id
        )
        return MutationRequest(key=key, arguments_hash=arguments)

    return make
