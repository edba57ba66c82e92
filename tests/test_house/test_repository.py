"""The checkout as a stranger gets it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.test_house.repository import ROOT, files

TEXT = {
    "",
    ".cfg",
    ".css",
    ".html",
    ".in",
    ".js",
    ".json",
    ".md",
    ".mjs",
    ".py",
    ".toml",
    ".ts",
    ".txt",
    ".yml",
    ".yaml",
}
ANYWHERE = re.compile(r"(?<![\w.-])/(?:work|root|home/[a-z]+|Users/[A-Za-z]+|opt/(?:pypi|wheels))/[\w.-]+")
COMMANDS = ("setup", "run", "test", "mutants", "check", "bench", "lock")


def texts() -> list[Path]:
    return [path for path in files() if path.suffix in TEXT]


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    named = [
        path
        for path in texts()
        if path.name != Path(__file__).name and ANYWHERE.search(path.read_text("utf-8"))
    ]

    assert named == []


def test_what_is_started_can_be_started() -> None:
    for name in ("manage.py", "scripts/bootstrap", "scripts/test-tools", ".ci/run"):
        assert os.access(ROOT / name, os.X_OK), name


@pytest.mark.parametrize("script", ["scripts/bootstrap", "scripts/test-tools"])
def test_the_scripts_are_plain_shell(script: str) -> None:
    checked = subprocess.run(["sh", "-n", script], cwd=ROOT, capture_output=True, text=True)

    assert (checked.returncode, checked.stderr) == (0, "")


def test_make_knows_the_commands_of_the_documentation() -> None:
    for command in COMMANDS:
        asked = subprocess.run(
            ["make", "--dry-run", "--no-print-directory", command], cwd=ROOT, capture_output=True, text=True
        )
        assert asked.returncode == 0, asked.stderr


def test_setup_does_nothing_when_nothing_changed(tmp_path: Path) -> None:
    # A checkout whose environment is up to date, in which any installation would fail.
    for name in ("requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/bootstrap", tmp_path / "scripts/bootstrap")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(ROOT / ".venv/bin/python")
    shutil.copy(tmp_path / "requirements.txt", tmp_path / ".venv/installed-requirements.txt")

    quick = subprocess.run(["scripts/bootstrap"], cwd=tmp_path, capture_output=True, text=True)

    assert (quick.returncode, quick.stdout, quick.stderr) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / ".venv").iterdir()) == [
        "bin",
        "installed-requirements.txt",
    ]


def test_setup_says_which_python_it_needs(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/bootstrap", tmp_path / "scripts/bootstrap")
    (tmp_path / "requirements.txt").touch()
    (tmp_path / "bin").mkdir()
    for name in ("sh", "dirname", "mkdir", "cmp"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)

    refused = subprocess.run(
        [tmp_path / "bin/sh", "scripts/bootstrap"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
    )

    assert refused.returncode == 1
    assert "Brain needs Python 3.11 or newer" in refused.stderr


def test_every_decision_tells_context_choice_and_price_and_is_listed() -> None:
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    listed = (ROOT / "docs/decisions/README.md").read_text("utf-8")

    assert len(decisions) >= 7
    for number, decision in enumerate(decisions, 1):
        text = decision.read_text("utf-8")
        assert decision.name.startswith(f"{number:04}-")
        assert text.startswith(f"# {number:04}: ")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Choice", "Price"]
        assert f"[{number:04}]({decision.name}) | {text.partition(': ')[2].partition(chr(10))[0]} |" in listed


def test_every_setting_of_the_environment_is_documented() -> None:
    read = set(re.findall(r'env\.\w+\("(BRAIN_[A-Z_]+)"', (ROOT / "brain/settings.py").read_text("utf-8")))
    documented = set(
        re.findall(r"`(BRAIN_[A-Z_]+?)(?:_FILE)?`", (ROOT / "docs/reference/settings.md").read_text("utf-8"))
    )

    assert len(read) >= 7
    assert read == documented


@pytest.mark.django_db
def test_models_and_migrations_agree() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_links_between_our_own_pages_lead_somewhere() -> None:
    broken = []
    for page in [path for path in files(".md") if not path.is_relative_to(ROOT / "tests")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")):
            if "://" not in target and not (page.parent / target.replace("%20", " ")).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")

    assert broken == []
