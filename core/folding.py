"""How texts are compared: in NFC, and without regard to case unless that is asked for."""

import unicodedata


def normal(text: str) -> str:
    """The text in NFC: a letter and its accent are one, however they were typed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold(text: str) -> str:
    """The text in NFC without case. A line stays one line, but may get longer or shorter."""
    return text.lower() if text.isascii() else normal(normal(text).casefold())
