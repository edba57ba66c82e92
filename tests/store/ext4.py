"""A rig on a real ext4: before a step the image is copied as the disk has it, and a store starts on the copy."""

import os
import shutil
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from kb.store import steps
from tests.store import disks
from tests.store.changes import Change, Create, MakeFolder, make, request_of
from tests.store.children import Child, in_child
from tests.store.cuts import CHANGES, Findings, problems_after_a_cut, small_constants
from tests.store.small import Small

MEGABYTES = 24
CHECKPOINT_EVERY = 4
SEED: list[Change] = [
    Create("a.md", "first\n"),
    Create("b.md", "other\n"),
    MakeFolder("F"),
    Create("F/c.md", "third\n"),
]


def cut_an_image(place: Path, *, changes: int, stride: int) -> Findings:
    """Make so many changes on an ext4 image; cut it before every ``stride``-th step and start from what is left."""
    findings = Findings()
    image, copy = place / "image", place / "copy"
    with pytest.MonkeyPatch.context() as patched:
        small_constants(patched)
        with disks.ext4(image, place / "disk", megabytes=MEGABYTES, block=4096) as disk:
            small = Small(disk / "data").provision().without_spare_shards()
            in_child(partial(_seed, small))
            os.sync()
            writer = Child(partial(_write, small, changes, stride))
            acknowledged: list[str] = []
            try:
                while True:
                    word, what = writer.hear()
                    if word == "end":
                        return findings
                    if word == "saved":
                        acknowledged.append(what)
                        continue
                    shutil.copyfile(image, copy)
                    with disks.mounted(copy, place / "elsewhere") as elsewhere:
                        problems = problems_after_a_cut(Small(elsewhere / "data"), acknowledged, None)
                    findings.add(f"cut before {what}", problems)
                    writer.tell("go on")
            finally:
                writer.kill()
    raise AssertionError


def _seed(small: Small) -> None:
    with small.opened() as store:
        for number, change in enumerate(SEED):
            make(store, change, f"seed {number}")


def _write(small: Small, changes: int, stride: int, connection: Connection) -> None:
    met = 0

    def stop(step: str, place: str) -> None:
        nonlocal met
        met += 1
        if met % stride == 0:
            connection.send(("done", ("stopped", f"{step} {place}")))
            connection.recv()

    store = small.open()
    steps.hook = stop
    for number, change in enumerate(CHANGES[:changes]):
        make(store, change, f"change {number}")
        connection.send(("done", ("saved", request_of(f"change {number}").key)))
        if number % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            store.checkpoint()
    steps.hook = None
    connection.send(("done", ("end", "")))
