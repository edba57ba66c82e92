"""Listing and judging: wide folders, many folders, many grants, long entries. Each in an empty organization."""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from guardian.core import ObjectPermissionChecker

from access import authorizer
from access.models import FolderGrant
from benchmarks.rows import Row, compared, median, milliseconds
from benchmarks.timing import in_turn, timed
from benchmarks.tree import Tree
from core.types import EntryLocator, FolderLocator, Role
from kb.locate import find_folder
from kb.registry import REGISTRY_NAME
from kb.sections import Section
from kb.services.browse_entries import browse_entries
from kb.services.browse_folders import browse_folders
from kb.services.read_entry import read_entry
from kb.store.stores import store_of

WIDE = 10_000
NARROW = 10
TIMES = 40
TYPES = ("note", "skill", "fact", "source")
TAGS = ("alpha", "beta", "gamma", "delta", "epsilon")
GRANTS = 20
MANY_GRANTS = 500
LONG_BYTES = 10_000_000


def wide_folder(tree: Tree) -> list[Row]:
    """Fifty of 10,000 entries that pass a filter, with the registry decoded already, beside decoding it as JSON."""
    caller = tree.world.person("wide", role=Role.EDITOR)
    tree.fill("Wide", [("", WIDE)], types=TYPES, tags=TAGS)
    registry = (tree.content / "Wide" / REGISTRY_NAME).read_bytes()
    wide = FolderLocator(folder_path="Wide")
    narrowed = partial(browse_entries, caller, wide, type=TYPES[1], tags=[TAGS[2]], limit=50)
    last = partial(browse_entries, caller, wide, name_contains=f"e{WIDE - 1}")
    assert (len(narrowed().items), len(last().items)) == (50, 1)
    page, by_name, parsed = in_turn(narrowed, last, partial(json_lines, registry), times=TIMES // 2)
    return [
        compared(
            "50 of 10,000 entries by type and tag, beside parsing JSON", page, parsed, median, "<= 0.02"
        ),
        compared("the last of 10,000 entries by its name, beside the same", by_name, parsed, median),
    ]


def many_folders(tree: Tree) -> list[Row]:
    """Pages of a folder with 10,000 folders in it, beside the same pages of one with ten."""
    caller = tree.world.person("many", role=Role.EDITOR)
    for top, count in (("Many", WIDE), ("Few", NARROW)):
        tree.fill(top, [(f"f{number:05d}", 1) for number in range(count)])
    many, few = FolderLocator(folder_path="Many"), FolderLocator(folder_path="Few")
    rows = []
    for name, browse in (
        ("folders", partial(browse_folders, caller, limit=NARROW)),
        ("folders at any depth", partial(browse_folders, caller, limit=NARROW, recursive=True)),
        ("entries at any depth", partial(browse_entries, caller, limit=NARROW, recursive=True)),
    ):
        middle = browse(many, limit=100).next_cursor
        of_many, further, of_few = in_turn(
            partial(browse, many), partial(browse, many, cursor=middle), partial(browse, few), times=TIMES
        )
        rows.append(
            compared(f"page of {name}, of 10,000 beside of {NARROW}", of_many, of_few, median, "<= 1.5")
        )
        rows.append(compared(f"page of {name}, further on", further, of_few, median, "<= 1.5"))
    return rows


def judging(tree: Tree) -> list[Row]:
    """What a call asks of the database to know all its rights, beside asking guardian thrice about one folder."""
    caller = tree.world.person("judged")
    identity = tree.world.identity("judged")
    folders = [f"g{number:03d}" for number in range(MANY_GRANTS)]
    tree.fill("Granted", [(name, 1) for name in folders])
    for name in folders[:GRANTS]:
        tree.world.grant("judged", Role.READER, f"Granted/{name}")
    with store_of(tree.world.organization_id).snapshot() as view:
        sight = authorizer.sight_of(caller)
        asked = find_folder(view, sight, FolderLocator(folder_path=f"Granted/{folders[0]}")).folder
    row = FolderGrant.objects.select_related("content_object").get(content_object_id=asked.id).content_object

    def ours() -> Role | None:
        return authorizer.sight_of(caller).role_on(asked)

    def guardian() -> list[bool]:
        # As has_perm does, with a new checker for each question, but without its query for groups: there are none here.
        return [role.word in ObjectPermissionChecker(identity).get_user_perms(row) for role in Role]

    assert ours() is Role.READER
    assert guardian() == [True, False, False]
    few, theirs = in_turn(ours, guardian, times=5 * TIMES)
    for name in folders[GRANTS:]:
        tree.world.grant("judged", Role.READER, f"Granted/{name}")
    with CaptureQueriesContext(database) as queries:
        ours()
    return [
        compared(
            f"rights of a call with {GRANTS} grants, beside guardian's x3", few, theirs, median, "<= 0.1"
        ),
        Row(f"queries of a call with {MANY_GRANTS} grants", str(len(queries)), "1", len(queries) / 1, "<= 1"),
    ]


def outlines(tree: Tree) -> list[Row]:
    """A section of an entry of 10 MB: the first time, and when its headings are known."""
    caller = tree.world.person("long", role=Role.EDITOR)
    part = "## Heading {}\n\n" + "A line of Markdown, as long as people write them, more or less.\n" * 30
    tree.world.entry("long.md", "".join(part.format(number) for number in range(LONG_BYTES // len(part))))
    whole = partial(read_entry, caller, EntryLocator(path="long.md"))
    section = partial(whole, section=Section("Heading 77"))
    first = timed(section)
    again, all_of_it = in_turn(section, whole, times=TIMES // 4)
    return [
        compared("section of 10 MB, headings known, beside all of it", again, all_of_it, median),
        Row(
            "section of 10 MB, the first time beside later ones",
            milliseconds(first),
            milliseconds(median(again)),
            first / median(again),
        ),
    ]


def json_lines(registry: bytes) -> list[object]:
    """What a reader without a cache would do: each line of a registry as JSON."""
    return [msgspec.json.decode(line[9:]) for line in registry.splitlines()]


BENCHMARKS: Sequence[Callable[[Tree], list[Row]]] = (wide_folder, many_folders, judging, outlines)
