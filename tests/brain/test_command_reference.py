"""The reference of commands names each one that there is, with every option it takes, and no other."""

import argparse
import re

import pytest
from django.core.management import BaseCommand, get_commands, load_command_class

from tests.server import ROOT

REFERENCE = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
# Django's own command, which only refuses here.
REFUSING = {"createsuperuser"}
COMMANDS = sorted(name for name, app in get_commands().items() if app == "brain" and name not in REFUSING)
DJANGOS = {action.dest for action in BaseCommand().create_parser("manage.py", "any")._actions}


def options_of(name: str) -> set[str]:
    parser = load_command_class("brain", name).create_parser("manage.py", name)
    return {
        option
        for action in parser._actions
        if action.dest not in DJANGOS and not isinstance(action, argparse._HelpAction)
        for option in action.option_strings
    }


def section_of(name: str) -> str:
    found = re.search(rf"^### [^\n]*`{name}\b.*?(?=^##|\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_stands_in_the_reference_with_all_its_options(name: str) -> None:
    assert section_of(name)
    assert {option for option in options_of(name) if option not in section_of(name)} == set()


def test_the_reference_has_no_command_that_does_not_exist() -> None:
    headings = re.findall(r"^### (.+)$", REFERENCE, re.MULTILINE)
    told = {name for heading in headings for name in re.findall(r"`([a-z_]+)", heading)}

    assert told == set(COMMANDS)
