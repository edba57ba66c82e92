import datetime as dt
import functools
import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client

from access import writer
from access.models import Organization
from brain import first_start, progress
from brain.progress import Bar
from core import clock
from kb.store import stores, upkeep
from kb.store.stores import store_of
from tests.core.waiting import until
from tests.operations.test_purge import DEPLOY, log_of, save
from tests.server import ROOT, environment, free_port, manage, running_brain
from tests.world import World

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> tuple[str, str]:
    """What a command says on standard output and on standard error."""
    output, error = io.StringIO(), io.StringIO()
    call_command(*arguments, stdout=output, stderr=error)
    return output.getvalue(), error.getvalue()


def test_sweep_tells_what_it_removed(world: World) -> None:
    store = store_of(world.organization_id)
    world.folder("Eng")
    (Path(f"/proc/self/fd/{store.layout.stage}") / "9.0").write_bytes(b"left")

    output, _ = run("sweep")

    assert (
        output
        == "Removed 0 outcomes, 0 claims, 1 leftovers, 0 sessions and 0 segments of history (0 bytes).\n"
    )


def test_a_second_sweep_says_so_and_ends_well(world: World) -> None:
    with upkeep.hold_upkeep(store_of(world.organization_id).layout, wait_seconds=0):
        output, said = run("sweep")

    assert output == ""
    assert "under way" in said


def test_sweep_ends_the_sessions_that_ran_out_and_no_other(world: World) -> None:
    world.person("ada")
    for browser in (Client(), Client()):
        browser.force_login(world.identity("ada"))
    first = Session.objects.order_by("session_key")[0]
    Session.objects.filter(pk=first.pk).update(expire_date=clock.now() - dt.timedelta(seconds=1))

    output, _ = run("sweep")

    assert "1 sessions" in output
    assert Session.objects.count() == 1
    assert not Session.objects.filter(pk=first.pk).exists()


def test_history_that_had_to_be_kept_is_an_error(world: World) -> None:
    world.entry(DEPLOY, "text\n")
    (Path(f"/proc/self/fd/{store_of(world.organization_id).layout.private}") / "fault").write_text("{}")

    with pytest.raises(CommandError, match="History past its time is kept"):
        run("sweep")


def test_purge_history_tells_what_went_and_what_is_kept_elsewhere(world: World) -> None:
    world.entry(DEPLOY, "password\n")
    save(world, DEPLOY, "no password\n")

    output, said = run("purge_history", DEPLOY)

    assert output == "Removed 1 kept texts of Eng/deploy.md.\n"
    assert "The text that the entry has now is kept." in said
    assert "Instance backups taken before keep the old texts" in said
    assert b"password\n" not in log_of(world).replace(b"no password\n", b"")


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["Eng/missing.md"], "No entry has this path."),
        ([DEPLOY, "--deleted"], "No deleted entry has this path."),
        ([DEPLOY, "--before", "yesterday"], "--before yesterday: give a date or a time"),
        ([DEPLOY, "--before", "0001-01-01T00:00+14:00"], "--before 0001-01-01T00:00+14:00: give a date"),
        (["Eng/deploy"], "path: The path of an entry ends in .md."),
    ],
)
def test_purge_history_refuses_in_one_line(world: World, arguments: list[str], refusal: str) -> None:
    world.entry(DEPLOY, "text\n")

    with pytest.raises(CommandError, match=re.escape(refusal)):
        run("purge_history", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sweep"],
        ["purge_history", DEPLOY],
        ["check_store"],
        ["create_folder", "Eng"],
        ["create_token", "ada", "--name", "n", "--capability", "read"],
        ["import_markdown", "docs", "--into", "/"],
        ["provision", "--organization", "Acme", "--admin", "root"],
    ],
)
@pytest.mark.parametrize(("layout", "says"), [("2", "has the layout '2'"), ("restoring", "A restore into")])
def test_every_command_refuses_a_layout_it_does_not_know(
    world: World, data_dir: Path, arguments: list[str], layout: str, says: str
) -> None:
    stores.close_all()
    before = sorted(path.name for path in data_dir.iterdir())
    (data_dir / "FORMAT").write_text(f"{layout}\n")

    with pytest.raises(CommandError, match=re.escape(says)):
        run(*arguments)

    assert {path.name for path in data_dir.iterdir()} <= {*before, "provision.lock"}


@pytest.mark.parametrize(
    "arguments", [["sweep"], ["check_store"], ["create_folder", "Eng"], ["grant", "ada", "/", "reader"]]
)
def test_every_command_says_in_one_line_that_the_disk_cannot_be_used(
    world: World, data_dir: Path, arguments: list[str]
) -> None:
    world.person("ada")
    stores.close_all()
    writer.close_all()
    (data_dir / "orgs" / world.organization_id / "private" / "locks").rename(data_dir / "elsewhere")

    with pytest.raises(CommandError, match="The disk refused: No such file or directory"):
        run(*arguments)


def test_every_command_says_in_one_line_that_the_database_cannot_be_used(world: World) -> None:
    with (
        patch.object(Organization.objects, "first", side_effect=OperationalError("no such table")),
        pytest.raises(CommandError, match="The database cannot be used: no such table"),
    ):
        run("check_store")


def test_provisioning_waits_for_another_start_and_says_so(
    world: World, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "WAIT_SECONDS", 0)
    with first_start.one_at_a_time(), pytest.raises(CommandError, match="is under way here"):
        run("provision", "--organization", "Acme", "--admin", "root")


def test_a_layout_of_another_version_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_text("2\n")
    started = subprocess.run(
        [sys.executable, "-m", "brain.serve"],
        cwd=ROOT,
        env=environment(tmp_path, BRAIN_PORT=str(free_port())),
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert started.returncode == 1
    assert "has the layout '2'" in started.stderr
    assert not (tmp_path / "db.sqlite3").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0)
    monkeypatch.setattr(progress, "PAUSE_SECONDS", 0)
    terminal = Terminal()
    with Bar(terminal) as bar:
        bar.begin("Copying", 10)
        bar.advance(5)
        bar.advance(5)

    drawn = terminal.getvalue().split("\r")
    assert drawn[1] == "Copying  [###############...............]  50%"
    assert drawn[2] == "Copying  [##############################] 100%"
    assert drawn[-2].strip() == ""


def test_what_has_no_known_end_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0)
    terminal = Terminal()
    with Bar(terminal) as bar:
        bar.begin("Reading", 0)
        bar.advance(1234)

    assert "Reading  1,234" in terminal.getvalue()


def test_nothing_is_drawn_where_nobody_watches() -> None:
    stream = io.StringIO()
    with Bar(stream) as bar:
        bar.begin("Copying", 10)
        bar.advance(10)

    assert stream.getvalue() == ""


class TestHousekeeping:
    @pytest.mark.parametrize("pause", ["0", "-1", "99999999999999999999"])
    def test_a_pause_that_cannot_be_slept_is_refused(self, world: World, pause: str) -> None:
        with pytest.raises(CommandError, match="--loop is a number of seconds, 1 to"):
            run("sweep", f"--loop={pause}")

    def test_a_loop_sweeps_again_and_again_until_it_is_stopped(self, tmp_path: Path) -> None:
        made = manage(tmp_path, "provision", "--organization", "Acme", "--admin", "root")
        assert made.returncode == 0, made.stderr
        [organization] = (tmp_path / "orgs").iterdir()
        keeper = subprocess.Popen(
            [sys.executable, "manage.py", "sweep", "--loop", "1"], cwd=ROOT, env=environment(tmp_path)
        )
        try:
            for round_number in range(2):
                leftover = organization / f"private/log/{round_number}.log.new"
                leftover.write_bytes(b"left")
                until(functools.partial(is_gone, leftover))
        finally:
            keeper.send_signal(signal.SIGTERM)
            ended = keeper.wait(60)

        assert ended == 128 + signal.SIGTERM

    @pytest.mark.server
    def test_the_server_has_a_housekeeper_who_ends_with_it_however_it_ends(self, tmp_path: Path) -> None:
        with running_brain(tmp_path) as brain:
            master = brain.process.pid
            until(lambda: len(children_of(master)) == 3)  # and two workers
            children = children_of(master)
            os.kill(master, signal.SIGKILL)
            for child in children:
                until(functools.partial(has_ended, child))


def children_of(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def is_gone(path: Path) -> bool:
    return not path.exists()


def has_ended(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
