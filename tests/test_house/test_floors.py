"""Who may touch what: the floors, and the few places for HTTP, child processes, files and clocks."""

import ast
import re
import subprocess
import sys

import pytest

from tests.server import environment
from tests.test_house.repository import ROOT, imports, modules

# Files of the data directory are the store's. Whoever else touches a file has a reason here.
FILE_CALLS = frozenset(
    {"open", "io.open", "codecs.open", "os.open", "os.fdopen", "os.replace", "os.rename", "os.renames", "os.unlink",
     "os.remove", "os.mkdir", "os.makedirs", "os.rmdir", "os.removedirs", "os.link", "os.symlink", "os.truncate"}
)  # fmt: skip
FILE_METHODS = frozenset(
    {"open", "write_text", "write_bytes", "read_text", "read_bytes", "touch", "symlink_to", "hardlink_to", "mkdir",
     "rmdir", "unlink", "rename", "chmod"}
)  # fmt: skip
FILE_PACKAGES = frozenset({"shutil", "tempfile", "fileinput"})
# The same names where they mean something else than a file.
NO_FILES = ("self.", "safe_open.", "steps.", "os.")
MAY_TOUCH_FILES = {
    "core/safe_open.py": "the way to open files of the data directory",
    "core/claims.py": "makes the folders of claims, below the organization's private folder",
    "access/writer.py": "opens the folder of the lock files, through core.safe_open",
    "brain/environment.py": "secrets that an operator put into a file",
    "brain/first_start.py": "makes the database file, private, and locks the data directory",
    "brain/instance_backup.py": "copies the database with SQLite's own tools",
    "brain/instance_restore.py": "proves the copied database, beside the data directory",
    "brain/management/passphrase.py": "reads a passphrase that an operator put into a file",
    "brain/health.py": "opens the database file anew, to see whether it is there",
    "kb/services/import_markdown.py": "reads the tree that is imported, from outside",
}

MAY_START_PROCESSES = {
    "backup/git_command.py": "runs git, hermetically",
    "kb/render_process.py": "renders hostile Markdown where it cannot hurt",
    "brain/serve.py": "prepares the start in a child",
    "brain/housekeeping.py": "a process for each round of sweeping",
}
PROCESSES = frozenset(
    {"subprocess", "multiprocessing", "pty", "concurrent.futures.ProcessPoolExecutor", "asyncio.subprocess"}
)
PROCESS_CALL = re.compile(
    r"os\.(fork|forkpty|system|popen|exec\w+|spawn\w+|posix_spawn\w*)|asyncio\.create_subprocess_\w+"
)

# Content is asked for with authorizer.content_sight_of, which refuses the access builder.
MAY_SERVE_THE_ACCESS_BUILDER = {
    "kb/services/list_owned_folders.py": "where access can be given",
    "kb/services/locate_folder.py": "the folder whose access is managed",
    "kb/services/locate_folders.py": "the same, for several: paths and nothing else",
    "kb/services/show_folder.py": "the folder whose access is shown",
}

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
        if imports(tree) & PROCESSES or any(PROCESS_CALL.fullmatch(call) for call in calls(tree))
    }

    assert starters == {path for path in MAY_START_PROCESSES if (ROOT / path).exists()}


def test_files_are_opened_by_the_store_and_in_named_places() -> None:
    openers = {
        path
        for path, tree in modules()
        if not path.startswith("kb/store/")
        and (
            imports(tree) & FILE_PACKAGES
            or any(
                call in FILE_CALLS or call == "sqlite3.connect" or _is_file_method(call)
                for call in calls(tree)
            )
        )
    }

    assert openers == MAY_TOUCH_FILES.keys()


def test_what_opens_files_is_called_by_its_whole_name() -> None:
    # ``from os import rename`` would pass by the test above.
    hidden = {
        (path, f"os.{alias.name}")
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "io", "posix")
        for alias in node.names
        if alias.name != "PathLike"
    }
    renamed = {
        (path, alias.asname)
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in ("os", "io", "sqlite3") and alias.asname
    }

    assert hidden | renamed == set()


def test_content_is_out_of_reach_of_the_access_builder() -> None:
    reaching = {
        path
        for path, tree in modules()
        if path.startswith(("kb/", "backup/"))
        and any(call.endswith("sight_of") and "content" not in call for call in calls(tree))
    }

    assert reaching == MAY_SERVE_THE_ACCESS_BUILDER.keys()


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
    return "." in call and call.rpartition(".")[2] in FILE_METHODS and not call.startswith(NO_FILES)


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
