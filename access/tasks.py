"""The work of ``access`` that nobody asks for. Called by ``manage.py sweep`` and by brokers."""

from datetime import timedelta

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session

from access.models import RequestOutcome
from core import clock, limits


def drop_expired_outcomes() -> int:
    """Remove what requests to change access led to, once it is past its time; returns how many there were."""
    oldest = clock.now() - timedelta(days=limits.OUTCOME_DAYS)
    return RequestOutcome.objects.filter(at__lte=oldest).delete()[0]


def drop_expired_sessions() -> int:
    """Remove the sessions that ended by themselves; returns how many there were."""
    return Session.objects.filter(expire_date__lt=clock.now()).delete()[0]


def drop_past_sign_ins() -> int:
    """Forget the wrong passwords that pause nobody any more; returns for how many names and addresses there were."""
    past = clock.now() - settings.AXES_COOLOFF_TIME
    dropped: int = AccessAttempt.objects.filter(attempt_time__lt=past).delete()[0]
    return dropped
