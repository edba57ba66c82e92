"""The process that renders: it does its work, can do nothing else, and never outlives its time or its server."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import limits
from kb import render_process
from kb.render_process import Busy, RenderProcess

ROGUE = "import sys; sys.path.insert(0, sys.argv[1]); from tests.rendering.rogue import main; main()"
# Endless for any machine: a hundred thousand elements in each other.
TOO_MUCH = "<div>" * 150_000


@pytest.fixture
def process() -> Iterator[RenderProcess]:
    process = RenderProcess()
    yield process
    process.close()


@pytest.fixture
def reasons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why texts were not rendered, as it is logged."""
    told: list[str] = []

    class Logger:
        def warning(self, _event: str, *, reason: str, bytes: int) -> None:
            told.append(reason)

    monkeypatch.setattr(render_process, "logger", Logger())
    return told


def test_texts_become_html_one_after_the_other_in_one_process(process: RenderProcess) -> None:
    first = process.render("# One\n\n[a](b.md)", "Eng")
    pid = _pid(process)
    second = process.render("", "Eng")

    assert first is not None
    assert first.opening == '<h2 id="md-one">One</h2>\n'
    assert 'href="/files/Eng/b.md"' in first.body
    assert second is not None
    assert (second.body, _pid(process)) == ("", pid)


def test_a_text_that_takes_too_long_is_given_up_and_the_next_one_rendered(
    process: RenderProcess, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    assert process.render("quick", "") is not None
    slow = _pid(process)
    monkeypatch.setattr(limits, "RENDER_SECONDS", 0.2)

    assert process.render(TOO_MUCH, "") is None

    monkeypatch.undo()
    assert reasons == ["ended with -9"]
    assert not _is_running(slow)
    assert process.render("next", "") is not None


def test_a_text_that_breaks_a_library_is_given_up_with_the_kind_of_error(
    process: RenderProcess, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    broken = render_process.PROGRAM.replace(
        "main()",
        "import kb.render_program; kb.render_program.to_markup = lambda *a: 1/0 if a[0] == 'x' else None; main()",
    )
    monkeypatch.setattr(render_process, "PROGRAM", broken)

    assert process.render("x", "") is None

    assert reasons == ["ZeroDivisionError"]


@pytest.mark.parametrize(
    ("deed", "outcome"),
    [
        ("open a file", "OSError"),
        ("open a socket", "OSError"),
        ("open a pipe", "OSError"),
        ("copy an open file", "OSError"),
        ("allocate", "MemoryError"),
        ("arguments", "['-c', '{project}']"),
        ("working directory", "/"),
        ("own session", "True"),
        ("die", "ended with -9"),
        ("chatter", "ended with -9"),
    ],
)
def test_the_process_can_do_nothing_but_render(
    process: RenderProcess, monkeypatch: pytest.MonkeyPatch, reasons: list[str], deed: str, outcome: str
) -> None:
    monkeypatch.setattr(render_process, "PROGRAM", ROGUE)

    assert process.render(deed, "") is None

    assert reasons == [outcome.format(project=render_process.PROJECT)]


def test_the_process_has_no_environment(
    process: RenderProcess, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    monkeypatch.setenv("BRAIN_SOMETHING", "secret")
    monkeypatch.setattr(render_process, "PROGRAM", ROGUE)

    process.render("environment", "")

    assert reasons in (["[]"], ["['LC_CTYPE']"])  # what Python itself puts there


def test_a_process_that_hangs_without_using_the_machine_is_ended_too(
    process: RenderProcess, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    monkeypatch.setattr(render_process, "PROGRAM", ROGUE)
    process.render("working directory", "")
    monkeypatch.setattr(limits, "RENDER_SECONDS", 0.2)

    assert process.render("hang", "") is None

    assert reasons[-1] == "ended with -9"


def test_a_program_that_does_not_start_is_a_text_that_is_not_rendered(
    process: RenderProcess, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    monkeypatch.setattr(render_process, "PROGRAM", "raise SystemExit(3)")

    assert process.render("a", "") is None
    assert reasons == ["ChildProcessError"]

    monkeypatch.undo()
    assert process.render("a", "") is not None


def test_a_process_that_died_between_two_texts_is_replaced(process: RenderProcess) -> None:
    process.render("a", "")
    os.kill(_pid(process), signal.SIGKILL)
    _wait_until_gone(_pid(process))

    assert process.render("b", "") is not None


def test_threads_get_each_their_own_text(process: RenderProcess) -> None:
    found: dict[int, str] = {}

    def ask(number: int) -> None:
        for _ in range(5):
            markup = process.render(f"text {number}", "")
            assert markup is not None
            found[number] = markup.body

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {number: f"<p>text {number}</p>\n" for number in range(8)}


def test_who_waits_too_long_for_the_turn_is_told(
    process: RenderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RENDER_SECONDS", 0.05)
    with process._lock, pytest.raises(Busy):
        process.render("a", "")


def test_a_forked_server_process_starts_its_own(process: RenderProcess) -> None:
    """As gunicorn forks its workers: the shared object must not talk to the parent's process."""
    shared = render_process.the_process
    shared.render("before", "")
    parents = _pid(shared)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            markup = shared.render("in the child", "")
            assert markup is not None
            os.write(writing, f"{_pid(shared)} {markup.body}".encode())
            shared.close()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        answer = answers.read().decode()
    os.waitpid(child, 0)

    own, _, html = answer.partition(" ")
    assert html == "<p>in the child</p>\n"
    assert int(own) != parents
    assert _is_running(parents)
    assert shared.render("after", "") is not None
    assert _pid(shared) == parents
    shared.close()


def test_the_process_ends_with_its_server_however_that_ends() -> None:
    program = (
        "from kb.render_process import the_process as p; import time;"
        "p.render('a', ''); print(p._process.pid, flush=True); time.sleep(600)"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=render_process.PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    renderer = int(server.stdout.readline())
    assert _is_running(renderer)

    server.kill()
    server.wait()
    server.stdout.close()

    _wait_until_gone(renderer)


def test_a_process_without_a_server_does_not_go_on_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own alarm ends it in the middle of a text when nobody is left to kill it."""
    program = render_process.PROGRAM.replace(
        "main()",
        "import kb.render_program as r; r.limits.RENDER_SECONDS = r.LEFT_ALONE_SECONDS = 0.1; main()",
    )
    monkeypatch.setattr(render_process, "PROGRAM", program)
    process = RenderProcess()
    process.render("a", "")
    popen = process._process
    assert popen is not None

    assert process.render(TOO_MUCH, "") is None

    assert popen.returncode == -signal.SIGALRM


def _pid(process: RenderProcess) -> int:
    assert process._process is not None
    return process._process.pid


def _is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 60
    while _is_running(pid):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.01)
