"""`make run`: prepare everything, then become the server.

One process does it all, so that Django is loaded once: a forked child prepares (it opens the database and the store,
and takes them with it when it ends) while this process loads the pages, and then this process is gunicorn's
master. A signal therefore reaches the server itself, from make or from the process group.
"""

import importlib
import io
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from core.errors import BrainError
from core.locks import LockBusy

ADMIN = "admin"
# Scripts of Django's own forms, which no page of the desk has.
UNUSED_STATIC = [
    "vendor",
    "i18n",
    "autocomplete*",
    "SelectBox.js",
    "SelectFilter2.js",
    "DateTimeShortcuts.js",
]


def main() -> None:
    """Prepare and serve, until a signal. Exits with 1 and one clear sentence where Brain cannot start."""
    signal.signal(signal.SIGTERM, _end)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "brain.settings")
    _or_stop(_load)
    _or_stop(_check_port)
    preparing = multiprocessing.get_context("fork").Process(target=_or_stop, args=(_prepare,), daemon=True)
    preparing.start()
    importlib.import_module("brain.urls")  # every page's module, meanwhile
    preparing.join()
    if preparing.exitcode:
        sys.exit(1)
    _serve()


def _load() -> None:
    django.setup()
    from django.conf import settings

    for name in settings.UNKNOWN_VARIABLES:
        _say(f"{name} is set, but Brain has no such setting. It is ignored.")


def _check_port() -> None:
    from django.conf import settings

    try:
        found = socket.getaddrinfo(
            settings.HOST, settings.PORT, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (socket.gaierror, UnicodeError) as error:  # UnicodeError: no name of a host at all
        raise ImproperlyConfigured(f"BRAIN_HOST: there is no address {settings.HOST!r} here.") from error
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen(1)
        except OSError as error:
            raise CommandError(
                f"port {settings.PORT} on {settings.HOST} cannot be used: {error.strerror}.\n"
                "Perhaps another Brain runs there already. Stop what listens there, or choose another port:\n"
                "    BRAIN_PORT=8001 make run"
            ) from error


def _prepare() -> None:
    from django.conf import settings

    from brain import first_start
    from kb.store import stores
    from kb.store.data_format import UnknownFormat
    from kb.store.filesystem import UnsuitableFilesystem

    # Database checks too; the warnings of a deployment where the address says that this is one.
    call_command("check", fail_level="WARNING", deploy=settings.IS_HTTPS, stdout=io.StringIO())
    with first_start.one_at_a_time():
        try:
            first_start.migrate()
            call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=UNUSED_STATIC)
            if not first_start.is_needed():
                return
            made = first_start.provision(organization=None, admin=ADMIN, sample=True, token=True)
        except (UnsuitableFilesystem, UnknownFormat) as error:
            raise CommandError(str(error)) from error
    stores.close_all()
    _welcome(made.password, made.token, settings.PUBLIC_URL)


def _welcome(password: str | None, token: str | None, url: str) -> None:
    if password is None or token is None:
        return  # the account was there, from a start that was cut off
    print(
        f"""
Brain is set up. This is shown once; Brain keeps only hashes of the password and the token.

  Web address:  {url}/
  User name:    {ADMIN}
  Password:     {password}
  MCP token:    {token}

  Connect Claude Code:
  claude mcp add --transport http brain {url}/mcp --header "Authorization: Bearer {token}"
""",
        flush=True,
    )


def _serve() -> NoReturn:
    from gunicorn.app.base import Application

    from brain import housekeeping
    from brain.wsgi import application  # looks at the collected static files, so not earlier

    class Server(Application):
        def init(self, parser: Any, opts: Any, args: Any) -> None:
            return None

        def load_config(self) -> None:
            self.load_config_from_module_name_or_filename("python:brain.gunicorn_config")

        def load(self) -> Callable[..., Any]:
            return application

    housekeeping.start_beside_the_server()
    Server().run()
    sys.exit(0)


def _or_stop(step: Callable[[], None]) -> None:
    try:
        step()
    except LockBusy:
        _say("Brain cannot start: another start or a restore is under way here. Try again after it.")
        sys.exit(1)
    except (BrainError, CommandError, DatabaseError, ImproperlyConfigured, OSError) as error:
        reason = error.message if isinstance(error, BrainError) else str(error)
        _say(f"Brain cannot start: {reason}")
        sys.exit(1)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _end(_number: int, _frame: Any) -> NoReturn:
    # Until gunicorn answers signals itself. Leaving this way also ends the child that prepares.
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
