"""A second, plain reading of a diff: line by line, on a list, without any help for whoever wrote it."""

import re

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@.*")


def plain_apply(text: str, diff: str) -> str | None:
    """What the diff says that the text becomes.

    None where counts are wrong, or a hunk fits neither at its line nor at one place alone.
    """
    lines = text.split("\n") if not text.endswith("\n") else text[:-1].split("\n")
    ends = "\n" if text.endswith("\n") else ""
    done: list[str] = []
    at = 0
    for header, body in _hunks(diff):
        old = [line[1:] for line in body if line[0] in " -"]
        new = [line[1:] for line in body if line[0] in " +"]
        if (len(old), len(new)) != (int(header[2] or 1), int(header[3] or 1)):
            return None
        first = int(header[1]) - 1
        found = [index for index in range(len(lines)) if lines[index : index + len(old)] == old]
        start = first if first in found else found[0] if len(found) == 1 else -1
        if start < at:
            return None
        done += lines[at:start] + new
        at = start + len(old)
        if at == len(lines) and body[-1][0] == "+":
            ends = "\n"
        if body[-1][0] == "\\":
            ends = ""
    return "\n".join(done + lines[at:]) + ends


def _hunks(diff: str) -> list[tuple[re.Match[str], list[str]]]:
    hunks: list[tuple[re.Match[str], list[str]]] = []
    for line in diff.removesuffix("\n").split("\n"):
        if header := HUNK.fullmatch(line):
            hunks.append((header, []))
        elif hunks:
            hunks[-1][1].append(line or " ")
    return hunks
