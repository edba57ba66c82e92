"""What becomes of good and of spoilt diffs: here, and in the programs that one might use instead.

    python -m benchmarks.patching DIR [--pages 60] [--seed 1]      spoilt diffs of the Markdown pages below DIR
    python -m benchmarks.patching --pairs 20000 [--seed 1]         good diffs of random texts, by three programs

Right is the text that was meant, to the byte. Wrong is another text and no refusal; "as said" are those of the wrong
ones that nobody could tell, since what is left of the diff is a good diff of something else.
"""

import argparse
import os
import subprocess
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import whatthepatch

from core import text
from core.errors import BrainError
from kb.patching.applying import apply_diff
from tests.patching.mutations import MUTATIONS
from tests.patching.pages import changed
from tests.patching.plain import plain_apply
from tests.patching.programs import FILENAME, WRITERS, difflib_diff
from tests.patching.texts import random_pair

# The text afterwards, or None for a refusal.
Program = Callable[[str, str], str | None]
OUTCOMES = ("right", "refused", "wrong")
# Of the wrong ones those that do what the spoilt diff says, and says with right counts: nobody could tell.
TO_THE_LETTER = "as said"


def brain(page: str, diff: str) -> str | None:
    """This project."""
    try:
        cleaned = text.clean_content(diff, field="diff")
        return apply_diff(page, cleaned, path=f"Engineering/{FILENAME}").text
    except BrainError:
        return None


def whatthepatch_alone(page: str, diff: str) -> str | None:
    """The package's own parse_patch and apply_diff; the newline at the end, which it loses, is given back."""
    try:
        (parsed,) = whatthepatch.parse_patch(diff)
        lines = whatthepatch.apply_diff(parsed, page.removesuffix("\n").split("\n"))
    except Exception:  # noqa: BLE001 - it raises what it comes across
        return None
    return "\n".join(lines) + ("\n" if page.endswith("\n") else "")


def gnu_patch(*options: str) -> Program:
    """GNU patch on a file of this name."""
    return _in_a_folder(
        ["patch", "--silent", "--force", "--no-backup-if-mismatch", "--reject-file=-", *options, FILENAME]
    )


def git_apply(*options: str) -> Program:
    """git apply outside a repository."""
    return _in_a_folder(["git", "apply", "--whitespace=nowarn", *options, "-"])


def _in_a_folder(command: list[str]) -> Program:
    def run(page: str, diff: str) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / FILENAME
            file.write_bytes(page.encode())
            environment = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CEILING_DIRECTORIES": "/"}
            done = subprocess.run(
                command, check=False, input=diff.encode(), cwd=folder, env=environment, capture_output=True
            )
            if done.returncode or not file.exists():
                return None
            return file.read_bytes().decode("utf-8", "replace")

    return run


PROGRAMS: dict[str, Program] = {
    "Brain": brain,
    "whatthepatch": whatthepatch_alone,
    "GNU patch, no fuzz": gnu_patch("--fuzz=0"),
    "GNU patch": gnu_patch(),
    "git apply": git_apply(),
    "git apply --recount": git_apply("--recount"),
}


def spoilt(folder: Path, pages: int, seed: int) -> dict[str, dict[str, Counter[str]]]:
    """Outcomes by mutation and program: each mutation once for each page."""
    random = Random(seed)
    files = sorted(folder.rglob("*.md"))
    random.shuffle(files)
    texts = [text.clean_content(file.read_text("utf-8")) for file in files[:pages]]
    table: dict[str, dict[str, Counter[str]]] = {
        name: {program: Counter() for program in PROGRAMS} for name in MUTATIONS
    }
    for page in texts:
        meant = changed(page, random)
        diff = difflib_diff(page, meant)
        for name, mutation in MUTATIONS.items():
            mutated = mutation(diff, random) if diff else None
            if mutated is None:
                continue
            for program, apply in PROGRAMS.items():
                result = apply(page, mutated)
                table[name][program][_outcome(result, meant)] += 1
                if result not in (None, meant) and result == plain_apply(page, mutated):
                    table[name][program][TO_THE_LETTER] += 1
    return table


def good(pairs: int, seed: int) -> dict[str, Counter[str]]:
    """Outcomes here by the program that wrote the diff and the lines of context in it."""
    random = Random(seed)
    table: dict[str, Counter[str]] = {}
    for _ in range(pairs):
        old, new = random_pair(random)
        for writer, write in WRITERS.items():
            context = random.choice((0, 1, 3, 3))
            diff = write(old, new, context)
            if diff:
                outcomes = table.setdefault(f"{writer}, context {context}", Counter())
                outcomes[_outcome(brain(old, diff), new)] += 1
    return table


def _outcome(result: str | None, meant: str) -> str:
    if result is None:
        return "refused"
    return "right" if result == meant else "wrong"


def _row(name: str, counts: Counter[str]) -> str:
    return f"{name:<44}" + "".join(f"{counts[outcome]:>9}" for outcome in (*OUTCOMES, TO_THE_LETTER))


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':<44}" + "".join(f"{outcome:>9}" for outcome in (*OUTCOMES, TO_THE_LETTER)))
    if asked.pairs:
        for name, counts in sorted(good(asked.pairs, asked.seed).items()):
            print(_row(name, counts))
    if asked.folder:
        table = spoilt(asked.folder, asked.pages, asked.seed)
        for name, by_program in table.items():
            print(_row(name, by_program["Brain"]))
        print()
        for program in PROGRAMS:
            print(_row(program, sum((by_program[program] for by_program in table.values()), Counter())))


if __name__ == "__main__":
    main()
