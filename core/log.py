"""What Brain writes down about itself: one JSON object a line, on standard error.

A log line may name ids, counts, codes and durations. It never holds content of entries, a token, a password or
a key, and of an exception it keeps the types and the lines of code, not the message: messages quote what people wrote.
Every record of the process, ours or a library's, goes through ``redact``.
"""

import re
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

REDACTED = "[redacted]"
FRAMES_MAX = 30
CAUSES_MAX = 5

_SECRET_KEY = re.compile(
    r"(?i)(^|[_-])(authorization|cookie|password|passwd|pat|secret|secrets|token|tokens|api_?key|private_?key"
    r"|csrf\w*|credential|credentials)$"
)
_SECRETS_IN_TEXT = (
    # Brain's own tokens, whole or cut.
    (re.compile(r"brn_[A-Za-z0-9_-]+"), "brn_" + REDACTED),
    (
        re.compile(r"(?i)\b(authorization|proxy-authorization|cookie|set-cookie)(['\"]?\s*[:=]\s*)[^\r\n]+"),
        r"\1\2" + REDACTED,
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), r"\1 " + REDACTED),
    (
        re.compile(
            r"(?i)\b((?:[a-z0-9]+_)*(?:password|passwd|secret|token|pat|api_?key))"
            r"(['\"]?\s*[:=]\s*)(?:'[^']*'|\"[^\"]*\"|[^\s,;&}]+)"
        ),
        r"\1\2" + REDACTED,
    ),
    # The user part of a URL.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@"), r"\1" + REDACTED + "@"),
)


def get_logger(name: str) -> FilteringBoundLogger:
    """The logger of a module. Call it with a short event and named facts: ``logger.info("import done", files=3)``."""
    return cast(FilteringBoundLogger, structlog.stdlib.get_logger(name))


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Take secrets out of a record: the values of keys that name one, and what looks like one in any text."""
    return cast(EventDict, _without_secrets(event))


def redacted(text: str) -> str:
    """The text without what looks like a secret in it."""
    for pattern, replacement in _SECRETS_IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def describe_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Turn ``exc_info`` into the types and places of an exception and its causes, without their messages."""
    exc_info = event.pop("exc_info", None)
    if exc_info is True:
        exc_info = sys.exc_info()
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if isinstance(error, BaseException):
        event["exception"] = [_described(cause) for cause in _chain(error)]
    return event


def configuration(*, level: str = "INFO") -> dict[str, Any]:
    """Django's ``LOGGING``: everything through one handler of the root logger, so that no library adds its own."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _FIRST,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    describe_exception,
                    redact,
                    structlog.processors.JSONRenderer(),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"level": level, "handlers": ["stderr"]},
        "loggers": {
            # Django's own handlers, and its lines for every refused page and form: they quote the address.
            "django": {"handlers": [], "propagate": True},
            "django.request": {"level": "CRITICAL"},
            "django.security.csrf": {"level": "CRITICAL"},
            "django.server": {"handlers": [], "propagate": True},
            "axes": {"level": "ERROR"},  # web.sign_in says what happened
            "mcp": {"level": "WARNING"},
            "mcp_server": {"level": "WARNING"},
            # They write codes and verifiers into their finer lines.
            "oauthlib": {"level": "WARNING"},
            "oauth2_provider": {"level": "WARNING"},
        },
    }


def configure() -> None:
    """Send structlog's records to the standard library, where ``configuration`` formats them."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_FIRST,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


_FIRST: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, MutableMapping | Mapping):
        return {
            key: REDACTED if isinstance(key, str) and _SECRET_KEY.search(key) else _without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_without_secrets(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redacted(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain and len(chain) < CAUSES_MAX:
        chain.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return chain


def _described(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    described: dict[str, Any] = {"type": f"{kind.__module__}.{kind.__qualname__}"}
    # Of these the number or name is what an operator needs, and it quotes nobody.
    if isinstance(error, OSError) and error.errno is not None:
        described["errno"] = error.errno
    if isinstance(name := getattr(error, "sqlite_errorname", None), str):
        described["sqlite"] = name
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]
    described["frames"] = [f"{_module_path(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    return described


def _module_path(filename: str) -> str:
    # The part that a reader of the log knows: the project's or the package's, not where it is installed.
    _, found, below = filename.rpartition("site-packages/")
    return below if found else "/".join(filename.split("/")[-3:])
