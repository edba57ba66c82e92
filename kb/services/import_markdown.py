"""Import a tree of Markdown files, all of it or nothing.

Three steps: collect (read the files and judge them alone), plan (find their places in the knowledge base), save
(one record). Nothing is written before every file has its place.
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from access import authorizer
from access.authorizer import Sight
from access.principals import Principal
from access.services.has_grants import has_grants
from core import limits, names, safe_open
from core.errors import BrainError, LimitExceeded
from core.progress import SILENT, Progress
from core.types import FolderRef
from kb.content import Content, prepare_content
from kb.headings import first_heading
from kb.services.create_entry import add_entry, check_name_is_free, check_type
from kb.services.create_folder import add_folder, add_missing_folders
from kb.store.content_store import Transaction
from kb.store.record import Subject
from kb.store.stores import store_of

FALLBACK_STEM = "page"
# ``# Install { #install }``: several generators keep an anchor in the heading's text.
_ANCHOR = re.compile(r"\s*\{\s*#[^{}\s]+\s*\}\s*$")


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file of an import: where it came from and where it goes, both with ``/`` between the names."""

    source: str
    path: str
    title: str
    content: Content


@dataclass(slots=True)
class ImportReport:
    """What an import did, or would do.

    ``refused`` and ``skipped`` pair a source path with the reason; ``renamed`` pairs old and new path. Where
    anything is refused nothing was imported.
    """

    imported: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    size_bytes: int = 0
    renamed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def import_markdown(
    principal: Principal,
    source: Path,
    into: str,
    *,
    type: str = "note",
    dry_run: bool = False,
    rename: bool = False,
    recover: bool = False,
    progress: Progress = SILENT,
) -> ImportReport:
    """Import every ``.md`` file below ``source`` into the folder path ``into``, which is made when it is missing.

    Titles come from the first heading, else from the file name. Links and dot names are skipped and reported.
    ``rename`` gives a fitting name to what the policy refuses. ``recover`` is for a tree that is all that is left of
    a lost instance: it refuses a target that any grant reaches, so that nothing becomes readable by accident.

    Raises InvalidArgument, LimitExceeded, StorageUnavailable, OSError (``source`` cannot be read).
    """
    components = names.split_folder_path(into.strip("/"), field="into")
    check_type(type)
    report = ImportReport()
    progress.begin("Reading", 0)
    collected = list(_collect(source, report, progress, rename=rename))
    report.renamed.sort()
    with store_of(principal.organization_id).transaction() as transaction:
        sight = authorizer.content_sight_of(principal)
        folder, made = add_missing_folders(transaction, sight, principal, components)
        report.folders = [one.path for one in made]
        plan = _Plan(transaction, sight, principal, folder, report, type=type, recover=recover)
        progress.begin("Placing", len(collected))
        for file in collected:
            plan.place(file)
            progress.advance()
        report.refused.sort()
        if not report.refused and not dry_run and report.imported:
            transaction.commit("import", principal.actor, plan.subjects)
    return report


def _collect(
    source: Path, report: ImportReport, progress: Progress, *, rename: bool
) -> Iterator[ImportedFile]:
    taken = _NamesTaken(report, rename=rename)
    files = 0
    for parts in _walk(source, report):
        files += 1
        progress.advance()
        if files > limits.IMPORT_MAX_FILES:
            raise LimitExceeded("source", limit=limits.IMPORT_MAX_FILES, unit="files")
        path = taken.path_of(parts)
        content = None if path is None else _read(source, parts, report)
        if path is None or content is None:
            continue
        report.size_bytes += content.size_bytes
        if report.size_bytes > limits.IMPORT_MAX_BYTES:
            raise LimitExceeded("source", limit=limits.IMPORT_MAX_BYTES, unit="bytes")
        title = _title(content, path)
        yield ImportedFile(source="/".join(parts), path=path, title=title, content=content)


def _walk(source: Path, report: ImportReport) -> Iterator[tuple[str, ...]]:
    pending: list[tuple[str, ...]] = [()]
    while pending:
        folder = pending.pop()
        with os.scandir(source.joinpath(*folder)) as found:
            listed = sorted(found, key=lambda one: one.name)
        files: list[tuple[str, ...]] = []
        below: list[tuple[str, ...]] = []
        for one in listed:
            parts = (*folder, one.name)
            if one.is_symlink():
                report.skipped.append(("/".join(parts), "a symbolic link"))
            elif one.name.startswith("."):
                report.skipped.append(("/".join(parts), "its name begins with a dot"))
            else:
                (below if one.is_dir(follow_symlinks=False) else files).append(parts)
        # Names that fit come first: no other one that is renamed may take theirs, and the links to them, away.
        yield from sorted(
            files, key=lambda parts: not names.is_stem(parts[-1].removesuffix(names.ENTRY_SUFFIX))
        )
        pending.extend(sorted(below, key=lambda parts: not names.is_stem(parts[-1]))[::-1])


class _NamesTaken:
    """Gives each source path its path below the target, and refuses or renames what does not fit."""

    def __init__(self, report: ImportReport, *, rename: bool) -> None:
        self._report = report
        self._rename = rename
        self._folders: dict[tuple[str, ...], str | None] = {(): ""}
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def path_of(self, parts: tuple[str, ...]) -> str | None:
        parent = self._folder_of(parts[:-1])
        if parent is None:
            return None
        return self._fit(parts, parent, is_file=True)

    def _folder_of(self, parts: tuple[str, ...]) -> str | None:
        if parts not in self._folders:
            parent = self._folder_of(parts[:-1])
            self._folders[parts] = None if parent is None else self._fit(parts, parent, is_file=False)
        return self._folders[parts]

    def _fit(self, parts: tuple[str, ...], parent: str, *, is_file: bool) -> str | None:
        original = parts[-1]
        source = "/".join(parts)
        stem, suffix = original, ""
        if is_file:
            stem, dot, extension = original.rpartition(".")
            if not dot and self._rename:
                stem, extension = original, "md"
            if extension.lower() != "md":
                self._report.refused.append((source, "not a .md file"))
                return None
            suffix = names.ENTRY_SUFFIX
        path = self._free(parent, stem if names.is_stem(stem) else _fitting_stem(stem), suffix)
        if path.rpartition("/")[2] != original:
            if not self._rename:
                self._report.refused.append(
                    (source, "the name does not fit; --rename would give it another one")
                )
                return None
            self._report.renamed.append((source, path))
        self._taken.add(names.fold(path))
        return path

    def _free(self, parent: str, stem: str, suffix: str) -> str:
        # "page", "page-2", "page-3": a counter for each wanted path, so that 20,000 equal ones cost 20,000 steps.
        above = f"{parent}/" if parent else ""
        wanted = path = f"{above}{stem}{suffix}"
        while names.fold(path) in self._taken:
            number = self._numbers[names.fold(wanted)] = self._numbers.get(names.fold(wanted), 1) + 1
            path = f"{above}{stem[: limits.NAME_MAX_CHARACTERS - 8].rstrip()}-{number}{suffix}"
        return path


def _fitting_stem(stem: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    fitted = "".join(letter if letter in names.ALLOWED else "-" for letter in ascii_only)
    fitted = re.sub(r"-{2,}", "-", fitted).lstrip(" _-")[: limits.NAME_MAX_CHARACTERS].rstrip(" -")
    if not fitted:
        return FALLBACK_STEM
    return fitted if names.is_stem(fitted) else f"{fitted}-{FALLBACK_STEM}"


def _read(source: Path, parts: tuple[str, ...], report: ImportReport) -> Content | None:
    def refuse(reason: str) -> None:
        report.refused.append(("/".join(parts), reason))

    start = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        data = _read_bounded(start, parts)
    except OSError:
        refuse("not a regular file that can be read")
        return None
    finally:
        os.close(start)
    if data is None:
        refuse(f"over {limits.CONTENT_MAX_BYTES} bytes")
        return None
    try:
        return prepare_content(data.decode("utf-8"))
    except UnicodeDecodeError:
        refuse("not UTF-8")
    except BrainError as error:
        place = (
            f", line {error.details['line']}: {error.details['code_point']}"
            if "line" in error.details
            else ""
        )
        refuse(str(error.details.get("problem", error.message)) + place)
    return None


def _read_bounded(start: int, parts: tuple[str, ...]) -> bytes | None:
    directory = safe_open.open_directory(start, parts[:-1])
    try:
        descriptor = os.open(
            parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
        )
    finally:
        os.close(directory)
    try:
        if os.fstat(descriptor).st_size > limits.CONTENT_MAX_BYTES:
            return None
        return safe_open.read_all(descriptor)
    finally:
        os.close(descriptor)


def _title(content: Content, path: str) -> str:
    heading = first_heading(content.data.decode())
    title = _ANCHOR.sub("", heading or "").strip()[: limits.TITLE_MAX_CHARACTERS].strip()
    if title:
        return title
    return path.rpartition("/")[2].removesuffix(names.ENTRY_SUFFIX).replace("-", " ").replace("_", " ")


class _Plan:
    """Where the files go, written into the transaction as they are placed."""

    def __init__(
        self,
        transaction: Transaction,
        sight: Sight,
        principal: Principal,
        target: FolderRef,
        report: ImportReport,
        *,
        type: str,
        recover: bool,
    ) -> None:
        self._transaction = transaction
        self._sight = sight
        self._principal = principal
        self._report = report
        self._type = type
        self._recover = recover
        self._target = target
        self._folders: dict[str, FolderRef] = {"": target}
        self._reached: dict[str, bool] = {}
        self.subjects: list[Subject] = []

    def place(self, file: ImportedFile) -> None:
        """Find the file's folder, making what is missing, and let the entry be created there."""
        parent_path, _, filename = file.path.rpartition("/")
        try:
            folder = self._folder(parent_path)
            known = self._transaction.folder(folder.id)
            if known is not None:
                check_name_is_free(known, filename)
            names.join(folder.path, filename, field="path")
        except BrainError as error:
            self._report.refused.append((file.source, error.message))
            return
        if self._recover and self._is_reached(folder):
            self._report.refused.append(
                (file.source, "somebody has access to the target; recover into a folder nobody can open")
            )
            return
        self._create(folder, filename, file)

    def _folder(self, path: str) -> FolderRef:
        if path not in self._folders:
            parent_path, _, name = path.rpartition("/")
            parent = self._folder(parent_path)
            above = self._transaction.folder(parent.id)
            line = above.child_named(name) if above else None
            child = self._transaction.folder(line.id) if line else None
            if child is not None:
                self._folders[path] = child.folder
            else:
                self._folders[path] = add_folder(self._transaction, self._principal, parent, name)
                self._report.folders.append(self._folders[path].path)
        return self._folders[path]

    def _is_reached(self, folder: FolderRef) -> bool:
        if folder.id not in self._reached:
            self._reached[folder.id] = has_grants(folder)
        return self._reached[folder.id]

    def _create(self, folder: FolderRef, filename: str, file: ImportedFile) -> None:
        line = add_entry(
            self._transaction,
            self._principal,
            folder,
            file.content,
            filename=filename,
            type=self._type,
            title=file.title,
        )
        path = f"{folder.path}/{filename}" if folder.path else filename
        self.subjects.append(Subject(folder_id=folder.id, path=path, entry_id=line.id))
        self._report.imported.append(path)
