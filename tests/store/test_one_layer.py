"""One layer: what the rigs can stop and refuse is all that changes the store's files.

tests/test_house says who may open files at all. Here: who may change what is open, inside the store and outside.
"""

import ast

from tests.test_house.repository import imports, modules

LAYER = "kb/store/steps.py"
CHANGING = frozenset(
    {"os.write", "os.pwrite", "os.writev", "os.pwritev", "os.ftruncate", "os.truncate", "os.posix_fallocate",
     "os.fsync", "os.fdatasync", "os.sync", "os.rename", "os.replace", "os.renames", "os.link", "os.symlink",
     "os.unlink", "os.remove", "os.rmdir", "os.removedirs", "os.mkdir", "os.makedirs", "os.mkfifo", "os.mknod",
     "os.chmod", "os.fchmod", "os.chown", "os.fchown", "os.utime", "os.setxattr", "os.sendfile",
     "os.copy_file_range", "os.splice"}
)  # fmt: skip
CHANGING_METHODS = frozenset(
    {
        "write_text",
        "write_bytes",
        "touch",
        "symlink_to",
        "hardlink_to",
        "unlink",
        "rmdir",
        "mkdir",
        "rename",
        "chmod",
    }
)

MAY_CHANGE = {
    LAYER: "the layer",
    "core/safe_open.py": "makes secrets and private folders, before there is a store",
    "brain/first_start.py": "makes the database file, private",
    "core/claims.py": "makes the folders of claims, which are locks and no state",
    "kb/store/filesystem.py": "tries the disk with a file of its own, before there is a store",
    "kb/store/health.py": "tries whether the disk can be written to, with a file of its own",
    "kb/store/provision.py": "removes what a first start that was cut off left, of which nothing was ever used",
    "kb/render_program.py": "answers over its pipe, in a process without files",
    "kb/search/pack.py": "writes what is derived, into files that kb.store.derived opens beside the tree",
}
# What carries out records belongs to the store alone: outside it there are views, transactions and reports.
INSIDE = {
    f"kb.store.{name}" for name in ("steps", "applying", "recovery", "checkpoint", "reserve", "provision")
}
MAY_LOOK_INSIDE = {"brain/serve.py", "brain/management/commands/provision.py", "brain/first_start.py"}


def changes(tree: ast.Module) -> set[str]:
    """The calls by which a module changes files."""
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {
        call
        for call in calls
        if call in CHANGING
        or call.startswith("shutil.")
        or (
            call.rpartition(".")[2] in CHANGING_METHODS
            and not call.startswith(("os.", "self.", "steps.", "safe_open."))
            and "." in call
        )
    }


def test_files_are_changed_in_one_layer_and_in_named_places() -> None:
    found = {path: changes(tree) for path, tree in modules()}

    assert {path: calls for path, calls in found.items() if calls and path not in MAY_CHANGE} == {}


def test_every_named_place_still_changes_files() -> None:
    known = dict(modules())

    assert {path for path in MAY_CHANGE if path in known and not changes(known[path])} == set()


def test_the_layer_announces_every_step_before_it_changes_anything() -> None:
    tree = dict(modules())[LAYER]
    silent = [
        function.name
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        and changes(ast.Module([function], []))
        and not any(
            "_announce" in ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Call)
        )
    ]

    assert silent == []


def test_what_carries_out_records_is_used_by_the_store_alone() -> None:
    users = {
        path: imports(tree) & INSIDE
        for path, tree in modules()
        if not path.startswith("kb/store/") and path not in MAY_LOOK_INSIDE
    }

    assert {path: used for path, used in users.items() if used} == {}
