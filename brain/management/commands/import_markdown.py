"""Import a tree of Markdown files into a folder."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from brain.management.shell_command import Refused, ShellCommand
from brain.progress import Bar
from core.types import EntryType
from kb.services.import_markdown import ImportReport, import_markdown

LISTED_MAX = 1_000


class Command(ShellCommand):
    """``import_markdown DIR --into PATH``: all of the tree or nothing of it."""

    help = "Import every .md file below DIR. Any file that does not fit means that nothing is imported."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The contract's arguments."""
        parser.add_argument("source", metavar="DIR", type=Path)
        parser.add_argument("--into", metavar="PATH", required=True, help="target folder; / is the root")
        parser.add_argument("--type", choices=list(EntryType), default=EntryType.NOTE.value)
        parser.add_argument("--dry-run", action="store_true", help="say what would happen, change nothing")
        parser.add_argument("--rename", action="store_true", help="give fitting names to what does not fit")
        parser.add_argument(
            "--recover",
            action="store_true",
            help="the Markdown is all that is left of a lost instance: refuse a target that anybody can open",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import and report; exit 1 where anything is refused."""
        source: Path = options["source"]
        if not source.is_dir():
            raise Refused(f"{source} is not a folder.")
        try:
            with Bar() as bar:
                report = import_markdown(
                    self.system,
                    source,
                    options["into"],
                    type=options["type"],
                    dry_run=options["dry_run"],
                    rename=options["rename"],
                    recover=options["recover"],
                    progress=bar,
                )
        except OSError as error:
            raise Refused(f"{source} cannot be read: {error.strerror}") from error
        self._tell(report, dry_run=options["dry_run"])

    def _tell(self, report: ImportReport, *, dry_run: bool) -> None:
        self._list("skipped", [f"{path}: {reason}" for path, reason in report.skipped])
        self._list("renamed", [f"{old} -> {new}" for old, new in report.renamed])
        self._list("refused", [f"{path}: {reason}" for path, reason in report.refused])
        if report.refused:
            raise Refused(f"Nothing was imported: {len(report.refused):,} do not fit.")
        if not report.imported:
            raise Refused("Nothing was imported: there is no .md file.")
        verb = "Would import" if dry_run else "Imported"
        self.stdout.write(
            f"{verb} {len(report.imported):,} entries ({report.size_bytes:,} bytes) "
            f"and {len(report.folders):,} new folders."
        )

    def _list(self, word: str, lines: list[str]) -> None:
        for line in lines[:LISTED_MAX]:
            self.stdout.write(f"{word}  {line}")
        if len(lines) > LISTED_MAX:
            self.stdout.write(f"{word}  … and {len(lines) - LISTED_MAX:,} more")
