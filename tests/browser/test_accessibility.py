"""WCAG 2.2 AA as far as a program can tell: axe, reflow at 320 px, sizes of targets, contrast of the colours."""

import re
from pathlib import Path

import pytest

from tests.browser.conftest import Open
from tests.live import LiveBrain
from tests.server import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.server]

CHECKOUT = "/files/Engineering/Payments/Checkout/"
PAGES = [
    ("root", "/files/"),
    ("ada", CHECKOUT),
    ("ada", "/files/Engineering/Payments/Empty/"),
    ("priya", "/files/Engineering/"),
    ("priya", f"{CHECKOUT}deployment.md"),
    ("priya", f"{CHECKOUT}deployment.md?view=source"),
    ("priya", f"{CHECKOUT}empty.md"),
    ("priya", "/files/nothing.md"),
    ("priya", "/search/"),
    ("priya", "/search/?q=checkout"),
    ("priya", "/search/?q=nothing+like+it&type=fact"),
    ("priya", f"/search/?q={'x' * 257}&tags=one,one"),
    ("priya", "/search/?q=checkout&cursor=nonsense"),
    ("priya", "/files/?entries=nonsense"),
    ("root", "/access/Engineering/Payments/"),
    ("priya", "/access/"),
    ("mallory", "/files/"),
    ("mallory", "/tokens/"),
    ("ada", "/tokens/"),
    ("root", "/tokens/?identity=deploy-bot"),
    ("ada", "/tokens/shown/nothing/"),
    (None, "/login/"),
    (None, "/nowhere"),
]
# Words without a place to break, wide tables, wide code, deep lists: everything that pushes a page apart.
WIDE = f"""# {"Unbreakable" * 20}

{"supercalifragilistic" * 20} `{"code_without_a_blank_" * 20}` <https://wide.example/{"path/" * 60}>

| {" | ".join(f"Column {number}" for number in range(30))} |
|{"---|" * 30}
| {" | ".join("a longer cell" for number in range(30))} |

```python
{"x = some_function(argument) + " * 20}1
```

$$
{"a + b + " * 40}c
$$

![{"a long description " * 20}](https://{"wide" * 10}.example/i.png)

{"".join("  " * depth + "- deeper" + chr(10) for depth in range(12))}
> > > > > > quoted
"""


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 320), ("dark", 320)])
def test_axe_finds_nothing(window: Open, theme: str, width: int) -> None:
    found = {}
    for username in ("root", "ada", "priya", "mallory", None):
        person = window(username, theme=theme, width=width)
        for _, path in [page for page in PAGES if page[0] == username]:
            person.open(path)
            if violations := person.violations():
                found[path] = violations
    assert found == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_drawer_menu_and_failed_form(window: Open, theme: str) -> None:
    priya = window("priya", width=390, theme=theme)
    priya.open(CHECKOUT).get_by_role("button", name="Folders").click()
    assert priya.violations() == []
    priya.page.keyboard.press("Escape")
    priya.page.get_by_role("button", name="account menu").click()
    assert priya.violations() == []

    stranger = window(theme=theme)
    stranger.open("/login/")
    stranger.page.fill("#username", "nobody")
    stranger.page.fill("#password", "nothing")
    stranger.page.click("button[type=submit]")
    assert stranger.violations() == []


WIDE_FOLDER = f"Wide/{'Very long name of a folder ' * 2}end"
WIDE_ENTRY = f"{WIDE_FOLDER}/{'x' * 64}.md"


@pytest.fixture(scope="module")
def wide_things(live_brain: LiveBrain) -> None:
    live_brain.seed(
        [
            {"person": "wide", "name": "W" * 120, "role": "reader", "on": WIDE_FOLDER},
            {
                "entry": WIDE_ENTRY,
                "title": "Unbreakable" * 18,
                "description": "unbreakable" * 40,
                "tags": ["t" * 64, "a tag"],
                "content": WIDE,
            },
        ]
    )


@pytest.mark.usefixtures("wide_things")
def test_no_page_is_wider_than_the_window(window: Open) -> None:
    reader = window("wide")
    wide_search = f"/search/?q=breakable&folder={WIDE_FOLDER}"
    for path in (
        "/files/",
        "/files/Wide/",
        f"/files/{WIDE_FOLDER}/",
        wide_search,
        f"/search/?q={'none' * 64}",
        f"/files/{WIDE_ENTRY}?view=source",
        f"/files/{WIDE_ENTRY}",
    ):
        page = reader.open(path)
        for width in (320, 390, 700, 1000, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 800})
            assert reader.overflow() == 0, f"{path} at {width}"

    page.set_viewport_size({"width": 320, "height": 800})
    assert reader.violations() == []


SMALL_TARGETS = """() => [...document.querySelectorAll('a, button, input:not([type=hidden]), summary')]
    .filter(element => element.checkVisibility() && !element.closest('p, .markdown, .skip'))
    .map(element => [element.textContent.trim(), element.getBoundingClientRect()])
    .filter(([name, box]) => box.width > 0 && (box.width < 24 || box.height < 24))
    .map(([name, box]) => `${name}: ${Math.round(box.width)} x ${Math.round(box.height)}`)"""


@pytest.mark.parametrize("width", [320, 1280])
def test_targets_are_large_enough_for_a_finger(window: Open, width: int) -> None:
    ada = window("ada", width=width)
    for path in (
        "/files/",
        CHECKOUT,
        f"{CHECKOUT}deployment.md",
        f"{CHECKOUT}deployment.md?view=source",
        "/search/?q=checkout",
        "/search/?q=not+there&case=1",
    ):
        assert ada.open(path).evaluate(SMALL_TARGETS) == [], path
        ada.page.click(".account-opener")
        assert ada.page.evaluate(SMALL_TARGETS) == [], f"{path} with the menu open"


STYLES = Path(ROOT, "static", "brain.css").read_text("utf-8")
TOKENS = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}), #\w{6}\)", STYLES))
DARK_TOKENS = dict(re.findall(r"--([\w-]+): light-dark\(#\w{6}, (#\w{6})\)", STYLES))
TEXT_ON_GROUND = [
    *((ink, ground) for ink in ("ink", "ink-soft", "accent") for ground in ("paper", "panel", "panel-deep")),
    *((ink, "panel") for ink in TOKENS if ink.startswith("code-")),
    ("ink", "accent-soft"),
    ("ink", "mark"),
    ("accent", "accent-soft"),
    ("on-accent", "accent"),
    ("warning", "warning-soft"),
    ("danger", "danger-soft"),
]
EDGES = [("line-firm", "paper"), ("line-firm", "panel"), ("accent", "paper"), ("accent", "panel")]


@pytest.mark.parametrize("tokens", [TOKENS, DARK_TOKENS], ids=["light", "dark"])
def test_colours_stand_out(tokens: dict[str, str]) -> None:
    text = {pair: _contrast(tokens[pair[0]], tokens[pair[1]]) for pair in TEXT_ON_GROUND}
    edges = {pair: _contrast(tokens[pair[0]], tokens[pair[1]]) for pair in EDGES}

    assert {pair: round(ratio, 2) for pair, ratio in text.items() if ratio < 4.5} == {}
    assert {pair: round(ratio, 2) for pair, ratio in edges.items() if ratio < 3} == {}


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
