"""Unified diffs as real programs write them."""

import difflib
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

FILENAME = "deployment.md"
BARE = "\n\\ No newline at end of file\n"

# Old text, new text, lines of context.
Writer = Callable[[str, str, int], str]


def difflib_diff(old: str, new: str, context: int = 3) -> str:
    """What Python's difflib writes, with the mark of a missing newline that it leaves to its callers."""
    written = difflib.unified_diff(lines(old), lines(new), f"a/{FILENAME}", f"b/{FILENAME}", n=context)
    return "".join(line if line.endswith("\n") else line + BARE for line in written)


def gnu_diff(old: str, new: str, context: int = 3) -> str:
    """What GNU diff writes, with the times of the files behind their names."""
    return _written(["diff", "--text", f"-U{context}"], old, new)


def git_diff(old: str, new: str, context: int = 3) -> str:
    """What git writes, with its own lines before the names."""
    command = ["git", "diff", "--no-index", "--no-prefix", "--text", "--no-color", f"-U{context}"]
    return _written(command, old, new)


WRITERS: dict[str, Writer] = {"difflib": difflib_diff, "GNU diff": gnu_diff, "git diff": git_diff}


def lines(text: str) -> list[str]:
    """The lines with their LF; a line ends nowhere else."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]


def _written(command: list[str], old: str, new: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for side, text in (("a", old), ("b", new)):
            (Path(folder) / side).mkdir()
            (Path(folder) / side / FILENAME).write_bytes(text.encode())
        written = subprocess.run(
            [*command, f"a/{FILENAME}", f"b/{FILENAME}"],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
        )
    assert written.returncode in (0, 1), written.stderr
    return written.stdout.decode()
