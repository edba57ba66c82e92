"""Killing a process at every single durable step of what it does, and looking at what it left."""

import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from kb.store import steps


def killed_at_every_step(
    prepared: Path,
    place: Path,
    act: Callable[[Path], object],
    *,
    skip: Callable[[str, str], bool] = lambda step, place: False,
) -> Iterator[tuple[Path, str]]:
    """For each step of ``act`` a copy of ``prepared`` that a process was killed in, just before that step.

    Yields the copy and the step's name, and the last time, with an empty name, the copy in which ``act`` came through.
    Nobody is killed at steps of which ``skip`` says that they are like another one.
    """
    number = 0
    while True:
        number += 1
        copy = place / f"kill-{number}"
        shutil.copytree(prepared, copy, symlinks=True)
        step = _run(copy, act, number, skip)
        yield copy, step
        shutil.rmtree(copy)
        if not step:
            return


def _run(copy: Path, act: Callable[[Path], object], number: int, skip: Callable[[str, str], bool]) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            steps.hook = _killer(number, writer, skip)
            act(copy)
            status = 0
        except BaseException:  # noqa: BLE001 - the child has nobody to raise to
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        step = told.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return step
    assert os.WEXITSTATUS(status) == 0, "the work failed by itself"
    return ""


def _killer(number: int, told: int, skip: Callable[[str, str], bool]) -> Callable[[str, str], None]:
    main = threading.get_ident()
    seen = 0

    def hook(step: str, place: str) -> None:
        nonlocal seen
        if threading.get_ident() != main or skip(step, place):
            return
        seen += 1
        if seen == number:
            os.write(told, f"{step} {place}".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    return hook
