"""The text policy: which text is stored, and in which form.

UTF-8 with LF line endings; no control characters but tab and LF; no lone surrogates; nothing else is changed:
no Unicode normalisation, no trimming. A line ends at LF and nowhere else.
"""

import re

from core import limits
from core.errors import InvalidArgument, LimitExceeded

# The bytes of ASCII text that hold no control character but tab, LF and CR.
_PLAIN = bytes([*b"\t\n\r", *range(0x20, 0x7F)])
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CONTROL_OR_BREAK = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_content(text: str, *, field: str = "content", max_bytes: int = limits.CONTENT_MAX_BYTES) -> str:
    """The text as it is stored: CRLF and lone CR become LF. The limit holds before that.

    Raises InvalidArgument naming line and code point, LimitExceeded.
    """
    if len(text) > max_bytes:
        raise LimitExceeded(field, limit=max_bytes, unit="bytes")
    if not text.isascii():
        _refuse(text, field, _SURROGATE, "a lone surrogate")
        if len(text.encode()) > max_bytes:
            raise LimitExceeded(field, limit=max_bytes, unit="bytes")
        _refuse(text, field, _CONTROL, "a control character")
    elif text.encode("ascii").translate(None, _PLAIN):
        # Several times quicker than the pattern, which then only has to find the place.
        _refuse(text, field, _CONTROL, "a control character")
    return _with_lf(text) if "\r" in text else text


def clean_title(title: str, *, field: str = "title") -> str:
    """``title`` itself: one line of 1 to 200 characters, not blank. Raises InvalidArgument, LimitExceeded."""
    return _clean_line(title, field, limits.TITLE_MAX_CHARACTERS)


def clean_display_name(name: str, *, field: str = "name") -> str:
    """``name`` itself: one line of 1 to 120 characters, not blank. Raises InvalidArgument, LimitExceeded."""
    return _clean_line(name, field, limits.DISPLAY_NAME_MAX_CHARACTERS)


def clean_description(description: str, *, field: str = "description") -> str:
    """At most 4,000 characters, line breaks allowed and stored as LF. Raises InvalidArgument, LimitExceeded."""
    return _clean_block(description, field, limits.DESCRIPTION_MAX_CHARACTERS)


def clean_reason(reason: str, *, field: str = "reason") -> str:
    """At most 500 characters, line breaks allowed and stored as LF. Raises InvalidArgument, LimitExceeded."""
    return _clean_block(reason, field, limits.REASON_MAX_CHARACTERS)


def clean_purpose(description: str, *, field: str = "description") -> str:
    """What a service account is for: at most 500 characters, line breaks stored as LF.

    Raises InvalidArgument, LimitExceeded.
    """
    return _clean_block(description, field, limits.PURPOSE_MAX_CHARACTERS)


def check_query(query: str, *, field: str = "query") -> str:
    """``query`` itself: a literal text of one line, 1 to 256 characters. Raises InvalidArgument, LimitExceeded."""
    if query == "":
        raise InvalidArgument(field, "A query is not empty.")
    if len(query) > limits.QUERY_MAX_CHARACTERS:
        raise LimitExceeded(field, limit=limits.QUERY_MAX_CHARACTERS, unit="characters")
    refuse_unprintable(query, field=field)
    return query


def clean_tags(tags: list[str], *, field: str = "tags") -> list[str]:
    """At most 50 different tags, each one line of 1 to 64 characters, not blank. Order is kept.

    Raises InvalidArgument, LimitExceeded.
    """
    if len(tags) > limits.TAGS_MAX:
        raise LimitExceeded(field, limit=limits.TAGS_MAX, unit="tags")
    cleaned = [_clean_line(tag, field, limits.TAG_MAX_CHARACTERS) for tag in tags]
    if len(set(cleaned)) != len(cleaned):
        raise InvalidArgument(field, "A tag stands here twice.")
    return cleaned


def count_lines(text: str) -> int:
    """How many lines the text has; a last line without LF counts, an empty text has none."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def slice_lines(text: str, first: int, last: int) -> str:
    """Lines ``first`` to ``last``, 1-based and inclusive, each with its LF where it has one."""
    start = _line_start(text, first, 0)
    return text[start : _line_start(text, last - first + 2, start)]


def _line_start(text: str, line: int, start: int) -> int:
    for _ in range(line - 1):
        end = text.find("\n", start)
        if end < 0:
            return len(text)
        start = end + 1
    return start


def refuse_unprintable(text: str, *, field: str) -> None:
    """Refuse lone surrogates, control characters and line breaks: for one-line arguments. Raises InvalidArgument."""
    _refuse(text, field, _SURROGATE, "a lone surrogate")
    _refuse(text, field, _CONTROL_OR_BREAK, "a control character or line break")


def _clean_line(text: str, field: str, limit: int) -> str:
    if text.strip() == "":
        raise InvalidArgument(field, "This is empty or blank.")
    if len(text) > limit:
        raise LimitExceeded(field, limit=limit, unit="characters")
    refuse_unprintable(text, field=field)
    return text


def _clean_block(text: str, field: str, limit: int) -> str:
    if len(text) > limit:
        raise LimitExceeded(field, limit=limit, unit="characters")
    _refuse(text, field, _SURROGATE, "a lone surrogate")
    _refuse(text, field, _CONTROL, "a control character")
    return _with_lf(text)


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refuse(text: str, field: str, pattern: re.Pattern[str], what: str) -> None:
    found = pattern.search(text)
    if found:
        line = _with_lf(text[: found.start()]).count("\n") + 1
        raise InvalidArgument(field, f"There is {what}.", line=line, code_point=f"U+{ord(found.group()):04X}")
