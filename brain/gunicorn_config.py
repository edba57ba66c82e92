"""How gunicorn runs Brain: threads, since a request waits for the disk and for locks, never for itself.

`gunicorn --config python:brain.gunicorn_config brain.wsgi`, or `make run`, which prepares everything first.
"""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "brain.settings")

from django.conf import settings
from gunicorn.glogging import Logger

from core import limits, rates


class JsonLog(Logger):
    """gunicorn's own events through the root logger, as JSON like everything else."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn with its settings."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def _address() -> str:
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    return f"{host}:{settings.PORT}"


bind = _address()
worker_class = (
    "brain.pace.PacedWorker"  # gunicorn's gthread, which waits for slow clients no longer than it says
)
workers = settings.WORKERS
threads = limits.WORKER_THREADS
timeout = 90  # seconds without a sign of life from a worker
graceful_timeout = 10  # seconds for running requests at a stop: SIGTERM ends everything within 15
keepalive = 5  # seconds
preload_app = True  # one import, shared memory; nothing is opened before the fork
control_socket_disable = True
forwarded_allow_ips = "*" if settings.TRUST_PROXY else ""
logger_class = JsonLog
loglevel = "warning"
accesslog = None  # brain.middleware.RequestEvents writes one event a request, without addresses
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108 - heartbeat files, unlinked at once


_rows = rates.Rows()


def on_starting(server: Any) -> None:
    """Called by gunicorn's master before it forks: what connections do is counted over all workers."""
    from access import throttle

    throttle.count_together()


def pre_fork(server: Any, worker: Any) -> None:
    """Called by gunicorn's master before each fork."""
    worker.row = _rows.take()


def post_fork(server: Any, worker: Any) -> None:
    """Called by gunicorn in a new worker."""
    from access import throttle

    throttle.use_row(worker.row)


def child_exit(server: Any, worker: Any) -> None:
    """Called by gunicorn's master after a worker ended."""
    if worker.row is not None:
        _rows.give_back(worker.row)


def when_ready(server: Any) -> None:
    """Called by gunicorn once it listens."""
    print(f"Brain is ready at {settings.PUBLIC_URL}/  (Ctrl-C stops it)", flush=True)  # noqa: T201


def worker_exit(server: Any, worker: Any) -> None:
    """Called by gunicorn in a worker that ends: what is saved becomes durable, locks are given back."""
    from kb.store import stores

    stores.close_all()
