import getpass
import io
import json
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from access.audit import AuditAction
from access.models import AuditEvent
from brain import instance_backup
from brain.management.passphrase import new_passphrase
from core.locks import FileLock, Rank
from core.sealing import CannotUnseal, seal, unseal
from kb.store.archive import MANIFEST, MANIFEST_SUM, ArchiveReader, Manifest
from kb.store.copying import CopiedFile, Copy, Moved
from kb.store.restoring import prove
from kb.store.stores import store_of
from tests.core.waiting import until
from tests.operations.drill import start, told
from tests.operations.test_archive import HEAD, made_by_hand
from tests.operations.test_commands import run
from tests.server import PATIENCE_SECONDS, manage
from tests.world import World

pytestmark = pytest.mark.django_db(transaction=True)
PASSPHRASE = "correct horse battery staple"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with people, grants, tokens and entries in it; ``tokens.json`` lies beside."""
    data_dir = tmp_path_factory.mktemp("source") / "data"
    made = manage(data_dir, "provision", "--organization", "Acme", "--admin", "root")
    assert made.returncode == 0, made.stderr
    (data_dir.parent / "tokens.json").write_text(json.dumps(told(data_dir, "fill")))
    (data_dir.parent / "passphrase").write_text(f"{PASSPHRASE}\n")
    return data_dir


@pytest.fixture(scope="module")
def whole(source: Path) -> Path:
    """A backup of it, with secrets."""
    return backed_up(source, "whole.tar", "--include-secrets", "--passphrase-file", passphrase_file(source))


@pytest.fixture(scope="module")
def plain(source: Path) -> Path:
    """A backup of it, without secrets."""
    return backed_up(source, "plain.tar")


def passphrase_file(source: Path) -> str:
    return str(source.parent / "passphrase")


def backed_up(source: Path, name: str, *options: str) -> Path:
    target = source.parent / name
    done = manage(source, "backup_instance", str(target), *options)
    assert done.returncode == 0, done.stderr
    assert f"Backed up to {target}" in done.stdout
    return target


def restored(archive: Path, data_dir: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    done = manage(data_dir, "restore_instance", str(archive), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def tell(data_dir: Path, source: Path) -> dict[str, Any]:
    answer: dict[str, Any] = told(data_dir, "tell", (source.parent / "tokens.json").read_text())
    return answer


def test_a_restore_brings_back_grants_metadata_contents_versions_and_tokens(
    source: Path, whole: Path, tmp_path: Path
) -> None:
    before = tell(source, source)

    done = restored(whole, tmp_path / "back", "--passphrase-file", passphrase_file(source))

    assert "Everything agrees." in done.stdout
    assert tell(tmp_path / "back", source) == before
    assert before["texts"]["Engineering/Payments/deploy.md"] == "three\n"
    assert before["tokens"]["bot"] == ["Engineering/Payments/deploy.md"]
    assert before["tokens"]["mallory"] == "UNAUTHENTICATED"
    assert before["passwords"]["ada"]
    checked = manage(tmp_path / "back", "check_store")
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (0, "Everything agrees.")
    assert (tmp_path / "back/data_key").read_text() == (source / "data_key").read_text()


@pytest.mark.parametrize(
    ("name", "options"),
    [("plain.tar", []), ("whole.tar", ["--without-secrets"])],
    ids=["plain", "left alone"],
)
def test_without_secrets_versions_are_others_and_all_else_is_the_same(
    source: Path, plain: Path, whole: Path, tmp_path: Path, name: str, options: list[str]
) -> None:
    archive = source.parent / name
    before = tell(source, source)

    done = restored(archive, tmp_path / "back", *options)

    after = tell(tmp_path / "back", source)
    versions = [[entry.pop("version") for entry in told["entries"]] for told in (before, after)]
    assert after == before
    assert not set(versions[0]) & set(versions[1])
    assert "The keys are new" in done.stdout
    assert (tmp_path / "back/data_key").read_text() != (source / "data_key").read_text()


def test_keys_that_were_kept_elsewhere_may_be_put_into_the_target_first(
    source: Path, plain: Path, tmp_path: Path
) -> None:
    (tmp_path / "back").mkdir(mode=0o700)
    (tmp_path / "back/data_key").write_bytes((source / "data_key").read_bytes())
    (tmp_path / "back/data_key").chmod(0o600)

    restored(plain, tmp_path / "back")

    assert tell(tmp_path / "back", source) == tell(source, source)


def test_the_archive_lets_nobody_in(source: Path, whole: Path, plain: Path) -> None:
    session = "INSERT INTO django_session VALUES (?, 'data', '2036-01-01 00:00:00')"
    with closing(sqlite3.connect(source / "db.sqlite3", isolation_level=None)) as database:
        # Not every SQLite writes over what is deleted.
        database.execute("PRAGMA secure_delete=OFF")
        database.execute(session, ["k3y-of-a-session"])
        database.execute(session, ["k3y-of-one-that-ended"])
        database.execute("DELETE FROM django_session WHERE session_key = 'k3y-of-one-that-ended'")
    archive = backed_up(source, "with-session.tar")
    tokens = json.loads((source.parent / "tokens.json").read_text())
    secrets = [(source / name).read_text().strip() for name in ("secret_key", "data_key")]

    for path in (whole, plain, archive):
        data = path.read_bytes()
        for secret in ["k3y-of-", *tokens.values(), *secrets]:
            assert secret.encode() not in data
    with tarfile.open(plain) as tar:
        assert "secrets.sealed" not in tar.getnames()
    assert (archive.stat().st_mode & 0o777) == 0o600


def test_a_sealed_secret_opens_with_its_passphrase_alone_and_whole() -> None:
    sealed = seal(b"a key", PASSPHRASE)

    assert b"a key" not in sealed
    assert unseal(sealed, PASSPHRASE) == b"a key"
    assert unseal(seal(b"a key", "caf\u00e9 au lait noir"), "cafe\u0301 au lait noir") == b"a key"
    for damaged in (sealed[:-1], sealed[:20], b"", sealed[:-1] + bytes([sealed[-1] ^ 1])):
        with pytest.raises(CannotUnseal):
            unseal(damaged, PASSPHRASE)
    with pytest.raises(CannotUnseal):
        unseal(sealed, PASSPHRASE + " ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--passphrase-file", "long"], "--passphrase-file is for --include-secrets."),
        (["--include-secrets", "--passphrase-file", "short"], "A passphrase has 12 characters or more."),
        (["--include-secrets", "--passphrase-file", "missing"], "cannot be read"),
        (["--include-secrets"], "There is no terminal to ask"),
    ],
)
def test_a_passphrase_must_be_there_and_long(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    (tmp_path / "short").write_text("short\n")
    (tmp_path / "long").write_text(f"{PASSPHRASE}\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError, match=says):
        run("backup_instance", "one.tar", *options)

    assert not (tmp_path / "one.tar").exists()


def test_a_new_passphrase_is_asked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    answers = iter([PASSPHRASE, PASSPHRASE, PASSPHRASE, PASSPHRASE + " "])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda _question: next(answers))

    assert new_passphrase(None) == PASSPHRASE
    with pytest.raises(CommandError, match="The two are not the same"):
        new_passphrase(None)


def test_a_backup_replaces_nothing_and_does_not_lie_in_what_it_copies(
    world: World, data_dir: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there.tar"
    there.write_text("of somebody else")

    for target, says in (
        (there, "is there already"),
        (tmp_path, "is a folder"),
        (data_dir / "one.tar", "in the data directory itself"),
        (tmp_path / "missing/one.tar", "cannot be written"),
    ):
        with pytest.raises(CommandError, match=says):
            run("backup_instance", str(target))

    assert there.read_text() == "of somebody else"
    assert not (data_dir / "one.tar").exists()


@pytest.mark.parametrize("lock", ["publication", "upkeep"])
def test_a_backup_waits_for_a_publication_and_for_upkeep_but_not_for_ever(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    monkeypatch.setattr(instance_backup, "UPKEEP_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(instance_backup, "PUBLICATION_WAIT_SECONDS", 0.1)
    busy = FileLock(store_of(world.organization_id).layout.locks, lock, Rank.PUBLICATION)
    busy.acquire(wait_seconds=0)

    with ThreadPoolExecutor(1) as other, pytest.raises(CommandError) as refused:
        other.submit(run, "backup_instance", str(tmp_path / "one.tar")).result()
    busy.release()

    assert refused.value.returncode == 3
    assert "Try again after it." in str(refused.value)
    assert list(tmp_path.glob("*.tar*")) == []


def test_a_backup_is_audited(world: World, tmp_path: Path) -> None:
    run("backup_instance", str(tmp_path / "one.tar"))

    event = AuditEvent.objects.get(action=AuditAction.BACK_UP_INSTANCE)
    assert (event.actor_username, event.through, event.after) == ("system", "shell", "without secrets")


def test_an_entry_that_moves_lets_the_backup_begin_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.entry("Eng/deploy.md", "text\n")
    real = Copy.files
    attempts: list[Copy] = []

    def moved_at_first(copy: Copy) -> Iterator[CopiedFile]:
        attempts.append(copy)
        yield from real(copy)
        if len(attempts) < 3:
            raise Moved("content/Eng/deploy.md")

    monkeypatch.setattr(Copy, "files", moved_at_first)
    run("backup_instance", str(tmp_path / "one.tar"))

    assert len(attempts) == 3
    with ArchiveReader(tmp_path / "one.tar") as reader:
        assert [entry.path for entry in prove(reader).manifest.files].count("FORMAT") == 1
    attempts[:] = []
    monkeypatch.setattr(instance_backup, "TRIES", 2)
    with pytest.raises(CommandError, match="changed while they were copied"):
        run("backup_instance", str(tmp_path / "two.tar"))


def test_a_store_with_a_media_fault_is_not_backed_up(world: World, tmp_path: Path) -> None:
    layout = store_of(world.organization_id).layout
    (Path(f"/proc/self/fd/{layout.private}") / "fault").write_text("{}")

    with pytest.raises(CommandError, match="A media fault is marked"):
        run("backup_instance", str(tmp_path / "one.tar"))


def test_content_and_grants_are_one_state_while_a_writer_writes(source: Path, tmp_path: Path) -> None:
    data_dir = tmp_path / "busy"
    made = manage(data_dir, "provision", "--organization", "Acme", "--admin", "root")
    assert made.returncode == 0
    writer = start(data_dir, "write")
    try:
        assert writer.stdout is not None
        numbers = iter(writer.stdout.readline, "")
        until(lambda: int(next(numbers)) > 20)
        for attempt in range(2):
            known = int(next(numbers))
            done = manage(data_dir, "backup_instance", str(tmp_path / f"{attempt}.tar"))
            assert done.returncode == 0, done.stderr
            restored(tmp_path / f"{attempt}.tar", tmp_path / f"back{attempt}")
            found = told(tmp_path / f"back{attempt}", "counted")
            assert found["saved"] >= known
            assert found["granted"] in (found["saved"], found["saved"] - 1)
            assert found["pages"] in (found["granted"], found["granted"] - 1)
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate(timeout=PATIENCE_SECONDS)
    checked = manage(data_dir, "check_store")
    assert checked.returncode == 0, checked.stdout


class TestRefusedRestores:
    """Each leaves the target as it was."""

    @pytest.fixture
    def target(self, tmp_path: Path, settings: Settings) -> Iterator[Path]:
        """An empty data directory that is the installation's."""
        settings.DATA_DIR = tmp_path / "back"
        settings.DATA_DIR.mkdir(mode=0o700)
        yield settings.DATA_DIR
        assert {path.name for path in settings.DATA_DIR.iterdir()} <= {"provision.lock"}

    def test_a_target_that_is_not_empty(self, source: Path, plain: Path, settings: Settings) -> None:
        settings.DATA_DIR = source

        with pytest.raises(CommandError, match="is not empty"):
            run("restore_instance", str(plain))

        assert manage(source, "check_store").returncode == 0

    def test_a_damaged_archive(self, plain: Path, tmp_path: Path, target: Path) -> None:
        data = bytearray(plain.read_bytes())
        data[len(data) // 2] ^= 1
        (tmp_path / "bad.tar").write_bytes(data)

        with pytest.raises(CommandError, match="is not restored"):
            run("restore_instance", str(tmp_path / "bad.tar"))

    def test_a_file_that_is_missing_or_no_archive(self, tmp_path: Path, target: Path) -> None:
        (tmp_path / "notes.txt").write_text("notes\n" * 1000)

        for name in ("missing.tar", "notes.txt"):
            with pytest.raises(CommandError, match="is not restored"):
                run("restore_instance", str(tmp_path / name))

    def test_another_passphrase(self, whole: Path, tmp_path: Path, target: Path) -> None:
        (tmp_path / "wrong").write_text("another passphrase\n")

        with pytest.raises(CommandError, match="This is not the passphrase"):
            run("restore_instance", str(whole), "--passphrase-file", str(tmp_path / "wrong"))
        with pytest.raises(CommandError, match="give --passphrase-file"):
            run("restore_instance", str(whole))

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (
                "INSERT INTO django_migrations (app, name, applied) VALUES ('access', '9999_new', '2036-01-01')",
                "made by a newer version of Brain",
            ),
            (
                "INSERT INTO access_organization (id, name, created_at) VALUES ('org_b', 'B', '2036-01-01')",
                "of another organization",
            ),
            ("DROP TABLE django_migrations", "cannot be read"),
            ("DELETE FROM access_identity", "points to rows that it does not have"),
            (
                "INSERT INTO access_folder SELECT 'fld_x', 1, id FROM access_organization",
                "1 disagree",
            ),
        ],
    )  # fmt: skip
    def test_a_database_that_does_not_fit(
        self, plain: Path, tmp_path: Path, target: Path, change: str, says: str
    ) -> None:
        files = files_of(plain)
        (tmp_path / "database").write_bytes(files["database"])
        with closing(sqlite3.connect(tmp_path / "database", isolation_level=None)) as database:
            database.execute("PRAGMA foreign_keys=OFF")
            database.execute(change)
        files["database"] = (tmp_path / "database").read_bytes()

        with pytest.raises(CommandError, match=says):
            run("restore_instance", str(repacked(plain, tmp_path / "changed.tar", files)))

    def test_content_that_does_not_agree_with_its_registry(
        self, plain: Path, tmp_path: Path, target: Path
    ) -> None:
        files = files_of(plain)
        [path] = [path for path in files if path.endswith("content/Engineering/secret.md")]
        files[path] = b"another text\n"
        output = io.StringIO()

        with pytest.raises(CommandError, match="1 disagree"):
            call_command(
                "restore_instance", str(repacked(plain, tmp_path / "changed.tar", files)), stdout=output
            )

        assert "content/Engineering/secret.md: the file is not what its registry says" in output.getvalue()


def files_of(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        found = {}
        for member in tar:
            opened = tar.extractfile(member)
            assert opened is not None
            found[member.name] = opened.read()
        return found


def repacked(archive: Path, target: Path, files: dict[str, bytes]) -> Path:
    """The archive with other files in it, and every hash computed again."""
    manifest = msgspec.json.decode(files_of(archive)[MANIFEST], type=Manifest)
    assert manifest.layout == HEAD.layout
    listed = {path: data for path, data in files.items() if path not in (MANIFEST, MANIFEST_SUM)}
    return made_by_hand(target, listed, manifest=manifest)
