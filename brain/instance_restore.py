"""Restoring an instance backup into an empty data directory."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from access import audit
from access.audit import AuditAction
from access.principals import system_principal
from brain import first_start
from core import sealing
from core.progress import SILENT, Progress
from kb.store import restoring
from kb.store.archive import ArchiveReader, BadArchive
from kb.store.check import CheckReport
from kb.store.restoring import Contents, Restore

SECRETS_MAX_BYTES = 64 * 1024
MADE_BY_NEWER = "it was made by a newer version of Brain: restore it with that one"


class Disagrees(Exception):
    """What was restored does not agree with itself. Carries what was found."""

    def __init__(self, report: CheckReport) -> None:
        super().__init__(f"{len(report.disagreements)} disagree")
        self.report = report


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored, as it was at ``made_at``. ``has_keys`` says whether versions are what they were."""

    made_at: str
    has_keys: bool
    report: CheckReport


def has_secrets(source: Path) -> bool:
    """Whether the backup's last word is that keys come with it. Only ``restore`` proves anything of it.

    Raises BadArchive, OSError.
    """
    with ArchiveReader(source) as reader:
        return any(member.path == restoring.SECRETS for member in reader.members())


def restore(source: Path, *, passphrase: str | None = None, progress: Progress = SILENT) -> Restored:
    """Prove the backup, then make the data directory of it. Without ``passphrase`` the keys in it are left alone.

    Raises BadArchive, CannotUnseal, TargetNotEmpty, NoRoom, UnsuitableFilesystem, Disagrees, OSError: then the
    data directory is as it was.
    """
    with first_start.one_at_a_time(), ArchiveReader(source) as reader:
        restoring.check_target(settings.DATA_DIR)
        contents = restoring.prove(reader, progress)
        keys = _unseal(reader, contents, passphrase) if passphrase is not None else {}
        with Restore(reader, contents, settings.DATA_DIR) as begun:
            begun.extract(progress)
            folder_ids = _prove_database(begun.beside, contents.manifest.organization_id)
            report = begun.check(progress)
            for folder_id in sorted(folder_ids - report.folder_ids):
                report.add(f"grants on {folder_id}", "there is no such folder")
            if report.disagreements:
                raise Disagrees(report)
            for name, secret in keys.items():
                begun.put_key(name, secret)
            connections.close_all()
            begun.commit()
    first_start.migrate()
    audit.record(
        system_principal(contents.manifest.organization_id),
        AuditAction.RESTORE_INSTANCE,
        after=f"as of {contents.manifest.made_at}",
    )
    return Restored(contents.manifest.made_at, bool(keys), report)


def _unseal(reader: ArchiveReader, contents: Contents, passphrase: str) -> dict[str, str]:
    if contents.sealed is None:
        raise BadArchive("there are no secrets in it")
    sealed = reader.read(contents.sealed, most_bytes=SECRETS_MAX_BYTES)
    try:
        keys = msgspec.json.decode(sealing.unseal(sealed, passphrase), type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise BadArchive("its secrets have an unknown form") from error
    if not keys.keys() <= set(restoring.KEYS):
        raise BadArchive("its secrets have an unknown form")
    return keys


def _prove_database(beside: Path, organization_id: str) -> set[str]:
    """Prove that the database is whole, of this organization and not too new; returns the folders with grants."""
    path = beside / restoring.DATABASE_FILE
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            [(verdict,)] = database.execute("PRAGMA integrity_check(1)").fetchall()
            if verdict != "ok":
                raise BadArchive(f"its database is damaged: {verdict}")
            if database.execute("PRAGMA foreign_key_check").fetchone():
                raise BadArchive("its database points to rows that it does not have")
            applied = set(database.execute("SELECT app, name FROM django_migrations"))
            organizations = database.execute("SELECT id FROM access_organization").fetchall()
            folders = database.execute("SELECT id FROM access_folder").fetchall()
    except sqlite3.Error as error:
        raise BadArchive("its database cannot be read") from error
    known = MigrationLoader(None, ignore_no_migrations=True)
    if any(app in known.migrated_apps and (app, name) not in known.disk_migrations for app, name in applied):
        raise BadArchive(MADE_BY_NEWER)
    if organizations != [(organization_id,)]:
        raise BadArchive("its database is of another organization")
    return {folder_id for (folder_id,) in folders}
