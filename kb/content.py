"""An entry's text with all that is derived from it, worked out before anybody waits for the writer lock."""

from dataclasses import dataclass

from core import ids, limits, text
from core.errors import LimitExceeded


@dataclass(frozen=True, slots=True)
class Content:
    """The stored bytes and their facts; ``content_hash`` is SHA-256, ``git_blob`` the id Git gives them."""

    data: bytes
    content_hash: str
    git_blob: str
    size_bytes: int
    total_lines: int


def prepare_content(given: str) -> Content:
    """Check and normalise a text, and derive its facts. Raises InvalidArgument, LimitExceeded."""
    cleaned = text.clean_content(given)
    data = cleaned.encode()
    if len(data) > limits.CONTENT_MAX_BYTES:
        raise LimitExceeded("content", limit=limits.CONTENT_MAX_BYTES, unit="bytes")
    return Content(
        data=data,
        content_hash=ids.sha256_hex(data),
        git_blob=ids.git_blob_id(data),
        size_bytes=len(data),
        total_lines=text.count_lines(cleaned),
    )
