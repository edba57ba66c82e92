"""What the server calls: `gunicorn --config python:brain.gunicorn_config brain.wsgi`."""

import importlib
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from brain.unread_body import SenderMayFinish
from brain.whole_body import OnlyWholeBodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "brain.settings")
application = SenderMayFinish(OnlyWholeBodies(get_wsgi_application()))
# Every page's module now, once for all workers, and not at somebody's first request.
importlib.import_module(settings.ROOT_URLCONF)
