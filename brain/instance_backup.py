"""An instance backup: database, content, log and what is prepared for the Git remote, as they were at one moment.

Grants and content are one state, because a change of either holds the store's ``writer``, and so does the copy while it
copies the database.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.db import connection

from access import audit
from access.audit import AuditAction
from access.principals import Principal
from core import clock, sealing
from core.progress import SILENT, Progress
from kb.store import copying, faults, layout, restoring, upkeep
from kb.store.archive import ArchiveWriter, Manifest, Place
from kb.store.copying import CopiedFile, Copy, DamagedFile, Moved
from kb.store.stores import store_of

UPKEEP_WAIT_SECONDS = 60.0
PUBLICATION_WAIT_SECONDS = 60.0
DATABASE_WAIT_SECONDS = 20
TRIES = 3


class CannotBackUp(Exception):
    """This installation cannot be copied as it is. The message says why, for an administrator."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What was copied. ``writer_seconds`` is how long nobody could save."""

    size_bytes: int
    lsn: int
    has_secrets: bool
    writer_seconds: float


def back_up(
    principal: Principal, target: Path, *, passphrase: str | None = None, progress: Progress = SILENT
) -> BackedUp:
    """Write an instance backup to ``target``, which must not exist, while people go on working.

    With ``passphrase`` the keys of the installation come with it, sealed.

    Raises CannotBackUp, FileExistsError, LockBusy (a sweep, purge or publication did not end in a minute),
    StorageUnavailable, OSError.
    """
    if connection.vendor != "sqlite":
        raise CannotBackUp("The database is not SQLite: back it up with its own tools.")
    if target.resolve().is_relative_to(settings.DATA_DIR.resolve()):
        raise CannotBackUp("The backup would lie in the data directory itself. Name a file elsewhere.")
    store = store_of(principal.organization_id)
    if faults.is_marked(store.layout):
        raise CannotBackUp(
            "A media fault is marked. Run `manage.py check_store`; until it is repaired, stop Brain and copy the whole "
            "data directory as it is."
        )
    with (
        upkeep.hold_upkeep(store.layout, wait_seconds=UPKEEP_WAIT_SECONDS),
        ArchiveWriter(target, progress) as archive,
    ):
        for attempt in range(TRIES):
            upkeep.remove_leftovers(store.layout)
            archive.restart()
            copy = Copy(store)
            try:
                done = _write(archive, copy, principal.organization_id, passphrase, progress)
                break
            except DamagedFile as damaged:
                raise CannotBackUp(f"{damaged} is damaged. Run `manage.py check_store`.") from damaged
            except Moved as moved:
                if attempt == TRIES - 1:
                    raise CannotBackUp(
                        f"{moved} and others changed while they were copied. Try again."
                    ) from moved
            finally:
                copy.close()
                upkeep.remove_leftovers(store.layout)
    audit.record(
        principal, AuditAction.BACK_UP_INSTANCE, after="with secrets" if passphrase else "without secrets"
    )
    return done


def _write(
    archive: ArchiveWriter, copy: Copy, organization_id: str, passphrase: str | None, progress: Progress
) -> BackedUp:
    archive.add(layout.FORMAT_FILE, f"{layout.FORMAT}\n".encode("ascii"))
    opened = store_of(organization_id).layout
    with copying.hold_publication(opened, wait_seconds=PUBLICATION_WAIT_SECONDS):
        writer_seconds = copy.take(_copy_database)
        progress.begin("Copying", copy.size)
        for file in copying.staging_files(opened):
            _add(archive, file)
    _clean_database(copy.directory)
    _add(archive, copy.database())
    for file in copy.files():
        _add(archive, file)
    if passphrase is not None:
        keys = copying.read_keys(settings.DATA_DIR, restoring.KEYS)
        archive.add(restoring.SECRETS, sealing.seal(msgspec.json.encode(keys), passphrase))
    manifest = Manifest(
        layout=layout.FORMAT,
        made_at=clock.timestamp(),
        organization_id=organization_id,
        log_end=Place(copy.mark.lsn, copy.mark.segment, copy.mark.offset),
        has_secrets=passphrase is not None,
    )
    return BackedUp(archive.finish(manifest), copy.mark.lsn, manifest.has_secrets, writer_seconds)


def _add(archive: ArchiveWriter, file: CopiedFile) -> None:
    archive.add_stream(file.path, file.size, file.chunks)


def _copy_database(directory: int) -> None:
    source = f"file:{quote(str(connection.settings_dict['NAME']))}?mode=ro"
    with (
        closing(sqlite3.connect(source, uri=True, timeout=DATABASE_WAIT_SECONDS)) as live,
        closing(sqlite3.connect(_path_of(directory))) as copy,
    ):
        live.backup(copy)


def _clean_database(directory: int) -> None:
    """Take out what would let somebody in: a session's key is as good as a password while it lasts."""
    with closing(sqlite3.connect(_path_of(directory), isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode=DELETE")
        copy.execute("DELETE FROM django_session")
        copy.execute("VACUUM")
        [(verdict,)] = copy.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise CannotBackUp(f"The database is damaged: {verdict}")


def _path_of(directory: int) -> str:
    return f"/proc/self/fd/{directory}/{copying.DATABASE}"
