import shutil
import sqlite3
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client

from kb.store import checkpoint, stores
from kb.store.stores import store_of
from tests.world import World

pytestmark = pytest.mark.django_db(transaction=True)


def health(client: Client, path: str) -> tuple[int, bytes, str]:
    response = client.get(path)
    return response.status_code, response.content, response["Content-Type"]


OK = (200, b"ok", "text/plain")
UNAVAILABLE = (503, b"unavailable", "text/plain")


def test_ready_means_that_database_store_and_disk_were_tried(client: Client, world: World) -> None:
    assert health(client, "/readyz") == health(client, "/healthz") == OK


def test_a_database_file_that_is_gone_is_seen_although_an_open_connection_still_answers(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "gone.sqlite3"))

    assert health(client, "/readyz") == UNAVAILABLE
    assert health(client, "/healthz") == OK
    assert not (tmp_path / "gone.sqlite3").exists()


def test_a_database_file_that_is_no_database_is_seen(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken.sqlite3").write_bytes(b"no database at all" * 100)
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "broken.sqlite3"))

    assert health(client, "/readyz") == UNAVAILABLE


def test_an_empty_database_is_not_ready(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sqlite3.connect(tmp_path / "empty.sqlite3").execute("CREATE TABLE t (x)").connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "empty.sqlite3"))

    assert health(client, "/readyz") == UNAVAILABLE


def test_a_store_that_is_gone_is_seen_and_the_reason_stays_in_the_log(
    client: Client, world: World, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(data_dir / "orgs")

    assert health(client, "/readyz") == UNAVAILABLE
    assert [record.levelname for record in caplog.records if record.name == "brain.health"] == ["WARNING"]


def test_a_data_directory_of_another_version_is_not_ready(
    client: Client, world: World, data_dir: Path
) -> None:
    stores.close_all()
    (data_dir / "FORMAT").write_text("99\n")

    assert health(client, "/readyz") == UNAVAILABLE


@pytest.mark.parametrize(("bound", "value"), [("RECORDS_MAX", 0), ("BYTES_MAX", 100), ("SECONDS_MAX", 0.0)])
def test_checkpoints_that_are_long_overdue_by_any_measure_make_unready(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    world.entry("a.md", "text\n" * 500)
    assert health(client, "/readyz") == OK
    monkeypatch.setattr(checkpoint, bound, value)

    assert health(client, "/readyz") == UNAVAILABLE
    store_of(world.organization_id).checkpoint()

    assert health(client, "/readyz") == OK


def test_health_takes_no_other_method(client: Client, db: None) -> None:
    assert client.post("/healthz").status_code == client.post("/readyz").status_code == 405
