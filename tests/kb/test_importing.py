"""Importing a tree of Markdown: all of it or nothing, under names that fit."""

from pathlib import Path

import pytest

from core.types import EntryLocator, FolderLocator, Role
from kb.services.browse_entries import browse_entries
from kb.services.import_markdown import ImportReport, import_markdown
from kb.services.read_entry import read_entry
from kb.store.stores import store_of
from tests.world import World

pytestmark = pytest.mark.django_db


def lay(source: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return source


def paths_in(world: World) -> list[str]:
    return [entry.path for entry in browse_entries(world.system, recursive=True, limit=100).items]


def imported(world: World, source: Path, into: str = "Handbook", **options: bool) -> ImportReport:
    return import_markdown(world.system, source, into, **options)  # type: ignore[arg-type]


def test_a_tree_comes_in_as_it_is_with_titles_from_headings(world: World, tmp_path: Path) -> None:
    source = lay(
        tmp_path / "handbook",
        {
            "README.md": "# Welcome *all*\n\ntext\r\n",
            "on-call/paging.md": "no heading here\n",
            "on-call/deep/er.md": "---\ntitle: x\n---\n\n```\n# not a heading\n```\n\nReal { #real }\n====\n",
        },
    )

    report = imported(world, source, into="Company/Handbook")

    assert paths_in(world) == [
        "Company/Handbook/on-call/deep/er.md",
        "Company/Handbook/on-call/paging.md",
        "Company/Handbook/README.md",
    ]
    assert sorted(report.imported) == sorted(paths_in(world))
    titles = [entry.title for entry in browse_entries(world.system, recursive=True).items]
    assert titles == ["Real", "paging", "Welcome all"]
    assert world.text_of("Company/Handbook/README.md") == "# Welcome *all*\n\ntext\n"


def test_one_file_that_does_not_fit_means_that_nothing_is_imported(world: World, tmp_path: Path) -> None:
    before = store_of(world.organization_id).layout.read_applied()
    source = lay(
        tmp_path / "mixed",
        {
            "good.md": "fine\n",
            "_draft.md": "its name begins with an underscore\n",
            "picture.png": b"\x89PNG",
            "latin.md": "für".encode("latin-1"),
            "nul.md": "a\x00b",
            "big.md": b"a" * (10 * 1024 * 1024 + 1),
        },
    )

    report = imported(world, source)

    assert [path for path, _ in report.refused] == [
        "_draft.md",
        "big.md",
        "latin.md",
        "nul.md",
        "picture.png",
    ]
    assert paths_in(world) == []
    assert store_of(world.organization_id).layout.read_applied() == before


def test_rename_gives_fitting_names_and_says_which(world: World, tmp_path: Path) -> None:
    source = lay(
        tmp_path / "names",
        {
            "_llm-test.md": "a\n",
            "llm-test.md": "b\n",
            "Straße & mehr.md": "c\n",
            "con.md": "d\n",
            "LICENSE": "e\n",
            "übersicht/" + "x" * 80 + ".md": "f\n",
            "日本.md": "g\n",
            "中文.md": "h\n",
            "한국어.md": "i\n",
        },
    )

    report = imported(world, source, rename=True)

    assert not report.refused
    assert dict(report.renamed) == {
        "_llm-test.md": "llm-test-2.md",
        "Straße & mehr.md": "Strae - mehr.md",
        "con.md": "con-page.md",
        "LICENSE": "LICENSE.md",
        "übersicht": "ubersicht",
        "übersicht/" + "x" * 80 + ".md": "ubersicht/" + "x" * 64 + ".md",
        "中文.md": "page.md",
        "日本.md": "page-2.md",
        "한국어.md": "page-3.md",
    }
    assert len(paths_in(world)) == 9
    assert world.text_of("Handbook/llm-test.md") == "b\n"


def test_links_and_dot_names_are_skipped_and_listed(world: World, tmp_path: Path) -> None:
    source = lay(tmp_path / "links", {"a.md": "a\n", ".git/config.md": "no\n", ".hidden.md": "no\n"})
    (tmp_path / "secret.md").write_text("outside\n")
    (source / "link.md").symlink_to(tmp_path / "secret.md")
    (source / "folder").symlink_to(tmp_path)

    report = imported(world, source)

    assert [path for path, _ in report.skipped] == [".git", ".hidden.md", "folder", "link.md"]
    assert paths_in(world) == ["Handbook/a.md"]


def test_names_that_differ_in_case_alone_are_refused_or_renamed(world: World, tmp_path: Path) -> None:
    source = lay(tmp_path / "case", {"a/x.md": "1\n", "A/x.md": "2\n", "b/Y.md": "3\n", "b/y.md": "4\n"})

    assert [path for path, _ in imported(world, source).refused] == ["a", "b/y.md"]
    report = imported(world, source, rename=True)

    assert report.renamed == [("a", "a-2"), ("b/y.md", "b/y-2.md")]
    assert sorted(paths_in(world)) == [
        "Handbook/A/x.md",
        "Handbook/a-2/x.md",
        "Handbook/b/Y.md",
        "Handbook/b/y-2.md",
    ]


def test_an_entry_that_is_there_is_never_replaced(world: World, tmp_path: Path) -> None:
    world.entry("Handbook/a.md", "written by people\n")
    source = lay(tmp_path / "again", {"a.md": "from disk\n", "b.md": "new\n"})

    report = imported(world, source)

    assert [path for path, _ in report.refused] == ["a.md"]
    assert world.text_of("Handbook/a.md") == "written by people\n"
    assert paths_in(world) == ["Handbook/a.md"]


def test_a_dry_run_tells_the_same_and_changes_nothing(world: World, tmp_path: Path) -> None:
    source = lay(tmp_path / "dry", {"a.md": "a\n", "b/c.md": "c\n"})

    told = imported(world, source, dry_run=True)

    assert paths_in(world) == []
    assert imported(world, source).imported == told.imported == ["Handbook/a.md", "Handbook/b/c.md"]


def test_recovering_refuses_a_target_that_any_grant_reaches(world: World, tmp_path: Path) -> None:
    world.folder("Handbook/Old")
    world.person("priya", role=Role.READER, on="Handbook")
    source = lay(tmp_path / "lost", {"a.md": "a\n", "deep/er.md": "b\n"})

    for target in ("Handbook", "Handbook/Old", "Handbook/New"):
        report = imported(world, source, into=target, recover=True)
        assert len(report.refused) == 2
    assert paths_in(world) == []

    assert not imported(world, source, into="Recovered", recover=True).refused
    assert paths_in(world) == ["Recovered/a.md", "Recovered/deep/er.md"]


def test_an_import_is_one_record_of_the_log(world: World, tmp_path: Path) -> None:
    store = store_of(world.organization_id)
    with store.snapshot() as view:
        before = view.lsn
    source = lay(tmp_path / "many", {f"f{number}/e{number}.md": f"{number}\n" for number in range(50)})

    imported(world, source)

    with store.snapshot() as view:
        assert view.lsn == before + 1
    assert read_entry(world.system, EntryLocator(path="Handbook/f7/e7.md")).content == "7\n"
    assert len(browse_entries(world.system, FolderLocator(), recursive=True, limit=100).items) == 50
