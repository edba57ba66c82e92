"""A disk that refuses: errors before chosen steps, as the kernel would report them."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Refusing:
    """A hook for ``steps``: raises ``number`` before each step that ``concerns`` picks, as long as ``times`` lasts.

    ``seen`` lists what was refused.
    """

    concerns: Callable[[str, str], bool]
    number: int = errno.EIO
    times: int = 1_000_000
    seen: list[str] = field(default_factory=list)

    def __call__(self, step: str, place: str) -> None:
        if self.times and self.concerns(step, place):
            self.times -= 1
            self.seen.append(f"{step} {place}")
            raise OSError(self.number, os.strerror(self.number))


def syncs_of(part: str) -> Callable[[str, str], bool]:
    """Every sync of what lies below this path of the organization."""
    return lambda step, place: step.startswith("sync") and (place + "/").startswith(part)
