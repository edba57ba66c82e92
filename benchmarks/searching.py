"""Searching beside what a search could cost at least: reading fifty files, one look through the texts; and rg."""

import mmap
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import stringzilla

from access.principals import Principal
from benchmarks.corpus import NOWHERE, common_word
from benchmarks.rows import Row, compared, median, milliseconds
from benchmarks.timing import in_turn, timed
from benchmarks.tree import Tree
from core.types import FolderLocator
from kb.search import pack
from kb.search.engines import engine_of
from kb.services.create_entry import create_entry
from kb.services.search_entries import search_entries
from kb.store import derived

TIMES = 15
PAGE = 50
WRITES = 1_000
LARGE_TREE = 100_000
ONE_OF = 100


def search(caller: Principal, query: str) -> list[str]:
    """The paths on the first page."""
    return [result.entry.path for result in search_entries(caller, query, limit=PAGE).items]


def common_and_nowhere(tree: Tree) -> list[Row]:
    """A page of a word that most entries hold, and a text that none holds; each beside plain work and beside rg."""
    common = common_word(tree.files)
    found = [tree.content / path for path in search(tree.root, common)]
    assert found
    assert not search(tree.root, NOWHERE)
    plain, nothing = partial(read_all, found), RawFind(tree, NOWHERE)
    page, reads = in_turn(partial(search, tree.root, common), plain, times=3 * TIMES)
    none, raw = in_turn(partial(search, tree.root, NOWHERE), nothing, times=3 * TIMES)
    rows = [
        compared(f"search, {len(found)} of a common word, beside reading them", page, reads, median, "<= 2"),
        compared("search, no hit, beside one find in memory", none, raw, median, "<= 1.5"),
    ]
    if shutil.which("rg"):
        page, rg_page = in_turn(
            partial(search, tree.root, common), partial(rg, tree, common), times=TIMES // 3
        )
        none, rg_none = in_turn(
            partial(search, tree.root, NOWHERE), partial(rg, tree, NOWHERE), times=TIMES // 3
        )
        bound = 1 / 5 if tree.entries >= LARGE_TREE else 1 / 6
        rows += [
            compared("search, common word, beside rg -l -i", page, rg_page, median, f"<= {1 / 15:.3f}"),
            compared("search, no hit, beside rg -l -i", none, rg_none, median, f"<= {bound:.3f}"),
        ]
    return rows


def few_folders(tree: Tree) -> list[Row]:
    """Without a hit: somebody who reads every hundredth folder, beside somebody who reads all."""
    some = tree.folders[:: max(1, min(ONE_OF, len(tree.folders)))]
    few = tree.reader_of("few", some)
    assert not search(few, NOWHERE)
    little, all_of_it = in_turn(
        partial(search, few, NOWHERE), partial(search, tree.root, NOWHERE), times=3 * TIMES
    )
    name = f"search, no hit, {len(some)} of {len(tree.folders)} folders visible"
    return [compared(name, little, all_of_it, median, "<= 0.05")]


def behind_the_pack(tree: Tree) -> list[Row]:
    """Searches right after 1,000 saves that are in no pack yet, beside those before; and whether each save is found."""
    quiet = partial(search, tree.root, NOWHERE)
    clean = in_turn(quiet, times=TIMES)[0]
    for number in range(WRITES):
        create_entry(
            tree.root,
            None,
            FolderLocator(),
            filename=f"fresh-{number:04d}.md",
            type="note",
            title=f"Fresh {number}",
            content=f"# Fresh {number}\n\nThe word fresh{number:04d}x stands in this one alone.\n",
        )
    first = timed(quiet)
    changed = in_turn(quiet, times=TIMES)[0]
    step = max(1, WRITES // 100)
    asked = range(0, WRITES, step)
    stale = sum(search(tree.root, f"fresh{number:04d}x") != [f"fresh-{number:04d}.md"] for number in asked)
    return [
        compared(f"search, no hit, behind {WRITES:,} saves", changed, clean, median, "<= 1.5"),
        Row(
            f"the first search behind {WRITES:,} saves",
            milliseconds(first),
            milliseconds(median(clean)),
            first / median(clean),
        ),
        Row(
            "stale answers to searches for those saves",
            str(stale),
            str(len(asked)),
            stale / len(asked),
            "<= 0",
        ),
    ]


def rebuilding(tree: Tree) -> list[Row]:
    """Making the pack anew, beside reading every file of the tree."""
    engine = engine_of(tree.world.organization_id)
    built, read = in_turn(
        partial(engine._build, wait_seconds=0), partial(read_all, tree.files), times=3, warm=1
    )
    return [compared("pack made anew beside reading all files", built, read, median, "<= 2")]


BENCHMARKS: Sequence[Callable[[Tree], list[Row]]] = (
    common_and_nowhere,
    few_folders,
    rebuilding,
    behind_the_pack,
)


class RawFind:
    """One look for a text through all of the pack's bytes."""

    def __init__(self, tree: Tree, text: str) -> None:
        newest = derived.derived_names(tree.layout, pack.SUFFIX)[-1]
        path = tree.top / "private" / derived.CACHE / derived.SEARCH / newest
        with path.open("rb") as file:
            self._view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self._needle = text.encode()

    def __call__(self) -> int:
        """Where it is."""
        return int(stringzilla.find(self._view, self._needle))


def read_all(files: Sequence[Path]) -> int:
    """Read files without a look at what is in them; how many bytes there were."""
    size = 0
    for file in files:
        with open(file, "rb", buffering=0) as opened:
            size += len(opened.read())
    return size


def rg(tree: Tree, text: str) -> list[str]:
    """The files in which rg finds a literal text, in any case."""
    command = ["rg", "--files-with-matches", "--ignore-case", "--fixed-strings", "--no-ignore", text, "."]
    done = subprocess.run(command, cwd=tree.content, check=False, capture_output=True, text=True)
    return done.stdout.splitlines()
