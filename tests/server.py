"""A whole Brain in processes of its own, on a free port of the loopback address, as a person starts it."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 120
PASSWORD = re.compile(r"^ *Password: +(\S+)$", re.MULTILINE)
TOKEN = re.compile(r"^ *MCP token: +(brn_\S+)$", re.MULTILINE)


def environment(data_dir: Path, **settings: str) -> dict[str, str]:
    """The variables of a child process that is no test: Brain's own settings, and nothing of make or Django's."""
    ours = ("BRAIN_", "MAKE", "MFLAGS", "DJANGO_SETTINGS_MODULE", "PYTEST")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return inherited | {"BRAIN_DATA_DIR": str(data_dir)} | settings


def manage(data_dir: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of Brain's commands to its end, as from a shell."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(data_dir),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class RunningBrain:
    """A server that was started. ``output`` is what a person at the terminal has read so far, ``log`` the JSON."""

    def __init__(self, process: subprocess.Popen[str], url: str, data_dir: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self.url = url
        self._said: dict[str, list[str]] = {"output": [], "log": []}
        self._readers = [
            threading.Thread(target=self._listen, args=(process.stdout, "output"), daemon=True),
            threading.Thread(target=self._listen, args=(process.stderr, "log"), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def output(self) -> str:
        return "".join(self._said["output"])

    @property
    def log(self) -> str:
        return "".join(self._said["log"])

    @property
    def password(self) -> str:
        """The administrator's, as the first start printed it."""
        return _only(PASSWORD.findall(self.output))

    @property
    def token(self) -> str:
        """The first MCP token, as the first start printed it."""
        return _only(TOKEN.findall(self.output))

    def wait_until_ready(self) -> None:
        """Until ``/readyz`` says so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=10) as response:
                    if response.read() == b"ok":
                        return
            except (OSError, urllib.error.URLError):
                pass
            if self.process.poll() is not None:
                raise AssertionError(
                    f"the server ended with {self.process.returncode}:\n{self.output}{self.log}"
                )
            time.sleep(0.05)
        raise AssertionError(f"the server does not get ready:\n{self.output}{self.log}")

    def stop(self, *, whole_group: bool = False) -> int:
        """SIGTERM to the process that was started, or to its group; the exit status, as ``Popen`` has it."""
        if self.process.poll() is None:
            if whole_group:
                os.killpg(self.process.pid, signal.SIGTERM)
            else:
                self.process.terminate()
        status = self.process.wait(PATIENCE_SECONDS)
        for reader in self._readers:
            reader.join(PATIENCE_SECONDS)
        return status

    def _listen(self, stream: Iterator[str], name: str) -> None:
        for line in stream:
            self._said[name].append(line)


@contextmanager
def running_brain(
    data_dir: Path, *, command: tuple[str, ...] = (), **settings: str
) -> Iterator[RunningBrain]:
    """A ready server on this data directory; ended, with all it started, at the end of the block."""
    port = free_port()
    process = subprocess.Popen(
        command or (sys.executable, "-m", "brain.serve"),
        cwd=ROOT,
        env=environment(data_dir, BRAIN_PORT=str(port), **settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    brain = RunningBrain(process, f"http://127.0.0.1:{port}", data_dir)
    try:
        brain.wait_until_ready()
        yield brain
        brain.stop()
    finally:
        # Whatever a failed test left of the group that this block began.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(PATIENCE_SECONDS)


def _only(found: list[str]) -> str:
    assert len(found) == 1, f"shown {len(found)} times"
    return found[0]
