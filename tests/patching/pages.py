"""Pages as people write them, and what a few changes make of them."""

from pathlib import Path
from random import Random

HANDBOOK = Path(__file__).parent.parent / "data/handbook"
NEW_LINES = (
    "- [ ] Check the health page.",
    "",
    "Ask Ada before you do this.",
    "## See also",
    "```",
    "    make run",
)


def handbook() -> list[str]:
    """The pages of the sample handbook."""
    return [path.read_text("utf-8") for path in sorted(HANDBOOK.rglob("*.md"))]


def changed(text: str, random: Random) -> str:
    """The text after one to four changes in different places: lines added, removed, replaced, words changed."""
    lines = text.removesuffix("\n").split("\n")
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(lines) + 1)
        kind = random.choice(("add", "remove", "replace", "word"))
        if kind == "add" or at >= len(lines):
            lines[at:at] = random.choices(NEW_LINES, k=random.randint(1, 3))
        elif kind == "remove":
            del lines[at : at + random.randint(1, 3)]
        elif kind == "replace":
            lines[at] = random.choice(NEW_LINES)
        else:
            lines[at] += " (see above)"
        lines = lines or [""]
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")
