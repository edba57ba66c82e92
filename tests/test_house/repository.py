"""The repository's own files, as the tests about them see it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FLOORS = ("access", "backup", "brain", "chat", "core", "kb", "mcpapi", "web")
NOT_OURS = {"node_modules", "var", "__pycache__", "test-results"}


def files(*suffixes: str, below: str = "") -> list[Path]:
    """Files of the checkout with these suffixes (all of them without), without what running and testing leave."""
    return sorted(path for path in _walk(ROOT / below) if not suffixes or path.suffix in suffixes)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the floors, as its path from the root and its syntax tree."""
    for floor in FLOORS:
        for path in files(".py", below=floor):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def imports(tree: ast.Module) -> set[str]:
    """The modules that a module names in its imports; of ``from a import b`` both ``a`` and ``a.b``."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _walk(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_symlink():
            continue
        if path.is_dir() and path.name not in NOT_OURS and (path.name == ".ci" or path.name[0] != "."):
            yield from _walk(path)
        elif path.is_file():
            yield path
