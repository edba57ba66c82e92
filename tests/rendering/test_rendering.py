"""What pages ask for: HTML once for each text and folder, and an honest answer where there is none."""

from collections.abc import Iterator

import pytest
from django.utils.safestring import SafeString

from core import clock, ids, limits
from kb import rendering
from kb.markup import Markup
from kb.render_process import Busy, the_process
from kb.rendering import Rendered, render
from tests.rendering.judge import faults_of

HOSTILE = {
    "brackets": "[" * 50_000,
    "brackets in each other": "[" * 25_000 + "]" * 25_000,
    "links in each other": "[a](" * 12_500,
    "images in each other": "![[]()" * 8_000,
    "unclosed tags": "<a b='" * 8_000,
    "unclosed images": '<img "' * 8_000,
    "unclosed sections": "<![CDATA[" * 5_000,
    "quotes in each other": "> " * 20_000 + "x",
    "lists in each other": "* " * 10_000 + "x",
    "deep list": "\n".join("  " * depth + "- x" for depth in range(700)),
    "wide table": "|" + "a|" * 5_000 + "\n|" + "-|" * 5_000 + "\n|" + "b|" * 5_000,
    "long table": "|a|b|\n|-|-|\n" + "|1|2|\n" * 15_000,
    "footnotes": "[^a]" * 10_000 + "\n\n[^a]: x",
    "emphasis": "*a _b " * 10_000,
    "backticks": "".join("`" * length + " " for length in range(300)),
    "dollars": "$a " * 20_000,
    "entities": "&" * 50_000,
    "headings": "# a\n" * 20_000,
    "tasks": "- [ ] x\n" * 20_000,
    "elements in each other": "<div>" * 150_000,
    "code": "```javascript\n" + "/" * 60_000 + "\n```",
}


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    rendering._cache.clear()
    yield
    rendering._cache.clear()
    the_process.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What reached the process."""
    calls: list[tuple[str, str]] = []
    through = the_process.render

    def noting(content: str, folder_path: str) -> Markup | None:
        calls.append((content, folder_path))
        return through(content, folder_path)

    monkeypatch.setattr(the_process, "render", noting)
    return calls


def _render(content: str, folder_path: str = "Eng") -> Rendered:
    return render(content, ids.sha256_hex(content.encode("utf-8", "surrogatepass")), folder_path=folder_path)


def test_html_is_marked_safe_in_all_its_parts() -> None:
    rendered = _render("---\na: b\n---\n# A\n\n<b>b</b>\n")

    assert all(
        isinstance(part, SafeString)
        for part in (rendered.front_matter, rendered.opening, rendered.body, rendered.html)
    )
    assert [heading.text for heading in rendered.headings] == ["A"]


def test_a_text_is_rendered_once_for_each_folder(asked: list[tuple[str, str]]) -> None:
    first = _render("[a](b.md)")
    assert _render("[a](b.md)") is first
    assert "/files/Ops/b.md" in _render("[a](b.md)", "Ops").html

    assert asked == [("[a](b.md)", "Eng"), ("[a](b.md)", "Ops")]


def test_what_was_not_used_for_longest_makes_room(
    asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "CACHE_MAX_BYTES", 2_500)
    for name in ("a", "b"):
        _render(name * 1_000)
    _render("a" * 1_000)
    _render("c" * 1_000)

    for name in ("a", "c", "b"):
        _render(name * 1_000)

    assert [content[0] for content, _ in asked] == ["a", "b", "c", "b"]
    assert rendering._cache._bytes <= 2_500


def test_a_text_that_has_no_room_at_all_is_rendered_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "CACHE_MAX_BYTES", 100)

    assert "aaa" in _render("a" * 1_000).html

    assert rendering._cache._bytes == 0


def test_a_text_over_the_limit_is_not_tried(asked: list[tuple[str, str]]) -> None:
    assert not _render("a " * (limits.RENDER_MAX_BYTES // 2)).too_large

    for content in ("a" * (limits.RENDER_MAX_BYTES + 1), "ä" * (limits.RENDER_MAX_BYTES // 2 + 1)):
        rendered = _render(content)
        assert (rendered.too_large, rendered.html) == (True, "")

    assert len(asked) == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_has_html_or_fails_and_the_next_one_is_fine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(limits, "RENDER_SECONDS", 1)
        rendered = _render(HOSTILE[name])

    assert rendered.failed or not faults_of(rendered.html)
    assert _render("fine").html == "<p>fine</p>\n"


def test_a_text_that_failed_is_not_tried_again_for_a_while(
    asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RENDER_SECONDS", 0.1)
    now = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: now)

    assert _render(HOSTILE["elements in each other"]).failed
    now += rendering.FAILURE_SECONDS - 1
    assert _render(HOSTILE["elements in each other"]).failed
    assert len(asked) == 1

    now += 2
    assert _render(HOSTILE["elements in each other"]).failed
    assert len(asked) == 2


def test_a_text_that_did_not_get_its_turn_is_tried_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(content: str, folder_path: str) -> Markup | None:
        raise Busy

    with monkeypatch.context() as patch:
        patch.setattr(the_process, "render", busy)
        assert _render("a").failed

    assert _render("a").html == "<p>a</p>\n"
