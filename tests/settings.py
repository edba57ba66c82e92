"""Brain's settings for the tests: a data directory of this process alone, and no manifest of static files.

The environment is set before the settings read it, so nothing of a real installation is opened or made.
"""

import atexit
import os
import shutil
import tempfile

for _name in [name for name in os.environ if name.startswith("BRAIN_")]:
    del os.environ[_name]
_data_directory = tempfile.mkdtemp(prefix="brain-tests-")
os.environ["BRAIN_DATA_DIR"] = _data_directory
atexit.register(shutil.rmtree, _data_directory, ignore_errors=True)

from brain.settings import *  # noqa: E402, F403
from brain.settings import DATA_DIR, DATABASES, STATIC_ROOT, STORAGES  # noqa: E402

# A file, as in production: health, server processes and locks need one.
DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
PASSWORD_HASHERS = ["tests.hashers.QuickArgon2"]
STATIC_ROOT.mkdir()
