"""Run the benchmarks, print their table and write it as JSON: ``make bench``.

    python -m benchmarks.run [NAME ...]

A figure stands beside another one of the same run, on the same disk, so that the ratio means something on any machine.
Without names all of them run.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

from benchmarks.rows import Row

RESULTS = Path(__file__).resolve().parent.parent / "test-results" / "benchmarks.json"


def benchmarks() -> dict[str, Callable[[], list[Row]]]:
    """Every benchmark by its name. Each is a function that returns rows."""
    from benchmarks import store

    return {f"store.{one.__name__}": one for one in store.BENCHMARKS}


def line(row: Row) -> str:
    """A row of the table."""
    met = {None: "", True: "met", False: "MISSED"}[row.is_met]
    return f"{row.name:54} {row.value:>12} {row.baseline:>12} {row.ratio:>9.2f}  {row.goal:>7} {met}".rstrip()


def main() -> int:
    """Run what was asked for; 1 where a goal was missed."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = benchmarks()
    arguments.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names = arguments.parse_args().names or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        arguments.error(f"there is no benchmark {', '.join(unknown)}")
    print(f"{'':54} {'value':>12} {'baseline':>12} {'ratio':>9}  {'goal':>7}")
    rows: list[Row] = []
    for name in names:
        for row in known[name]():
            rows.append(row)
            print(line(row), flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([{**row._asdict(), "is_met": row.is_met} for row in rows], indent=2) + "\n")
    return 1 if any(row.is_met is False for row in rows) else 0


if __name__ == "__main__":
    django.setup()
    logging.disable(logging.CRITICAL)
    sys.exit(main())
