"""What language models do to a diff on its way: each mutation takes a good one and returns a spoilt one, or None.

None where the diff has nothing that could be spoilt this way. A ``Random`` picks the place.
"""

import re
from collections.abc import Callable
from random import Random

Mutation = Callable[[str, Random], str | None]
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")


def blank_context_lines_lose_their_blank(diff: str, random: Random) -> str | None:
    return _if_changed(diff, "\n".join("" if line == " " else line for line in diff.split("\n")))


def blanks_at_line_ends_are_stripped(diff: str, random: Random) -> str | None:
    return _if_changed(diff, "\n".join(line.rstrip(" ") for line in diff.split("\n")))


def one_context_line_loses_its_blank(diff: str, random: Random) -> str | None:
    return _change_line(diff, random, " ", lambda line: line[1:] or None)


def all_context_lines_lose_their_blank(diff: str, random: Random) -> str | None:
    return _if_changed(diff, "\n".join(line.removeprefix(" ") for line in diff.split("\n")))


def an_old_count_is_wrong(diff: str, random: Random) -> str | None:
    return _change_header(diff, random, lambda a, b, c, d: (a, b + random.choice((-1, 1, 2)), c, d))


def a_new_count_is_wrong(diff: str, random: Random) -> str | None:
    return _change_header(diff, random, lambda a, b, c, d: (a, b, c, d + random.choice((-1, 1, 2))))


def both_counts_are_wrong(diff: str, random: Random) -> str | None:
    change = random.choice((-1, 1, 2))
    return _change_header(diff, random, lambda a, b, c, d: (a, b + change, c, d + change))


def counts_are_left_out(diff: str, random: Random) -> str | None:
    return _rewrite_headers(diff, lambda m: f"@@ -{m[1]} +{m[3]} @@")


def headers_have_no_numbers(diff: str, random: Random) -> str | None:
    return _rewrite_headers(diff, lambda m: random.choice(("@@ ... @@", "@@", "@@ @@")))


def all_starts_are_shifted(diff: str, random: Random) -> str | None:
    by = random.choice((-7, -2, -1, 1, 3, 12))
    return _rewrite_headers(
        diff, lambda m: _header(max(1, int(m[1]) + by), m[2], max(1, int(m[3]) + by), m[4])
    )


def one_start_is_wrong(diff: str, random: Random) -> str | None:
    return _change_header(
        diff, random, lambda a, b, c, d: (max(1, a + random.choice((-9, -1, 1, 4))), b, c, d)
    )


def old_starts_count_earlier_insertions(diff: str, random: Random) -> str | None:
    return _rewrite_headers(diff, lambda m: _header(int(m[3]), m[2], int(m[3]), m[4]))


def a_new_start_is_wrong(diff: str, random: Random) -> str | None:
    return _change_header(diff, random, lambda a, b, c, d: (a, b, max(1, c + random.choice((-3, 5, 40))), d))


def every_hunk_starts_at_one(diff: str, random: Random) -> str | None:
    return _rewrite_headers(diff, lambda m: _header(1, m[2], 1, m[4]))


def the_last_line_is_cut_off(diff: str, random: Random) -> str | None:
    lines = diff.removesuffix("\n").split("\n")
    return "\n".join([*lines[:-1], ""])


def the_rest_is_cut_off(diff: str, random: Random) -> str | None:
    lines = diff.removesuffix("\n").split("\n")
    return "\n".join([*lines[: random.randint(3, len(lines) - 1)], ""]) if len(lines) > 3 else None


def the_last_hunk_is_cut_off(diff: str, random: Random) -> str | None:
    hunks = _hunks(diff)
    return "".join(hunks[:-1]) if len(hunks) > 2 else None


def a_context_line_is_skipped(diff: str, random: Random) -> str | None:
    return _change_line(diff, random, " ", lambda line: None)


def a_context_line_is_skipped_and_not_counted(diff: str, random: Random) -> str | None:
    skipped = a_context_line_is_skipped(diff, random)
    return _recounted(skipped) if skipped else None


def blank_lines_are_skipped_and_not_counted(diff: str, random: Random) -> str | None:
    kept = "\n".join(line for line in diff.removesuffix("\n").split("\n") if line != " ") + "\n"
    return _recounted(kept) if kept != diff else None


def a_removed_line_is_forgotten(diff: str, random: Random) -> str | None:
    forgotten = _change_line(diff, random, "-", lambda line: None)
    return _recounted(forgotten) if forgotten else None


def an_added_line_is_lost(diff: str, random: Random) -> str | None:
    return _change_line(diff, random, "+", lambda line: None)


def quotes_become_typographic(diff: str, random: Random) -> str | None:
    return _change_line(diff, random, " ", lambda line: line.replace("'", "\u2019").replace('"', "\u201d"))


def typographic_becomes_plain(diff: str, random: Random) -> str | None:
    return _if_changed(diff, diff.translate({0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2014: "-", 0xA0: " "}))


def a_context_line_is_reworded(diff: str, random: Random) -> str | None:
    return _change_line(diff, random, " ", lambda line: re.sub(r"(\w+)", r"\1s", line, count=1))


def a_context_line_is_indented(diff: str, random: Random) -> str | None:
    return _change_line(diff, random, " ", lambda line: " " + line if line.strip() else line)


def a_context_line_stands_twice(diff: str, random: Random) -> str | None:
    return _change_line(diff, random, " ", lambda line: f"{line}\n{line}")


def hunks_are_swapped(diff: str, random: Random) -> str | None:
    head, *hunks = _hunks(diff)
    if len(hunks) < 2:
        return None
    at = random.randrange(len(hunks) - 1)
    hunks[at], hunks[at + 1] = hunks[at + 1], hunks[at]
    return "".join([head, *hunks])


def a_hunk_stands_twice(diff: str, random: Random) -> str | None:
    head, *hunks = _hunks(diff)
    at = random.randrange(len(hunks))
    return "".join([head, *hunks[: at + 1], *hunks[at:]])


def a_fence_stands_around(diff: str, random: Random) -> str | None:
    return f"```diff\n{diff}```\n"


def a_fence_is_not_closed(diff: str, random: Random) -> str | None:
    return f"```diff\n{diff}"


def a_sentence_stands_before(diff: str, random: Random) -> str | None:
    return f"Here is the diff you asked for:\n\n{diff}"


def a_sentence_stands_behind(diff: str, random: Random) -> str | None:
    return f"{diff}\nThis adds the missing step.\n"


def a_bullet_stands_behind(diff: str, random: Random) -> str | None:
    return f"{diff}+ I also checked the rest of the page.\n"


def blank_lines_stand_behind(diff: str, random: Random) -> str | None:
    return f"{diff}\n\n"


def the_file_header_is_missing(diff: str, random: Random) -> str | None:
    return "".join(_hunks(diff)[1:])


def the_file_header_is_half(diff: str, random: Random) -> str | None:
    return "".join(line for line in diff.splitlines(keepends=True) if not line.startswith("--- a/"))


def a_mark_of_a_missing_newline_is_added(diff: str, random: Random) -> str | None:
    return f"{diff}\\ No newline at end of file\n" if "\\ No newline" not in diff else None


def marks_of_a_missing_newline_are_lost(diff: str, random: Random) -> str | None:
    return _if_changed(diff, diff.replace("\\ No newline at end of file\n", ""))


def line_ends_are_those_of_windows(diff: str, random: Random) -> str | None:
    return diff.replace("\n", "\r\n")


MUTATIONS: dict[str, Mutation] = {
    name.replace("_", " "): value
    for name, value in sorted(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not name.startswith("_")
}


def _hunks(diff: str) -> list[str]:
    """What stands before the first hunk, then each hunk with its header."""
    return re.split(r"^(?=@@ )", diff, flags=re.MULTILINE)


def _if_changed(diff: str, changed: str) -> str | None:
    return changed if changed != diff else None


def _change_line(diff: str, random: Random, prefix: str, change: Callable[[str], str | None]) -> str | None:
    """One line of a hunk's body with this prefix, changed or (None) left out."""
    lines = diff.removesuffix("\n").split("\n")
    first = next(index for index, line in enumerate(lines) if line.startswith("@@"))
    changes = {
        index: change(lines[index]) for index in range(first, len(lines)) if lines[index].startswith(prefix)
    }
    real = [index for index, changed in changes.items() if changed != lines[index]]
    if not real:
        return None
    at = random.choice(real)
    changed = changes[at]
    return "\n".join([*lines[:at], *([] if changed is None else [changed]), *lines[at + 1 :], ""])


def _rewrite_headers(diff: str, rewrite: Callable[[re.Match[str]], str]) -> str | None:
    lines = [rewrite(match) if (match := HUNK.fullmatch(line)) else line for line in diff.split("\n")]
    return _if_changed(diff, "\n".join(lines))


def _change_header(
    diff: str, random: Random, change: Callable[[int, int, int, int], tuple[int, int, int, int]]
) -> str | None:
    lines = diff.split("\n")
    at = random.choice([index for index, line in enumerate(lines) if HUNK.fullmatch(line)])
    match = HUNK.fullmatch(lines[at])
    assert match is not None
    a, b, c, d = change(int(match[1]), int(match[2] or 1), int(match[3]), int(match[4] or 1))
    if b < 0 or d < 0:
        return None
    lines[at] = _header(a, str(b), c, str(d))
    return _if_changed(diff, "\n".join(lines))


def _header(old: int, old_count: str | None, new: int, new_count: str | None) -> str:
    old_part = f"{old},{old_count}" if old_count else f"{old}"
    new_part = f"{new},{new_count}" if new_count else f"{new}"
    return f"@@ -{old_part} +{new_part} @@"


def _recounted(diff: str) -> str:
    head, *hunks = _hunks(diff)
    recounted = [head]
    for hunk in hunks:
        first, _, body = hunk.partition("\n")
        match = HUNK.fullmatch(first)
        assert match is not None
        lines = body.removesuffix("\n").split("\n")
        old = sum(line[:1] in (" ", "-") for line in lines)
        new = sum(line[:1] in (" ", "+") for line in lines)
        recounted.append(f"@@ -{match[1]},{old} +{match[3]},{new} @@\n{body}")
    return "".join(recounted)
