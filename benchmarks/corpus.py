"""A tree of Markdown to measure on: made up, and the same to the byte wherever and whenever it is made.

    python -m benchmarks.corpus DIR COUNT

About ten entries stand in a folder and 4 kB in an entry; one paragraph in twenty is not in Latin letters. Words follow
no language but come as often as words do: few very often, most of them rarely.
"""

import argparse
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

SEED = "brain"
WORDS = 6_000
PARAGRAPHS = 3_000
ENTRIES_PER_FOLDER = 10
SAMPLED = 200
WORD_MIN_CHARACTERS = 5
# In no entry of any tree.
NOWHERE = "zqxjkvb nowhere"
ALPHABETS = (
    ("bdfgklmnprstvz", "aeiou"),
    ("бвгдзклмнпрстх", "аеиоуя"),
    ("知識庫搜尋檔案文書管理", "的是在有人"),
)


def make(folder: Path, count: int) -> None:
    """Write ``count`` files below ``folder``, which is made."""
    random = Random(SEED)
    paragraphs = _paragraphs(random)
    for number in range(count):
        place = folder / folder_of(number // ENTRIES_PER_FOLDER)
        if number % ENTRIES_PER_FOLDER == 0:
            place.mkdir(parents=True, exist_ok=True)
        (place / f"entry-{number:06d}.md").write_text(_entry(number, paragraphs, random), "utf-8")


def folder_of(number: int) -> str:
    """The path of the n-th folder: ten in each of ten in each of the others."""
    return f"area-{number // 100:03d}/team-{number // 10 % 10}/topic-{number % 10}"


def common_word(files: Sequence[Path]) -> str:
    """The word that most entries hold, judged by some of them."""
    found: Counter[str] = Counter()
    step = max(1, len(files) // SAMPLED)
    for file in itertools.islice(files, 0, None, step):
        words = file.read_text("utf-8", "replace").lower().split()
        found.update({word for word in words if len(word) >= WORD_MIN_CHARACTERS and word.isalpha()})
    return found.most_common(1)[0][0]


def _entry(number: int, paragraphs: Sequence[str], random: Random) -> str:
    # Mostly a few paragraphs, now and then a long text.
    length = min(60, 1 + int(random.expovariate(1 / 6)))
    pieces = [f"# Entry {number}", f"Known as mark{number:06d}."]
    for part in range(length):
        if part % 5 == 4:
            pieces.append(f"## Part {part // 5 + 1}")
        pieces.append(paragraphs[int(random.random() * len(paragraphs))])
    return "\n\n".join(pieces) + "\n"


def _paragraphs(random: Random) -> list[str]:
    vocabularies = [_words(random, *alphabet) for alphabet in ALPHABETS]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(WORDS)))
    made = []
    for number in range(PARAGRAPHS):
        vocabulary = vocabularies[0] if number % 20 else vocabularies[1 + number // 20 % 2]
        words = random.choices(vocabulary, cum_weights=weights, k=40 + int(random.random() * 120))
        lines = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
        made.append("\n".join(lines).capitalize() + ".")
    return made


def _words(random: Random, consonants: str, vowels: str) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < WORDS:
        syllables = range(1 + int(random.random() * 4))
        words["".join(random.choice(consonants) + random.choice(vowels) for _ in syllables)] = None
    return list(words)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    asked = parser.parse_args()
    make(asked.folder, asked.count)
