"""Narrowing a listing by type, tags and names."""

import pytest

from core.errors import InvalidArgument, LimitExceeded
from core.types import FolderLocator
from kb.services.browse_entries import browse_entries
from kb.services.create_entry import create_entry
from tests.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf(world: World) -> World:
    for filename, title, label, tags in [
        ("deploy.md", "Deployment", "skill", ["ops", "checkout"]),
        ("review.md", "Straße & Review", "note", ["ops"]),
        ("zeta.md", "Zeta", "fact", []),
    ]:
        create_entry(
            world.system,
            None,
            FolderLocator(folder_path=""),
            filename=filename,
            type=label,
            title=title,
            content="text\n",
            tags=tags,
        )
    return world


@pytest.mark.parametrize(
    ("narrowing", "expected"),
    [
        ({"type": "skill"}, ["deploy.md"]),
        ({"tags": ["ops"]}, ["deploy.md", "review.md"]),
        ({"tags": ["ops", "checkout"]}, ["deploy.md"]),
        ({"tags": ["OPS"]}, []),
        ({"name_contains": "DEPLOY"}, ["deploy.md"]),
        ({"name_contains": "strasse"}, ["review.md"]),
        ({"name_contains": ".md"}, ["deploy.md", "review.md", "zeta.md"]),
        ({"name_contains": "e", "type": "fact"}, ["zeta.md"]),
    ],
    ids=repr,
)
def test_everything_that_is_asked_for_must_hold(
    shelf: World, narrowing: dict[str, object], expected: list[str]
) -> None:
    found = browse_entries(shelf.system, **narrowing)  # type: ignore[arg-type]

    assert [entry.path for entry in found.items] == expected


def test_a_filtered_listing_has_pages_of_its_own(shelf: World) -> None:
    page = browse_entries(shelf.system, tags=["ops"], limit=1)

    assert [entry.path for entry in page.items] == ["deploy.md"]
    rest = browse_entries(shelf.system, tags=["ops"], limit=1, cursor=page.next_cursor)
    assert ([entry.path for entry in rest.items], rest.next_cursor) == (["review.md"], None)
    with pytest.raises(InvalidArgument):
        browse_entries(shelf.system, limit=1, cursor=page.next_cursor)


@pytest.mark.parametrize(
    ("narrowing", "refusal"),
    [
        ({"type": "skills"}, InvalidArgument),
        ({"tags": [" "]}, InvalidArgument),
        ({"tags": ["a", "a"]}, InvalidArgument),
        ({"name_contains": ""}, InvalidArgument),
        ({"name_contains": "a\nb"}, InvalidArgument),
        ({"name_contains": "a" * 257}, LimitExceeded),
    ],
    ids=repr,
)
def test_a_filter_that_no_entry_could_pass_is_refused(
    shelf: World, narrowing: dict[str, object], refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        browse_entries(shelf.system, **narrowing)  # type: ignore[arg-type]
