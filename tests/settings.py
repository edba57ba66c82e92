"""Brain's settings for the tests: a data directory of this process alone, and no manifest of static files.

The environment is set before the settings read it, so nothing of a real installation is opened or made.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "brain-tests-"


def _remove_what_dead_processes_left() -> None:
    # A process that ends without its exit functions, as those of pytest-xdist do, leaves its directory behind.
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        process = left.name.removeprefix(PREFIX).partition("-")[0]
        if process.isdigit() and not Path(f"/proc/{process}").exists():
            shutil.rmtree(left, ignore_errors=True)


_remove_what_dead_processes_left()
for _name in [name for name in os.environ if name.startswith("BRAIN_")]:
    del os.environ[_name]
_data_directory = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
os.environ["BRAIN_DATA_DIR"] = _data_directory
atexit.register(shutil.rmtree, _data_directory, ignore_errors=True)

from brain.settings import *  # noqa: E402, F403
from brain.settings import DATA_DIR, DATABASES, STATIC_ROOT, STORAGES  # noqa: E402

# A file, as in production: health, server processes and locks need one.
DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
PASSWORD_HASHERS = ["tests.hashers.QuickArgon2"]
STATIC_ROOT.mkdir()
