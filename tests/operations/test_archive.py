import hashlib
import io
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kb.store.archive import (
    MANIFEST,
    MANIFEST_SUM,
    ArchivedFile,
    ArchiveReader,
    ArchiveWriter,
    BadArchive,
    Manifest,
    Place,
)
from kb.store.restoring import prove

ORGANIZATION = "org_acme"
HEAD = Manifest(
    layout="1",
    made_at="2026-11-30T09:15:00.000000Z",
    organization_id=ORGANIZATION,
    log_end=Place(7, 1, 900),
    has_secrets=False,
)
FILES = {
    "FORMAT": b"1\n",
    "database": b"x" * 700,
    f"orgs/{ORGANIZATION}/content/.registry.jsonl": b"lines\n",
    f"orgs/{ORGANIZATION}/content/{'deep/' * 60}page.md": b"text\n",
    f"orgs/{ORGANIZATION}/private/log/00000000000000000001.log": b"log" * 300,
    f"orgs/{ORGANIZATION}/private/outcomes/ab/ab{'0' * 62}.json": b"{}",
    f"orgs/{ORGANIZATION}/private/backup/gen/1.git/refs/heads/\u00fc": b"tip\n",
    f"orgs/{ORGANIZATION}/content/empty.md": b"",
}


def written(target: Path, files: dict[str, bytes] = FILES) -> Path:
    with ArchiveWriter(target) as archive:
        for path, data in files.items():
            archive.add(path, data)
        archive.finish(HEAD)
    return target


def made_by_hand(
    target: Path,
    files: dict[str, bytes] = FILES,
    *,
    change: Callable[[tarfile.TarInfo], object] = lambda member: None,
    manifest: Manifest = HEAD,
    unlisted: dict[str, bytes] | None = None,
) -> Path:
    """The same archive by the standard library, with members changed on the way."""
    listed = tuple(
        ArchivedFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()
    )
    text = msgspec.json.encode(msgspec.structs.replace(manifest, files=listed))
    everything = {
        **files,
        **(unlisted or {}),
        MANIFEST: text,
        MANIFEST_SUM: hashlib.sha256(text).hexdigest().encode(),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in everything.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            change(member)
            archive.addfile(member, io.BytesIO(data) if member.isreg() else None)
        length = archive.offset
    target.write_bytes(packed.getvalue()[:length] + bytes(1024))
    return target


def read(archive: Path) -> dict[str, bytes]:
    with ArchiveReader(archive) as reader:
        contents = prove(reader)
        return {member.path: reader.read(member, most_bytes=10_000) for _, member, _ in contents.files}


def refusal(archive: Path) -> str:
    with ArchiveReader(archive) as reader, pytest.raises(BadArchive) as refused:
        prove(reader)
    return str(refused.value)


def test_what_was_written_is_read_and_any_tar_reads_it_too(tmp_path: Path) -> None:
    archive = written(tmp_path / "backup.tar")

    assert read(archive) == FILES
    with tarfile.open(archive) as tar:
        assert [member.name for member in tar] == [*FILES, MANIFEST, MANIFEST_SUM]
        assert {(member.mode, member.isreg(), member.uid) for member in tar} == {(0o600, True, 0)}
        page = tar.extractfile(list(FILES)[3])
        assert page is not None
        assert page.read() == b"text\n"


def test_an_archive_by_hand_is_as_good_so_that_the_refusals_below_mean_something(tmp_path: Path) -> None:
    assert read(made_by_hand(tmp_path / "backup.tar")) == FILES


def test_any_flipped_bit_is_seen(tmp_path: Path) -> None:
    archive = written(tmp_path / "backup.tar")
    data = archive.read_bytes()
    chance = random.Random(7)

    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << chance.randrange(8)
        archive.write_bytes(flipped)
        refusal(archive)


def test_an_archive_that_was_cut_anywhere_is_refused(tmp_path: Path) -> None:
    archive = written(tmp_path / "backup.tar")
    data = archive.read_bytes()

    for length in [*range(0, len(data), 512), len(data) - 1, len(data) - 1023]:
        archive.write_bytes(data[:length])
        refusal(archive)


def test_something_behind_the_end_is_refused(tmp_path: Path) -> None:
    archive = written(tmp_path / "backup.tar")
    archive.write_bytes(archive.read_bytes() + bytes(512))

    assert refusal(archive) == "something stands behind its end"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../outside.md",
        f"orgs/{ORGANIZATION}/content/../../../outside.md",
        f"orgs/{ORGANIZATION}/content//page.md",
        f"orgs/{ORGANIZATION}/content/./page.md",
        f"orgs/{ORGANIZATION}/content/page.txt",
        f"orgs/{ORGANIZATION}/content/.git/page.md",
        f"orgs/{ORGANIZATION}/content/con.md",
        f"orgs/{ORGANIZATION}/content",
        f"orgs/{ORGANIZATION}/private/applied",
        f"orgs/{ORGANIZATION}/private/checkpoint",
        f"orgs/{ORGANIZATION}/private/locks/writer",
        f"orgs/{ORGANIZATION}/private/log/1.log",
        f"orgs/{ORGANIZATION}/private/log/00000000000000000001.log/x",
        f"orgs/{ORGANIZATION}/private/outcomes/ab/cd.json",
        f"orgs/{ORGANIZATION}/private/outcomes/{'ab' * 32}.json",
        f"orgs/{ORGANIZATION}/private/backup",
        f"orgs/{ORGANIZATION}/private/backup/../x",
        f"orgs/{ORGANIZATION}/private/backup/a\nb",
        f"orgs/{ORGANIZATION}/private/backup/{'x' * 300}",
        "orgs/org_other/content/page.md",
        "secret_key",
        "db.sqlite3",
    ],
)
def test_a_path_that_no_backup_holds_is_refused_although_it_is_listed(tmp_path: Path, path: str) -> None:
    archive = made_by_hand(tmp_path / "backup.tar", {**FILES, path: b"text\n"})

    assert "is nothing that a backup holds" in refusal(archive)


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.DIRTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.CONTTYPE,
        tarfile.GNUTYPE_SPARSE,
        tarfile.AREGTYPE,
    ],
)
def test_nothing_but_regular_files_is_taken(tmp_path: Path, kind: bytes) -> None:
    def change(member: tarfile.TarInfo) -> None:
        if member.name == "database":
            member.type, member.linkname = kind, "/etc/passwd"

    assert refusal(made_by_hand(tmp_path / "backup.tar", change=change)) == "'database' is no regular file"


def test_a_file_that_is_not_listed_is_refused(tmp_path: Path) -> None:
    extra = {f"orgs/{ORGANIZATION}/content/extra.md": b"extra\n"}

    assert "does not hold the files" in refusal(made_by_hand(tmp_path / "one.tar", unlisted=extra))


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    with ArchiveWriter(archive) as writer:
        for path, data in [*FILES.items(), ("database", b"another")]:
            writer.add(path, data)
        writer.finish(HEAD)

    assert refusal(archive) == "'database' is in it twice"


def test_a_listed_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    def rename(member: tarfile.TarInfo) -> None:
        if member.name == "database":
            member.name = f"orgs/{ORGANIZATION}/content/other.md"

    assert "does not hold the files" in refusal(made_by_hand(tmp_path / "one.tar", change=rename))


@pytest.mark.parametrize("missing", ["FORMAT", "database"])
def test_what_belongs_into_every_backup_must_be_there(tmp_path: Path, missing: str) -> None:
    files = {path: data for path, data in FILES.items() if path != missing}

    assert "belongs into it is missing" in refusal(made_by_hand(tmp_path / "one.tar", files))


def test_sizes_that_the_file_does_not_have_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    archive = written(tmp_path / "backup.tar")
    data = archive.read_bytes()
    for size in (2**32, 2**62, -1):
        header = tarfile.TarInfo("FORMAT")
        header.size = size
        block = header.tobuf(tarfile.GNU_FORMAT)
        assert len(block) == 512
        archive.write_bytes(block + data[512:])
        assert refusal(archive) == "it ends inside a file"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "it has the format 2; this version of Brain reads 1 alone"),
        ({"layout": "2"}, "it has the layout '2'"),
        ({"organization_id": "../.."}, "it names no organization"),
        ({"has_secrets": True}, "something that belongs into it is missing"),
    ],
)
def test_what_this_version_does_not_know_is_said(
    tmp_path: Path, change: dict[str, object], says: str
) -> None:
    manifest = msgspec.structs.replace(HEAD, **change)

    assert says in refusal(made_by_hand(tmp_path / "one.tar", manifest=manifest))


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    for data in (b"", b"text\n" * 1000, bytes(10240), random.Random(3).randbytes(5000)):
        (tmp_path / "backup.tar").write_bytes(data)
        refusal(tmp_path / "backup.tar")


def test_an_archive_has_its_name_only_when_it_is_whole_and_replaces_nothing(tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    with ArchiveWriter(target) as archive:
        archive.add("FORMAT", b"1\n")
        assert not target.exists()
    assert list(tmp_path.iterdir()) == []

    with ArchiveWriter(target) as archive:
        target.write_text("of somebody else")
        with pytest.raises(FileExistsError):
            archive.finish(HEAD)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("backup.tar", "of somebody else")
    ]
    with pytest.raises(FileExistsError), ArchiveWriter(target):
        pass


def test_an_archive_that_was_begun_again_holds_nothing_of_the_first_attempt(tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    with ArchiveWriter(target) as archive:
        archive.add("database", b"old" * 1_000_000)
        archive.restart()
        for path, data in FILES.items():
            archive.add(path, data)
        archive.finish(HEAD)

    assert read(target) == FILES


def test_a_file_that_shrinks_while_it_is_copied_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="changed its size"), ArchiveWriter(tmp_path / "backup.tar") as archive:
        archive.add_stream("database", 10, [b"short"])
