import os
import stat
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from core.safe_open import UnsafeFile, secret_file
from tests.core.neighbours import Neighbour

Start = Callable[..., Neighbour]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Where the secret belongs, in a data directory that is not there yet."""
    before = os.umask(0)  # so that every mode is what the code asks for
    yield tmp_path / "data" / "secret_key"
    os.umask(before)


def test_a_missing_secret_is_made_once_and_stays(path: Path) -> None:
    made = secret_file(path)

    assert len(made) == 64  # 48 random bytes
    assert secret_file(path) == made
    assert path.read_text() == made
    assert secret_file(path.with_name("data_key")) != made
    assert sorted(file.name for file in path.parent.iterdir()) == ["data_key", "secret_key"]


def test_secret_and_directory_are_for_the_owner_alone(path: Path) -> None:
    secret_file(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_secret_that_somebody_put_there_is_used_without_its_line_end(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("a-secret-from-elsewhere\n")
    path.chmod(0o400)

    assert secret_file(path) == "a-secret-from-elsewhere"
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o620, 0o601, 0o610])
def test_a_secret_that_others_can_reach_is_refused(path: Path, mode: int) -> None:
    secret_file(path)
    path.chmod(mode)

    with pytest.raises(UnsafeFile, match="mode"):
        secret_file(path)

    assert stat.S_IMODE(path.stat().st_mode) == mode  # they may have read it: a person has to decide


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_in_the_place_of_the_secret_is_refused(path: Path, dangling: bool) -> None:
    path.parent.mkdir(mode=0o700)
    elsewhere = path.parent.parent / "elsewhere"
    if not dangling:
        elsewhere.write_text("known-to-somebody")
        elsewhere.chmod(0o600)
    path.symlink_to(elsewhere)

    with pytest.raises(UnsafeFile):
        secret_file(path)

    assert elsewhere.exists() is not dangling
    assert path.is_symlink()


def test_a_secret_with_a_second_name_is_refused(path: Path) -> None:
    secret_file(path)
    os.link(path, path.parent.parent / "second")

    with pytest.raises(UnsafeFile):
        secret_file(path)


@pytest.mark.parametrize("content", ["", "\n", "  \n"])
def test_an_empty_secret_is_refused_and_not_replaced(path: Path, content: str) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text(content)
    path.chmod(0o600)

    with pytest.raises(UnsafeFile, match="empty"):
        secret_file(path)

    assert path.read_text() == content


# -- what a crash may leave -----------------------------------------------------------------------------------


def leave_half_a_secret(temporary: Path) -> None:
    temporary.write_text("half")
    temporary.chmod(0o666)


def leave_a_link(temporary: Path) -> None:
    temporary.symlink_to(temporary.parent.parent / "victim")


def leave_a_hard_link(temporary: Path) -> None:
    os.link(temporary.parent.parent / "victim", temporary)


@pytest.mark.parametrize("leave", [leave_half_a_secret, leave_a_link, leave_a_hard_link])
def test_what_stands_in_the_way_of_a_new_secret_is_neither_used_nor_written_to(
    path: Path, leave: Callable[[Path], None]
) -> None:
    path.parent.mkdir(mode=0o700)
    victim = path.parent.parent / "victim"
    victim.write_text("precious")
    leave(path.with_name(".secret_key.new"))

    made = secret_file(path)

    assert len(made) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert victim.read_text() == "precious"
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]


def die_while_making_the_secret(test: Connection, path: Path) -> None:
    def die(_descriptor: object) -> None:
        test.send("dying")
        test.recv()

    pytest.MonkeyPatch().setattr(os, "fsync", die)
    secret_file(path)


def test_a_crash_while_the_secret_is_made_leaves_none(path: Path, neighbour: Start) -> None:
    process = neighbour(die_while_making_the_secret, path)
    assert process.hear() == "dying"

    process.kill()

    assert not path.exists()
    assert len(secret_file(path)) == 64


# -- two at once ----------------------------------------------------------------------------------------------

ROUNDS = 60
PROCESSES = 3


def start_together(test: Connection, folder: Path) -> None:
    for number in range(ROUNDS):
        test.recv()
        try:
            test.send(secret_file(folder / str(number) / "secret_key"))
        except OSError as error:
            test.send(error)


def test_processes_that_start_together_read_the_same_secret(path: Path, neighbour: Start) -> None:
    processes = [neighbour(start_together, path.parent) for _ in range(PROCESSES)]

    for number in range(ROUNDS):
        for process in processes:
            process.tell("go")
        read = [process.hear() for process in processes]

        kept = (path.parent / str(number) / "secret_key").read_text()
        assert read == [kept] * PROCESSES
