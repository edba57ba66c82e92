"""How gunicorn runs Brain: threads, since a request waits for the disk and for locks, never for itself.

`gunicorn --config python:brain.gunicorn_config brain.wsgi`, or `make run`, which prepares everything first.
"""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "brain.settings")

from django.conf import settings
from gunicorn.glogging import Logger

from core import limits


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
worker_class = "gthread"
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


def when_ready(server: Any) -> None:
    """Called by gunicorn once it listens."""
    print(f"Brain is ready at {settings.PUBLIC_URL}/  (Ctrl-C stops it)", flush=True)  # noqa: T201


def worker_exit(server: Any, worker: Any) -> None:
    """Called by gunicorn in a worker that ends: what is saved becomes durable, locks are given back."""
    from kb.store import stores

    stores.close_all()
