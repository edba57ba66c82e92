import ctypes
import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from core import safe_open
from core.safe_open import DIRECTORY_FLAGS, UnsafeFile
from tests.core.neighbours import Neighbour
from tests.core.waiting import Task, until

Start = Callable[..., Neighbour]

INSIDE = b"inside\n"
OUTSIDE = b"outside: nobody may see this\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """``tree/a/b/c/page.md``, and beside the tree the same names with other bytes."""
    for root, content in (("tree", INSIDE), ("outside", OUTSIDE)):
        folder = tmp_path / root / "a" / "b" / "c"
        folder.mkdir(parents=True)
        (folder / "page.md").write_bytes(content)
    return tmp_path / "tree"


@pytest.fixture
def start(tree: Path) -> Iterator[int]:
    """The open descriptor of the tree. No test leaves another one open."""
    descriptor = os.open(tree, DIRECTORY_FLAGS)
    yield descriptor
    os.close(descriptor)
    assert open_below(tree) == []


def open_below(tree: Path) -> list[str]:
    """What of the tree this process has open."""
    opened = []
    for number in os.listdir("/proc/self/fd"):
        try:
            opened.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue  # the descriptor of the listing itself
    return [path for path in opened if path.startswith(str(tree))]


# -- what is there is read ------------------------------------------------------------------------------------


def test_a_file_is_read_below_its_folders(start: int) -> None:
    assert safe_open.read_file(start, ["a", "b", "c", "page.md"]) == INSIDE


def test_a_file_is_read_from_an_offset_to_its_present_end(tree: Path) -> None:
    descriptor = os.open(tree / "a/b/c/page.md", os.O_RDONLY)
    try:
        assert safe_open.read_all(descriptor, 2) == b"side\n"
        assert safe_open.read_all(descriptor, len(INSIDE)) == b""
        assert safe_open.read_all(descriptor, len(INSIDE) + 5) == b""
        with (tree / "a/b/c/page.md").open("ab") as page:
            page.write(b"more\n")
        assert safe_open.read_all(descriptor) == INSIDE + b"more\n"
    finally:
        os.close(descriptor)


def test_a_file_that_shrinks_while_it_is_read_ends_early(
    tree: Path, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pread

    def at_most_two_bytes(descriptor: int, _wanted: int, offset: int) -> bytes:
        (tree / "a/b/c/page.md").write_bytes(b"short")
        return whole(descriptor, 2, offset)

    monkeypatch.setattr(os, "pread", at_most_two_bytes)

    assert safe_open.read_file(start, ["a", "b", "c", "page.md"]) == b"short"


def test_a_directory_is_opened_anew_each_time(start: int) -> None:
    first, second = safe_open.open_directory(start, ["a"]), safe_open.open_directory(start)
    assert len({start, first, second}) == 3
    assert not os.get_inheritable(first)
    assert not os.get_inheritable(second)
    os.close(first)
    os.close(second)


def test_what_is_missing_is_file_not_found(start: int) -> None:
    with pytest.raises(FileNotFoundError):
        safe_open.read_file(start, ["a", "b", "c", "missing.md"])
    with pytest.raises(FileNotFoundError):
        safe_open.read_file(start, ["a", "missing", "c", "page.md"])


# -- links are followed nowhere -------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c"), ("a", "b", "c", "page.md")])
@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
def test_a_symbolic_link_is_followed_at_no_component(
    tree: Path, start: int, names: tuple[str, ...], absolute: bool
) -> None:
    place = tree.joinpath(*names)
    target = tree.parent.joinpath("outside", *names)
    place.rename(tree / "moved")
    place.symlink_to(target if absolute else os.path.relpath(target, place.parent))
    assert (tree / "a/b/c/page.md").read_bytes() == OUTSIDE  # that is where the link would lead

    with pytest.raises(OSError) as refused:
        safe_open.read_file(start, ["a", "b", "c", "page.md"])

    assert isinstance(refused.value, UnsafeFile) or refused.value.errno in (errno.ELOOP, errno.ENOTDIR)


def test_a_link_within_the_tree_is_refused_too(tree: Path, start: int) -> None:
    (tree / "a/b/c/link.md").symlink_to("page.md")

    with pytest.raises(UnsafeFile):
        safe_open.read_file(start, ["a", "b", "c", "link.md"])


def test_a_dangling_link_makes_no_file_elsewhere(tree: Path, start: int) -> None:
    (tree / "new.md").symlink_to(tree.parent / "outside/new.md")

    with pytest.raises(UnsafeFile):
        safe_open.open_file(start, "new.md", os.O_WRONLY | os.O_CREAT)

    assert not (tree.parent / "outside/new.md").exists()


# -- what is no file is no file -------------------------------------------------------------------------------

WAYS_TO_OPEN = [
    pytest.param(os.O_RDONLY, id="read"),
    pytest.param(os.O_WRONLY, id="write"),
    pytest.param(os.O_RDWR, id="both"),
    pytest.param(os.O_WRONLY | os.O_CREAT | os.O_TRUNC, id="make-or-empty"),
]


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))  # an absolute path may be too long for a socket


def make_hard_link(path: Path) -> None:
    os.link(path.parent / "a/b/c/page.md", path)


def make_symbolic_link(path: Path) -> None:
    path.symlink_to("a/b/c/page.md")


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("flags", WAYS_TO_OPEN)
@pytest.mark.parametrize("make", [make_pipe, make_socket, make_hard_link, make_symbolic_link, make_folder])
def test_anything_but_a_regular_file_with_one_link_is_refused_and_left_alone(
    tree: Path, start: int, make: Callable[[Path], None], flags: int
) -> None:
    make(tree / "odd")
    before = (tree / "odd").lstat()

    # In a thread of its own, since opening a pipe without O_NONBLOCK would wait for ever.
    opening = Task(lambda: safe_open.open_file(start, "odd", flags))

    with pytest.raises(UnsafeFile):
        opening.result()
    after = (tree / "odd").lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
    assert (tree / "a/b/c/page.md").read_bytes() == INSIDE


def test_a_device_is_refused() -> None:
    devices = os.open("/dev", DIRECTORY_FLAGS)
    try:
        for name in ("null", "zero"):
            with pytest.raises(UnsafeFile):
                safe_open.open_file(devices, name)
    finally:
        os.close(devices)


def test_a_pipe_in_the_place_of_a_folder_is_refused(tree: Path, start: int) -> None:
    os.mkfifo(tree / "pipe")

    with pytest.raises(NotADirectoryError):
        safe_open.read_file(start, ["pipe", "page.md"])


# -- names are names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "/etc", "../outside", "a\0", "\0"])
def test_what_is_no_name_is_refused_before_anything_is_opened(start: int, name: str) -> None:
    with pytest.raises(UnsafeFile):
        safe_open.open_file(start, name)
    with pytest.raises(UnsafeFile):
        safe_open.open_directory(start, [name])
    with pytest.raises(UnsafeFile):
        safe_open.open_directory(start, ["a", name])
    with pytest.raises(UnsafeFile):
        safe_open.read_file(start, ["a", name, "c", "page.md"])
    with pytest.raises(UnsafeFile):
        safe_open.read_file(start, ["a", "b", "c", name])


# -- making and emptying --------------------------------------------------------------------------------------


@pytest.fixture
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
def test_a_file_is_made_for_the_owner_alone(tree: Path, start: int) -> None:
    os.close(safe_open.open_file(start, "new.md", os.O_WRONLY | os.O_CREAT | os.O_EXCL))

    assert stat.S_IMODE((tree / "new.md").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        safe_open.open_file(start, "new.md", os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def test_a_file_is_emptied_on_request(tree: Path, start: int) -> None:
    page = safe_open.open_directory(start, ["a", "b", "c"])
    os.close(safe_open.open_file(page, "page.md", os.O_WRONLY | os.O_TRUNC))
    os.close(page)

    assert (tree / "a/b/c/page.md").read_bytes() == b""


@pytest.mark.usefixtures("_open_umask")
def test_a_private_directory_and_those_made_above_it_are_for_the_owner_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    safe_open.make_private_directory(tmp_path / "one/two/three")

    for made in ("one", "one/two", "one/two/three"):
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o700
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755  # was there before: not ours to narrow


def test_a_private_directory_that_others_may_enter_is_narrowed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)

    safe_open.make_private_directory(tmp_path / "data")
    safe_open.make_private_directory(tmp_path / "data")

    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


# -- racing swaps ---------------------------------------------------------------------------------------------

RENAME_EXCHANGE = 2


def swap_for_ever(test: Connection, one: Path, other: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    test.send("swapping")
    while True:
        if libc.renameat2(-100, bytes(one), -100, bytes(other), RENAME_EXCHANGE) != 0:
            test.send(os.strerror(ctypes.get_errno()))
            return


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c"), ("a", "b", "c", "page.md")])
def test_a_link_that_is_swapped_in_while_reading_leaks_nothing(
    tree: Path, start: int, neighbour: Start, names: tuple[str, ...]
) -> None:
    place, link = tree.joinpath(*names), tree / "link"
    link.symlink_to(tree.parent.joinpath("outside", *names))
    process = neighbour(swap_for_ever, place, link)
    assert process.hear() == "swapping"
    seen = {"inside": 0, "refused": 0}

    def read_once_more() -> bool:
        try:
            assert safe_open.read_file(start, ["a", "b", "c", "page.md"]) == INSIDE
            seen["inside"] += 1
        except (UnsafeFile, NotADirectoryError):
            seen["refused"] += 1
        assert not process.has_spoken, process.hear()
        return min(seen.values()) >= 300

    until(read_once_more, pause_seconds=0)


def test_a_check_before_the_open_would_leak(tree: Path, neighbour: Start) -> None:
    # The race above is one: whoever asks first and opens then, by path, does get the bytes from outside.
    place, link = tree / "a/b/c/page.md", tree / "link"
    link.symlink_to(tree.parent / "outside/a/b/c/page.md")
    process = neighbour(swap_for_ever, place, link)
    assert process.hear() == "swapping"

    def leaks() -> bool:
        return not place.is_symlink() and place.read_bytes() == OUTSIDE

    until(leaks, pause_seconds=0)
