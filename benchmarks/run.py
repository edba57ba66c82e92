"""Run the benchmarks, print their table and write it as JSON: ``make bench``.

    make bench [TREES=1000,10000] [CORPUS=DIR] [ONLY=NAME,NAME] [JSON=FILE]

A figure stands beside another one of the same run, on the same disk, so that the ratio means something on any machine.
Without CORPUS trees of so many entries are made up. docs/explanation/speed.md says what is measured and why.
"""

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

from benchmarks import corpus
from benchmarks.rows import Row
from tests.server import ROOT, environment

PLACE = ROOT / "test-results"
TREES = "1000,10000"
# What each tree is measured by, and what needs an organization and brings its own folders.
ON_TREES = (
    "searching.common_and_nowhere",
    "searching.few_folders",
    "searching.rebuilding",
    "searching.behind_the_pack",
    "serving.calls",
    "serving.memory",
)
ON_NOTHING = ("listing.wide_folder", "listing.many_folders", "listing.judging", "listing.outlines")


def in_this_process() -> dict[str, Callable[[], list[Row]]]:
    """The benchmarks that need no organization, by name."""
    from benchmarks import diffs, store

    return {
        f"{module.__name__.rpartition('.')[2]}.{one.__name__}": one
        for module in (store, diffs)
        for one in module.BENCHMARKS
    }


def rows_of_organization(names: list[str], source: Path | None) -> Iterator[Row]:
    """What these benchmarks find in a process and a data directory of their own. Raises CalledProcessError."""
    with a_folder() as folder:
        command = [sys.executable, "-m", "benchmarks.on_tree", *names]
        if source is not None:
            command += ["--source", str(source)]
        variables = environment(folder / "data", DJANGO_SETTINGS_MODULE="brain.settings")
        with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield Row(*json.loads(line))
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)


@contextmanager
def a_folder() -> Iterator[Path]:
    """A folder on the disk of the checkout: one for temporary files is often in memory."""
    PLACE.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=PLACE))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def the_tree(asked: argparse.Namespace, size: int) -> Iterator[Path]:
    """The folder of a tree: the caller's, or one of ``size`` entries that is made for the block."""
    if asked.corpus is not None:
        yield asked.corpus
        return
    with a_folder() as folder:
        corpus.make(folder / "tree", size)
        yield folder / "tree"


def measured(asked: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    """Every row with the part of the table it stands in."""
    wanted = asked.only.split(",") if asked.only else []

    def chosen(names: Iterator[str] | tuple[str, ...]) -> list[str]:
        return [name for name in names if not wanted or name in wanted]

    here = in_this_process()
    unknown = [name for name in wanted if name not in (*here, *ON_NOTHING, *ON_TREES)]
    if unknown:
        sys.exit(
            f"There is no benchmark {', '.join(unknown)}. There are: {', '.join((*here, *ON_NOTHING, *ON_TREES))}"
        )
    for name in chosen(tuple(here)):
        for row in here[name]():
            yield "anywhere", row
    if names := chosen(ON_NOTHING):
        for row in rows_of_organization(names, None):
            yield "anywhere", row
    if names := chosen(ON_TREES):
        for size in [0] if asked.corpus else [int(size) for size in asked.trees.split(",")]:
            part = f"on the tree {asked.corpus}" if asked.corpus else f"on a tree of {size:,} entries"
            with the_tree(asked, size) as source:
                for row in rows_of_organization(names, source):
                    yield part, row


def line(row: Row) -> str:
    """A row of the table."""
    met = {None: "", True: "met", False: "MISSED"}[row.is_met]
    return f"{row.name:58} {row.value:>12} {row.baseline:>12} {row.ratio:>9.3f}  {row.goal:>8} {met}".rstrip()


def main() -> int:
    """Measure what was asked for; 1 where a goal was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trees", default=TREES, help=f"how many entries the trees have; {TREES}")
    parser.add_argument("--corpus", type=Path, help="measure on this folder of Markdown instead")
    parser.add_argument("--only", default="", help="names of benchmarks, with commas")
    parser.add_argument("--json", type=Path, default=ROOT / "bench.json", help="where the table goes as JSON")
    asked = parser.parse_args()
    begin = time.monotonic()
    print(f"{'':58} {'figure':>12} {'baseline':>12} {'ratio':>9}  {'goal':>8}")
    rows, last = [], ""
    for part, row in measured(asked):
        if part != last:
            print(f"-- {part}")
            last = part
        rows.append({"part": part, **row._asdict(), "is_met": row.is_met})
        print(line(row), flush=True)
    asked.json.write_text(json.dumps(rows, indent=2) + "\n")
    missed = [row for row in rows if row["is_met"] is False]
    judged = [row for row in rows if row["is_met"] is not None]
    seconds = time.monotonic() - begin
    print(f"{len(judged) - len(missed)} of {len(judged)} goals met in {seconds:.0f} s; {asked.json}")
    return 1 if missed else 0


if __name__ == "__main__":
    django.setup()
    logging.disable(logging.CRITICAL)
    sys.exit(main())
