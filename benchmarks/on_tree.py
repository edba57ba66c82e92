"""Run benchmarks on an organization, in a process whose data directory is made for it: started by benchmarks.run.

    python -m benchmarks.on_tree [--source DIR] NAME ...

Writes one JSON array a row on standard output.
"""

import argparse
import json
import logging
from collections.abc import Callable
from pathlib import Path

import django

from benchmarks.rows import Row


def main() -> None:
    """Import the tree and measure."""
    from benchmarks import listing, searching, serving
    from benchmarks.tree import Tree

    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path)
    parser.add_argument("names", nargs="+")
    asked = parser.parse_args()
    known: dict[str, Callable[[Tree], list[Row]]] = {
        f"{module.__name__.rpartition('.')[2]}.{one.__name__}": one
        for module in (listing, searching, serving)
        for one in module.BENCHMARKS
    }
    tree = Tree(asked.source)
    for name, benchmark in known.items():
        if name in asked.names:
            for row in benchmark(tree):
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    django.setup()
    logging.disable(logging.CRITICAL)
    main()
