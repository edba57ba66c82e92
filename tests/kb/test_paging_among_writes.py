"""Pages of a list that changes while somebody turns them: what stood all the time comes once, in path order."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from access.pages import Page
from core.types import EntryLocator, FolderLocator
from kb.services.browse_entries import browse_entries
from kb.services.browse_folders import browse_folders
from kb.services.delete_entry import delete_entry
from kb.services.search_entries import search_entries
from tests.world import World

pytestmark = pytest.mark.django_db

FOLDERS = ("", "a/", "a/b/", "a-b/", "m/", "z/")


class Bystander:
    """Creates and deletes entries and makes folders, here and there."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self.gone: set[str] = set()
        self.there = {self.create() for _ in range(25)}

    def create(self) -> str:
        path = f"{self._random.choice(FOLDERS)}{self._random.choice('aMz')}{self._random.randrange(10**9)}.md"
        self._world.entry(path, "a needle\n")
        return path

    def write(self) -> None:
        for _ in range(self._random.randrange(4)):
            self.create()
        if self._random.random() < 0.5:
            self._world.folder(f"{self._random.choice(FOLDERS)}f{self._random.randrange(10**9)}")
        path = self._random.choice(sorted(self.there - self.gone))
        version = browse_version(self._world, path)
        delete_entry(self._world.system, None, EntryLocator(path=path), expected_version=version)
        self.gone.add(path)


def browse_version(world: World, path: str) -> str:
    folder, _, name = path.rpartition("/")
    page = browse_entries(world.system, FolderLocator(folder_path=folder), name_contains=name)
    return page.items[0].version


Listing = Callable[..., Page[Any]]


@pytest.mark.parametrize(
    "listing",
    [
        pytest.param(
            lambda world, **more: browse_entries(world.system, recursive=True, **more), id="entries"
        ),
        pytest.param(lambda world, **more: search_entries(world.system, "needle", **more), id="search"),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_entries_that_stood_all_the_time_come_once_and_in_order(
    world: World, listing: Listing, seed: int
) -> None:
    bystander = Bystander(world, Random(seed))

    seen = turn_all_pages(world, listing, bystander)

    paths = [getattr(item, "entry", item).path for item in seen]
    assert paths == sorted(set(paths), key=str.lower)
    assert bystander.there - bystander.gone <= set(paths)
    assert bystander.gone


@pytest.mark.parametrize("seed", range(5))
def test_folders_that_stood_all_the_time_come_once_and_in_order(world: World, seed: int) -> None:
    bystander = Bystander(world, Random(seed))
    before = {folder.path for folder in browse_folders(world.system, recursive=True, limit=100).items}

    seen = turn_all_pages(
        world, lambda world, **more: browse_folders(world.system, recursive=True, **more), bystander
    )

    places = [f"{folder.path}/".lower() for folder in seen]
    assert places == sorted(set(places))
    assert before <= {folder.path for folder in seen}


def turn_all_pages(world: World, listing: Listing, bystander: Bystander) -> list[Any]:
    seen: list[Any] = []
    cursor = None
    for _ in range(20):
        page = listing(world, limit=3, cursor=cursor)
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
        bystander.write()
    while cursor is not None:
        page = listing(world, limit=100, cursor=cursor)
        seen += page.items
        cursor = page.next_cursor
    return seen
