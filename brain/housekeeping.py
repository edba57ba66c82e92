"""The work that nobody asks for, in rounds: `manage.py sweep`, with --loop again and again, and beside the server.

Each round is a process of its own: what it opened is given back with it, and one that dies takes nothing along.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from django.db import DatabaseError, connections

from access import tasks as access_tasks
from core import clock, locks, log
from core.errors import BrainError
from core.progress import SILENT, Progress
from kb import tasks as kb_tasks
from kb.store import stores
from kb.store.data_format import UnknownFormat
from kb.store.retention import Swept

logger = log.get_logger(__name__)

ROUND_SECONDS = 600
# The server has better things to do in its first minute.
FIRST_SECONDS = 60
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Round:
    """What one round removed; ``swept`` is None where there is no organization yet."""

    swept: Swept | None
    access_outcomes: int
    sessions: int
    sign_ins: int
    oauth: int


def run_round(progress: Progress = SILENT) -> Round:
    """Do everything once. Raises LockBusy at once where another round, a purge or a backup is under way.

    Also raises StorageUnavailable, UnknownFormat, DatabaseError, OSError.
    """
    swept = kb_tasks.sweep(progress)
    return Round(
        swept,
        access_tasks.drop_expired_outcomes(),
        access_tasks.drop_expired_sessions(),
        access_tasks.drop_past_sign_ins(),
        access_tasks.drop_expired_oauth(),
    )


def keep_house(seconds: float, *, first_after: float = 0) -> NoReturn:
    """Run a round every ``seconds``, until a signal. One that fails is logged, and the next one tries again."""
    signal.signal(signal.SIGTERM, _end)
    clock.sleep(first_after)
    keeper = os.getpid()
    while True:
        connections.close_all()
        child = os.fork()
        if child == 0:
            _live_below(keeper, _log_a_round)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            logger.error("a round of housekeeping was killed", signal=os.WTERMSIG(status))
        clock.sleep(seconds)


def start_beside_the_server() -> None:
    """Fork the process that keeps house as long as this one lives. Call it while nothing is open yet."""
    server = os.getpid()
    if os.fork() == 0:
        _live_below(server, lambda: keep_house(ROUND_SECONDS, first_after=FIRST_SECONDS))


def _log_a_round() -> None:
    try:
        done = run_round()
    except locks.LockBusy:
        return
    except (BrainError, UnknownFormat, DatabaseError, OSError) as error:
        logger.error("a round of housekeeping failed", exc_info=error)
        return
    swept = done.swept
    of_access = {"access_outcomes": done.access_outcomes, "sessions": done.sessions, "oauth": done.oauth}
    if any(of_access.values()) or (
        swept and (swept.outcomes or swept.claims or swept.leftovers or swept.segments)
    ):
        logger.info("swept", **of_access, **(asdict(swept) if swept else {}))


def _live_below(parent: int, work: Callable[[], object]) -> NoReturn:
    """Be a child that ends with its parent: do the work, give everything back, and end without the parent's exits."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == parent:
            work()
        status = 0
    except (SystemExit, KeyboardInterrupt):
        status = 0
    except Exception:
        logger.exception("a round of housekeeping failed")
    finally:
        try:
            stores.close_all()
            connections.close_all()
        finally:
            os._exit(status)


def _end(_number: int, _frame: Any) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)
