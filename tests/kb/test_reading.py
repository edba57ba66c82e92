"""Reading an entry: whole, by lines, and what a caller without access learns."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import ids
from core.errors import InvalidArgument, NotFound, RangeOutOfBounds, StorageUnavailable
from core.types import EntryLocator, Role
from kb.services.read_entry import read_entry
from tests.world import World

pytestmark = pytest.mark.django_db

DEPLOY = "Engineering/Payments/Checkout/deployment.md"


def test_a_reader_gets_the_whole_entry_with_its_version(world: World) -> None:
    entry = world.entry(DEPLOY, "one\ntwo\n", title="Deployment")
    priya = world.person("priya", role=Role.READER, on="Engineering/Payments")

    reading = read_entry(priya, EntryLocator(path=DEPLOY))

    assert (reading.content, reading.start_line, reading.end_line, reading.total_lines) == (
        "one\ntwo\n",
        1,
        2,
        2,
    )
    assert reading.ends_with_newline
    assert reading.version == reading.entry.version == entry.version
    assert reading.entry.title == "Deployment"


def test_an_empty_entry_has_no_lines_and_bounds_of_zero(world: World) -> None:
    world.entry("empty.md", "")

    reading = read_entry(world.system, EntryLocator(path="empty.md"))

    assert (reading.content, reading.start_line, reading.end_line, reading.total_lines) == ("", 0, 0, 0)
    assert not reading.ends_with_newline


def test_a_line_range_holds_the_newline_of_its_last_line_where_there_is_one(world: World) -> None:
    world.entry("three.md", "one\ntwo\nthree")

    middle = read_entry(world.system, EntryLocator(path="three.md"), lines=(2, 2))
    beyond = read_entry(world.system, EntryLocator(path="three.md"), lines=(2, 99))

    assert (middle.content, middle.start_line, middle.end_line) == ("two\n", 2, 2)
    assert (beyond.content, beyond.start_line, beyond.end_line) == ("two\nthree", 2, 3)
    assert not beyond.ends_with_newline


@pytest.mark.parametrize("lines", [(0, 1), (2, 1), (-1, 3)])
def test_lines_that_no_entry_could_have_are_refused(world: World, lines: tuple[int, int]) -> None:
    world.entry("three.md", "one\ntwo\nthree")

    with pytest.raises(InvalidArgument):
        read_entry(world.system, EntryLocator(path="three.md"), lines=lines)


def test_a_range_behind_the_end_is_out_of_bounds_and_says_how_long_the_entry_is(world: World) -> None:
    world.entry("three.md", "one\ntwo\nthree")
    world.entry("empty.md", "")

    with pytest.raises(RangeOutOfBounds) as refused:
        read_entry(world.system, EntryLocator(path="three.md"), lines=(4, 4))
    with pytest.raises(RangeOutOfBounds):
        read_entry(world.system, EntryLocator(path="empty.md"), lines=(1, 1))

    assert refused.value.details == {"total_lines": 3}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from("ab\n\u2028é"), max_size=40), data=st.data())
def test_lines_put_together_are_the_whole(world: World, text: str, data: st.DataObject) -> None:
    entry = world.entry(f"{ids.new_id(ids.ENTRY)}.md", text)
    total = entry.total_lines
    if total == 0:
        return
    cut = data.draw(st.integers(1, total))

    head = read_entry(world.system, EntryLocator(entry_id=entry.entry_id), lines=(1, cut)).content
    rest = ""
    if cut < total:
        rest = read_entry(world.system, EntryLocator(entry_id=entry.entry_id), lines=(cut + 1, total)).content

    assert head + rest == text


def test_a_path_is_found_without_regard_to_case_and_shown_as_it_is_stored(world: World) -> None:
    world.entry(DEPLOY, "text\n")

    assert read_entry(world.system, EntryLocator(path=DEPLOY.upper())).entry.path == DEPLOY


@pytest.mark.parametrize("missing", ["Engineering/Billing/nothing.md", "Nowhere/at-all.md"])
def test_hidden_and_missing_entries_are_one_refusal(world: World, missing: str) -> None:
    hidden = world.entry("Engineering/Billing/invoices.md", "secret\n")
    priya = world.person("priya", role=Role.READER, on="Engineering/Payments")
    world.folder("Engineering/Payments")

    refusals = []
    for locator in (
        EntryLocator(path=hidden.path),
        EntryLocator(entry_id=hidden.entry_id),
        EntryLocator(path=missing),
        EntryLocator(entry_id="ent_nothing"),
    ):
        with pytest.raises(NotFound) as refused:
            read_entry(priya, locator)
        refusals.append(refused.value.as_dict())

    assert all(refusal == refusals[0] for refusal in refusals)


def test_an_entry_changed_behind_the_store_is_refused_and_the_others_are_not(
    world: World, data_dir: Path
) -> None:
    world.entry("good.md", "good\n")
    entry = world.entry("bad.md", "as it was saved\n")
    path = data_dir / "orgs" / world.organization_id / "content" / "bad.md"
    path.write_text("as somebody changed it by hand\n")

    with pytest.raises(StorageUnavailable):
        read_entry(world.system, EntryLocator(entry_id=entry.entry_id))

    assert world.text_of("good.md") == "good\n"
    path.unlink()
    with pytest.raises(StorageUnavailable):
        read_entry(world.system, EntryLocator(entry_id=entry.entry_id))
