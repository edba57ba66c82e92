"""Refuse Django's command: it makes accounts of another shape, without an organization and past the audit."""

from typing import Any, NoReturn

from django.core.management.base import BaseCommand

from brain.management.shell_command import Refused

SENTENCE = "Brain has administrators instead. Make one with `manage.py create_user USERNAME --admin`."


class Command(BaseCommand):
    """``createsuperuser``: says what to call instead, whatever it is given."""

    help = "Not for Brain: use create_user USERNAME --admin."
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Called by manage.py. The arguments are those of Django's command, and none of them matters."""
        super().run_from_argv(argv[:2])

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse."""
        raise Refused(SENTENCE)
