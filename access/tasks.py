"""The work of ``access`` that nobody asks for. Called by ``manage.py sweep`` and by brokers."""

from datetime import timedelta

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q
from oauth2_provider.models import AccessToken, Application, RefreshToken

from access.models import AuthorizationCode, Connection, RequestOutcome
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


def drop_expired_oauth() -> int:
    """Remove OAuth's codes, tokens and registrations that are of no use any more; returns how many rows.

    A token that was replaced stays as long as one of its family could still be stolen and shown. A registration stays
    for a day, and as long as a connection of its client lives and some months more, since clients keep their ids.
    """
    now = clock.now()
    idle = now - timedelta(days=limits.OAUTH_IDLE_DAYS)
    long_ended = now - timedelta(days=limits.OAUTH_ENDED_REGISTRATION_DAYS)
    lately = Connection.objects.filter(
        Q(revoked_at=None) | Q(revoked_at__gt=long_ended), expires_at__gt=long_ended, client__isnull=False
    )
    removed = (
        # Used ones stay a while: a second use tells that somebody else has the code too.
        AuthorizationCode.objects.filter(expires__lt=now - timedelta(days=limits.OAUTH_USED_CODE_DAYS)),
        RefreshToken.objects.filter(
            Q(revoked__lt=idle)
            | Q(revoked=None, access_token__expires__lt=idle)
            | Q(revoked=None, access_token=None)
        ),
        AccessToken.objects.filter(refresh_token=None, expires__lt=now),
        Application.objects.filter(
            registration_source=Application.RegistrationSource.DCR,
            created__lt=now - timedelta(days=limits.OAUTH_UNUSED_REGISTRATION_DAYS),
        )
        .exclude(id__in=lately.values("client_id"))
        .exclude(id__in=AuthorizationCode.objects.values("application_id")),
    )
    return sum(rows.delete()[0] for rows in removed)
