"""Who may touch what: the floors, and the few places for HTTP, child processes, files and clocks."""

import ast
import subprocess
import sys

import pytest

from tests.server import environment
from tests.test_house.repository import ROOT, imports, modules

# Files of the data directory are the store's. Whoever else touches a file has a reason here.
FILE_CALLS = frozenset(
    {"open", "os.open", "os.replace", "os.rename", "os.unlink", "os.remove", "os.mkdir", "os.makedirs", "os.rmdir",
     "os.link", "os.symlink", "os.truncate"}
)  # fmt: skip
FILE_METHODS = frozenset(
    {"write_text", "write_bytes", "read_text", "read_bytes", "touch", "symlink_to", "hardlink_to"}
)
MAY_TOUCH_FILES = {
    "core/safe_open.py": "the way to open files of the data directory",
    "core/claims.py": "makes the folders of claims, below the organization's private folder",
    "access/writer.py": "opens the folder of the lock files, through core.safe_open",
    "brain/environment.py": "secrets that an operator put into a file",
    "brain/first_start.py": "makes the database file, private, and locks the data directory",
    "kb/services/import_markdown.py": "reads the tree that is imported, from outside",
    "kb/rendering.py": "reads the style of code blocks",
}

MAY_START_PROCESSES = {
    "backup/git_command.py": "runs git, hermetically",
    "kb/render_process.py": "renders hostile Markdown where it cannot hurt",
    "brain/serve.py": "prepares the start in a child",
    "brain/housekeeping.py": "a process for each round of sweeping",
}
PROCESSES = frozenset(
    {"subprocess", "multiprocessing", "os.fork", "pty", "concurrent.futures.ProcessPoolExecutor"}
)

MAY_SPEAK_HTTP = ("brain/", "web/", "chat/", "mcpapi/")
CLOCKS = frozenset({"time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter",
                    "datetime.now", "datetime.utcnow", "datetime.today", "date.today", "datetime.datetime.now",
                    "datetime.datetime.utcnow", "datetime.date.today", "timezone.now"})  # fmt: skip


def calls(tree: ast.Module) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_calls_go_down_only() -> None:
    linted = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=ROOT,
        env=environment(ROOT / "var"),
        capture_output=True,
        text=True,
    )

    assert linted.returncode == 0, linted.stdout
    assert " kept, 0 broken" in linted.stdout


def test_http_is_spoken_on_the_upper_floors_alone() -> None:
    speakers = {
        path
        for path, tree in modules()
        if any(name.split(".")[:2] == ["django", "http"] for name in imports(tree))
    }

    assert {path for path in speakers if not path.startswith(MAY_SPEAK_HTTP)} == set()


def test_programs_are_started_in_named_places() -> None:
    starters = {
        path
        for path, tree in modules()
        if imports(tree) & PROCESSES or calls(tree) & {"os.fork", "os.system"}
    }

    assert starters - MAY_START_PROCESSES.keys() == set()


def test_files_are_opened_by_the_store_and_in_named_places() -> None:
    openers = {
        path
        for path, tree in modules()
        if not path.startswith("kb/store/")
        and any(
            call in FILE_CALLS or _is_file_method(call) or call.startswith("shutil.") for call in calls(tree)
        )
    }

    assert openers - MAY_TOUCH_FILES.keys() == set()


def test_there_is_one_clock() -> None:
    watchers = {path for path, tree in modules() if calls(tree) & CLOCKS}

    assert watchers <= {"core/clock.py"}


def test_packages_hold_no_code() -> None:
    full = {
        path
        for path, tree in modules()
        if path.endswith("__init__.py") and any(not _is_docstring(node) for node in tree.body)
    }

    assert full == set()


@pytest.mark.parametrize("package", ["mcp", "mcp_server"])
def test_mcp_is_known_in_mcpapi_alone(package: str) -> None:
    knowing = {
        path for path, tree in modules() if any(name.split(".")[0] == package for name in imports(tree))
    }

    assert {path for path in knowing if not path.startswith("mcpapi/")} == set()


def _is_file_method(call: str) -> bool:
    return (
        "." in call
        and call.rpartition(".")[2] in FILE_METHODS
        and not call.startswith(("self.", "safe_open."))
    )


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
