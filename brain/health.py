"""Is Brain alive, and can it do its work: `ok` or `unavailable`, and no more.

The reason goes to the log, and to administrators at their desk.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from core import log
from core.errors import BrainError
from kb.store import health

logger = log.get_logger(__name__)
DATABASE_WAIT_SECONDS = 2


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return _answer(ok=True)


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """The database file, the store and the disk were tried just now."""
    return _answer(ok=trouble() is None)


def trouble() -> str | None:
    """Why Brain cannot do its work, tried now; None where it can."""
    try:
        _try_database()
        health.probe()
    except health.NotReady as error:
        return error.reason
    except Exception as error:  # whatever it is, Brain cannot do its work
        logger.warning("not ready", exc_info=error)
        return error.message if isinstance(error, BrainError) else str(error)
    return None


def _try_database() -> None:
    # A new connection to the file by its name: one that is open goes on answering after the file is gone.
    uri = f"{Path(connection.settings_dict['NAME']).as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=DATABASE_WAIT_SECONDS)) as fresh:
        fresh.execute("SELECT count(*) FROM django_migrations").fetchone()


def _answer(*, ok: bool) -> HttpResponse:
    return HttpResponse("ok" if ok else "unavailable", status=200 if ok else 503, content_type="text/plain")
