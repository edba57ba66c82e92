"""Searching, reading sections and narrowing listings, as agents do it."""

from typing import Any

from core.types import Role
from tests.mcpapi.agent import Agent
from tests.world import World


def refused(agent: Agent, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a call that is refused."""
    error: dict[str, Any] = agent.call(tool, **arguments)["error"]
    return error


NESTED = "# P\nintro\n## A\na1\n## B\nb\n### A\na2\n"


def test_an_agent_finds_a_text_and_reads_on_where_it_stands(world: World, ada: Agent) -> None:
    world.entry("Eng/guide.md", NESTED, title="Guide")
    world.entry("Eng/other.md", "nothing\n")

    found = ada.call("read_knowledgebase", action="search", query="INTRO")

    (result,) = found["results"]
    assert (result["entry"]["path"], result["matched_in"]) == ("Eng/guide.md", ["content"])
    assert result["matches"] == [{"line": 2, "text": "intro"}]
    assert (result["match_count"], found["next_cursor"]) == (1, None)
    assert result["entry"]["backup"] == {"state": "not_configured"}


def test_a_search_shows_nothing_that_the_token_may_not_read(world: World, ada: Agent) -> None:
    without = ada.call("read_knowledgebase", action="search", query="needle")
    world.entry("Billing/needle.md", "needle\n", title="needle")

    assert ada.call("read_knowledgebase", action="search", query="needle") == without
    hidden = refused(ada, "read_knowledgebase", action="search", query="needle", folder_path="Billing")
    missing = refused(ada, "read_knowledgebase", action="search", query="needle", folder_path="Nowhere")
    assert hidden == missing


def test_the_codes_of_sections_reach_the_agent(world: World, ada: Agent) -> None:
    entry = world.entry("Eng/guide.md", NESTED)

    def section(**wanted: object) -> dict[str, Any]:
        return {"action": "read", "path": "Eng/guide.md", "section": wanted}

    read = ada.call("read_knowledgebase", **section(heading="A", occurrence=2))
    assert (read["content"], read["version"]) == ("### A\na2\n", entry.version)
    ambiguous = refused(ada, "read_knowledgebase", **section(heading="A"))
    assert ambiguous["code"] == "AMBIGUOUS_SECTION"
    assert [one["line"] for one in ambiguous["details"]["occurrences"]] == [3, 7]
    absent = refused(ada, "read_knowledgebase", **section(heading="a"))
    assert (absent["code"], absent["details"]["did_you_mean"]) == ("SECTION_NOT_FOUND", ["A"])
    both = refused(ada, "read_knowledgebase", **section(heading="P"), start_line=1, end_line=1)
    assert (both["code"], both["details"]["field"]) == ("INVALID_ARGUMENT", "section")


def test_a_listing_is_narrowed_and_its_cursor_with_it(world: World, ada: Agent) -> None:
    world.entry("Eng/a.md", "a\n", type="skill")
    world.entry("Eng/b.md", "b\n", type="skill")
    world.entry("Eng/c.md", "c\n")

    page = ada.call("browse_knowledgebase", action="entries", folder_path="Eng", type="skill", limit=1)

    assert [entry["path"] for entry in page["entries"]] == ["Eng/a.md"]
    rest = {"action": "entries", "folder_path": "Eng", "cursor": page["next_cursor"]}
    assert refused(ada, "browse_knowledgebase", **rest)["details"]["field"] == "cursor"
    more = ada.call("browse_knowledgebase", **rest, type="skill")
    assert [entry["path"] for entry in more["entries"]] == ["Eng/b.md"]
    named = ada.call("browse_knowledgebase", action="entries", recursive=True, name_contains="C.M")
    assert [entry["path"] for entry in named["entries"]] == ["Eng/c.md"]


def test_a_reader_may_search(world: World) -> None:
    world.entry("Eng/guide.md", NESTED)
    world.person("priya", role=Role.READER, on="Eng")
    priya = Agent(world.token("priya"))

    assert len(priya.call("read_knowledgebase", action="search", query="b")["results"]) == 1
