"""The tree opened along the way to a folder."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.errors import InvalidArgument, NotFound
from core.types import FolderLocator, Role
from kb.services.browse_folders import browse_folders
from kb.services.reveal_folder import Level, reveal_folder
from tests.world import World


def _at(path: str) -> FolderLocator:
    return FolderLocator(folder_path=path)


def _names(level: Level) -> list[str]:
    return [child.name for child in level.children.items]


@pytest.fixture(autouse=True)
def tree(world: World) -> None:
    for path in ("Eng/Billing", "Eng/Payments/Checkout/Rollbacks", "Eng/Payments/Refunds", "Handbook"):
        world.folder(path)


def test_every_level_on_the_way_is_open(world: World) -> None:
    ada = world.person("ada", role=Role.READER)

    levels = reveal_folder(ada, _at("eng/payments"))

    assert [level.folder.path for level in levels] == ["", "Eng", "Eng/Payments"]
    assert [_names(level) for level in levels] == [
        ["Eng", "Handbook"],
        ["Billing", "Payments"],
        ["Checkout", "Refunds"],
    ]
    assert [level.beyond for level in levels] == [None, None, None]


def test_labels_lead_to_what_is_visible_and_nothing_else(world: World) -> None:
    priya = world.person("priya", role=Role.READER, on="Eng/Payments/Checkout")

    levels = reveal_folder(priya, _at("Eng/Payments/Checkout"))

    assert [_names(level) for level in levels] == [["Eng"], ["Payments"], ["Checkout"], ["Rollbacks"]]
    assert [level.folder.role for level in levels] == [None, None, None, "reader"]


def test_the_way_never_breaks_however_short_the_levels_are(world: World) -> None:
    ada = world.person("ada", role=Role.READER)

    levels = reveal_folder(ada, _at("Eng/Payments/Refunds"), limit=1)

    assert [_names(level) for level in levels] == [["Eng"], ["Billing"], ["Checkout"], []]
    assert [level.beyond.name if level.beyond else None for level in levels] == [
        None,
        "Payments",
        "Refunds",
        None,
    ]


def test_a_level_goes_on_where_the_list_of_its_folder_does(world: World) -> None:
    ada = world.person("ada", role=Role.READER)
    level = reveal_folder(ada, _at("Eng"), limit=1)[-1]

    more = browse_folders(ada, _at("Eng"), limit=1, cursor=level.children.next_cursor)

    assert [folder.name for folder in more.items] == ["Payments"]


def test_it_takes_one_query_however_deep(world: World) -> None:
    ada = world.person("ada", role=Role.READER)
    with CaptureQueriesContext(connection) as queries:
        reveal_folder(ada, _at("Eng/Payments/Checkout/Rollbacks"))

    assert len(queries) == 1


@pytest.mark.parametrize("path", ["Eng/Billing", "Eng/Nothing", "Handbook"])
def test_hidden_and_missing_folders_are_not_found(world: World, path: str) -> None:
    priya = world.person("priya", role=Role.READER, on="Eng/Payments")

    with pytest.raises(NotFound):
        reveal_folder(priya, _at(path))


def test_a_locator_that_no_folder_has_is_refused(world: World) -> None:
    with pytest.raises(InvalidArgument):
        reveal_folder(world.person("ada"), _at("a//b"))
