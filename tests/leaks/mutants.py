"""Take each question to the authorizer out of the code, one at a time, and see the tests fail.

``python -m tests.leaks.mutants`` (``make mutants``) works on a copy of the checkout. A statement ``….require(…)`` or
``….require_administrator()`` is left out; ``….can_read(…)`` and ``….is_visible(…)`` become ``True``. Exit code 1 and a
list where a change went unnoticed.
"""

import ast
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHERE = ("access", "kb", "backup", "mcpapi", "web", "brain")
LEFT_OUT = frozenset({"require", "require_administrator"})
MADE_TRUE = frozenset({"can_read", "is_visible"})
# What thinks, and is not itself a question from a service: its rules have tests of their own.
THE_AUTHORIZER = Path("access/authorizer.py")
# The nearest tests first; a change that they do not notice meets the others.
NEAR = ["tests/access", "tests/kb", "tests/mcpapi/test_hidden_is_missing.py"]
FAR = [
    "tests/leaks",
    "tests/web",
    "tests/desk",
    "tests/search",
    "tests/patching",
    "tests/operations/test_purge.py",
]
PATIENCE_SECONDS = 1_800


@dataclass(frozen=True, slots=True)
class Mutant:
    """One question, and the file without it."""

    file: Path
    line: int
    was: str
    text: str


def mutants() -> Iterator[Mutant]:
    """Every question to a sight outside the authorizer, in the order of the files."""
    for top in WHERE:
        for path in sorted((ROOT / top).rglob("*.py")):
            file = path.relative_to(ROOT)
            if file != THE_AUTHORIZER and "migrations" not in file.parts:
                yield from _of_file(file, path.read_text("utf-8"))


def _of_file(file: Path, text: str) -> Iterator[Mutant]:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        call = node.value if isinstance(node, ast.Expr) else node
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        is_statement = isinstance(node, ast.Expr)
        if is_statement and call.func.attr in LEFT_OUT and "budget" not in ast.unparse(call.func):
            yield _without(file, text, node, "pass")
        elif not is_statement and call.func.attr in MADE_TRUE:
            yield _without(file, text, node, "True")


def _without(file: Path, text: str, node: ast.AST, instead: str) -> Mutant:
    was = ast.get_source_segment(text, node)
    assert isinstance(node, ast.Expr | ast.Call)
    assert was is not None
    assert node.end_lineno is not None
    lines = text.encode().splitlines(keepends=True)
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return Mutant(file, node.lineno, " ".join(was.split()), (before + instead.encode() + after).decode())


def is_noticed(checkout: Path, mutant: Mutant) -> str | None:
    """The first test that fails without the question; None if none does."""
    file = checkout / mutant.file
    honest = file.read_text("utf-8")
    file.write_text(mutant.text, "utf-8")
    try:
        for tests in (NEAR, FAR):
            run = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", "-n", "2", *tests],
                cwd=checkout,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
            )
            failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            if run.returncode != 0:
                return failed[0].partition(" - ")[0].split(" ", 1)[1] if failed else "collection"
    finally:
        file.write_text(honest, "utf-8")
    return None


def main() -> int:
    """All of them, one line each as it is tried."""
    unnoticed = 0
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="brain-mutants-") as place:
        checkout = Path(place) / "checkout"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".git", ".venv", "var", "node_modules"))
        for mutant in mutants():
            where = f"{mutant.file}:{mutant.line}"
            if wanted and not any(where.startswith(start) for start in wanted):
                continue
            noticed = is_noticed(checkout, mutant)
            unnoticed += noticed is None
            sys.stdout.write(f"{where}  {mutant.was}  {'NOT NOTICED' if noticed is None else noticed}\n")
            sys.stdout.flush()
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
