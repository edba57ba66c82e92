"""Reading a unified diff strictly: what is accepted can mean one thing only, and counts have to be right.

Counts are all the integrity that a diff has, so they are never repaired here; a right header is only proposed.
"""

import re
from dataclasses import dataclass, field

from core import names
from kb.patching.failures import Failure, Reason
from kb.patching.hunks import ADDED, CONTEXT, MARKER, REMOVED, Hunk, Unread, new_lines, old_lines

_HUNK = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@(?: .*)?")
_FENCE = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
_GIT_INDEX = re.compile(r"index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: [0-7]{6})?")
_RULE = re.compile(r"={4,}")
_OLD_NAME, _NEW_NAME = "---", "+++"
_PREFIXES = ("a/", "b/", "i/", "w/", "c/", "o/", "./")
_NO_FILE = "/dev/null"
_BODY = (CONTEXT, REMOVED, ADDED, MARKER)

_UNSUPPORTED = re.compile(
    r"(?:old mode|new mode|new file mode|deleted file mode|rename from|rename to|copy from|copy to"
    r"|similarity index|dissimilarity index|Binary files|GIT binary patch)\b"
)
_OTHER_FORMATS = (
    (re.compile(r"\*\*\* (?:Begin|Update|Add|Delete)\b"), "a *** Begin Patch block"),
    (re.compile(r"<{4,}"), "a block of <<<<<<< and >>>>>>>"),
    (re.compile(r"\*\*\* |\*{15}"), "a context diff"),
    (re.compile(r"[0-9]+(?:,[0-9]+)?[acd](?:[0-9]+(?:,[0-9]+)?)?$|[ad][0-9]+ [0-9]+$"), "a normal diff or ed script"),
    (re.compile(r"@@@"), "the diff of a merge"),
)  # fmt: skip
_NAME_LINE_MAX = 4_096


@dataclass(slots=True)
class Reading:
    """A diff as it was read: its hunks in their order, and what is wrong with the diff as a whole."""

    hunks: list[Hunk | Unread] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def read_diff(diff: str, path: str) -> Reading:
    """Read a diff for the entry at ``path``. Nothing raises: what is wrong stands in the reading."""
    return _Reader(diff, path).read()


class _Stop(Exception):
    """Nothing behind this place can be told of with sense."""


class _Reader:
    """Goes through the lines once. ``at`` is the index of the line that is looked at."""

    def __init__(self, diff: str, path: str) -> None:
        self._lines = diff.removesuffix("\n").split("\n")
        self._path = names.fold(path)
        self._at = 0
        self._end = len(self._lines)
        # Where hunks may begin, the next one last.
        self._headers = [index for index, line in enumerate(self._lines) if line.startswith("@@")][::-1]
        self._reading = Reading()

    def read(self) -> Reading:
        try:
            self._read_fence()
            self._read_head()
            while self._skip_empty():
                self._read_hunk()
            if not self._reading.hunks and not self._reading.failures:
                self._fail(
                    Reason.WRONG_FORMAT, "There is no hunk. One begins with a line such as @@ -3,2 +3,4 @@."
                )
        except _Stop:
            pass
        return self._reading

    # -- around the hunks -----------------------------------------------------------------------------------

    def _read_fence(self) -> None:
        self._skip_blank()
        if self._at == self._end or not (opening := _FENCE.fullmatch(self._lines[self._at])):
            return
        fence, begin = opening[1] or opening[2], self._at
        self._at += 1
        # No line of a diff begins like this, so the first one that does closes the fence.
        for index in range(self._at, self._end):
            line = self._lines[index].rstrip(" \t")
            if len(line) >= len(fence) and line == fence[0] * len(line):
                self._refuse_behind(index + 1)
                self._end = index
                return
        problem = "The fence around the diff is not closed; the end of the diff may be missing."
        self._fail(Reason.WRONG_FORMAT, problem, index=begin)

    def _refuse_behind(self, index: int) -> None:
        for behind in range(index, self._end):
            if self._lines[behind].strip():
                self._fail(Reason.TRAILING_TEXT, "Text stands behind the diff.", index=behind)
                return

    def _read_head(self) -> None:
        has_git = has_svn = False
        while self._skip_blank():
            line = self._lines[self._at]
            if line.startswith("diff --git ") and not has_git:
                has_git = True
                self._check_git_names(line.removeprefix("diff --git "))
            elif line.startswith("Index: ") and not has_svn:
                has_svn = True
                self._check_name(line.removeprefix("Index: "))
            elif not (_GIT_INDEX.fullmatch(line) or _RULE.fullmatch(line.rstrip())):
                break
            self._at += 1
        if self._at < self._end and self._is_file_header(self._at):
            for marker in (_OLD_NAME, _NEW_NAME):
                self._check_name(_named(self._lines[self._at], marker))
                self._at += 1
        if self._skip_blank():
            self._refuse_other_formats()

    def _refuse_other_formats(self) -> None:
        line = self._lines[self._at]
        is_hunk = line.startswith("@@") and not line.startswith("@@@")
        if is_hunk or self._is_body(self._at) or self._is_second_file(self._at):
            return
        if _UNSUPPORTED.match(line):
            self._fail(Reason.UNSUPPORTED, "A diff here changes the text of one entry and nothing else.")
            raise _Stop
        looks_like = next((name for pattern, name in _OTHER_FORMATS if pattern.match(line)), "no part of one")
        self._fail(Reason.WRONG_FORMAT, f"A unified diff is expected. This line is {looks_like}.")
        # Perhaps only a sentence stands before the diff: then tell of its hunks too.
        self._skip_to_hunk()

    def _is_file_header(self, index: int) -> bool:
        return (
            index + 1 < self._end
            and (self._lines[index] == _OLD_NAME or self._lines[index].startswith(_OLD_NAME + " "))
            and (self._lines[index + 1] == _NEW_NAME or self._lines[index + 1].startswith(_NEW_NAME + " "))
        )

    def _check_name(self, name: str) -> None:
        if _cleaned(name) == _NO_FILE:
            self._fail(Reason.UNSUPPORTED, "An update neither creates nor removes an entry.")
            raise _Stop
        if not self._is_target(name):
            self._refuse_target()

    def _check_git_names(self, both: str) -> None:
        # Names may hold blanks, so every blank may be the one between them.
        if len(both) <= _NAME_LINE_MAX:
            for gap in re.finditer(" ", both):
                if self._is_target(both[: gap.start()]) and self._is_target(both[gap.end() :]):
                    return
        self._refuse_target()

    def _refuse_target(self) -> None:
        self._fail(
            Reason.WRONG_TARGET,
            "The diff names another file. It may name the entry's filename or the end of its path, or no file.",
        )
        raise _Stop

    def _is_target(self, name: str) -> bool:
        # Without a name, as some programs write it, no other file is named.
        name = names.fold(_cleaned(name))
        spellings = [name, *(name[len(prefix) :] for prefix in _PREFIXES if name.startswith(prefix))]
        return any(one in ("", self._path) or self._path.endswith(f"/{one}") for one in spellings)

    # -- hunks ----------------------------------------------------------------------------------------------

    def _read_hunk(self) -> None:
        line = self._lines[self._at]
        header = _HUNK.fullmatch(line)
        if header:
            self._read_body(header)
        elif line.startswith("@@"):
            self._take_unread(Reason.BAD_HUNK_HEADER, "A hunk begins with a line such as @@ -3,2 +3,4 @@.")
        elif self._is_second_file(self._at):
            if self._names_target(self._at):
                self._fail(Reason.UNSUPPORTED, "The diff has a second file header. Put all hunks below one.")
            else:
                self._fail(Reason.WRONG_TARGET, "The diff goes on with another file.")
            raise _Stop
        elif self._is_body(self._at):
            problem = "A line such as @@ -3,2 +3,4 @@ is missing before this one."
            self._take_unread(Reason.BAD_HUNK_HEADER, problem, has_header=False)
        else:
            self._refuse_text()

    def _refuse_text(self) -> None:
        begin = self._at
        if self._skip_to_hunk():
            self._fail(Reason.WRONG_FORMAT, "Text stands between two hunks.", index=begin)
        else:
            self._fail(Reason.TRAILING_TEXT, "Text stands behind the diff.", index=begin)

    def _read_body(self, header: re.Match[str]) -> None:
        begin = self._at
        old_count, new_count = int(header[2] or 1), int(header[4] or 1)
        plain = self._plain_body(old_count, new_count)
        if plain is not None:
            self._at = begin + 1 + len(plain)
            self._reading.hunks.append(Hunk(len(self._reading.hunks) + 1, begin + 1, int(header[1]), plain))
            return
        old_left, new_left = old_count, new_count
        body: list[str] = []
        bare_old = bare_new = False
        lines, end = self._lines, self._end
        at = begin + 1
        problem: str | None = None
        while at < end:
            line = lines[at]
            kind = line[:1]
            if kind == MARKER:
                problem = problem or _marker_problem(line, body, bare_old=bare_old, bare_new=bare_new)
                if body:
                    bare_old = bare_old or body[-1][0] != ADDED
                    bare_new = bare_new or body[-1][0] != REMOVED
                at += 1
                continue
            if not old_left and not new_left:
                break
            if kind == ADDED and new_left:
                new_left -= 1
                has_ended = bare_new
            elif kind == REMOVED and old_left:
                old_left -= 1
                has_ended = bare_old
            elif kind in (CONTEXT, "") and old_left and new_left:
                old_left -= 1
                new_left -= 1
                has_ended = bare_old or bare_new
                line = line or CONTEXT
            else:
                break
            if has_ended:
                problem = problem or "A line follows the one that is marked as having no newline at the end."
            body.append(line)
            at += 1
        number = len(self._reading.hunks) + 1
        if old_left or new_left or self._has_surplus(at):
            self._take_miscounted(begin, old_count, new_count)
            return
        self._at = at
        if problem is None and len(body) == old_count == new_count:
            problem = "This hunk adds and removes nothing."
        if problem:
            failure = Failure(Reason.WRONG_FORMAT, problem, number=number, diff_line=begin + 1)
            self._reading.hunks.append(Unread(failure, []))
            return
        hunk = Hunk(number, begin + 1, int(header[1]), body, bare_old, bare_new)
        self._reading.hunks.append(hunk)

    def _plain_body(self, old_count: int, new_count: int) -> list[str] | None:
        """All lines up to the next header, if they are just what this one counts; None where it takes a closer look.

        Diffs that programs write have nothing else, and counting is far quicker than looking at each line.
        """
        while self._headers and self._headers[-1] <= self._at:
            self._headers.pop()
        end = min(self._headers[-1], self._end) if self._headers else self._end
        body = self._lines[self._at + 1 : end]
        kinds = "".join([line[:1] for line in body])
        added, removed, kept = kinds.count(ADDED), kinds.count(REMOVED), kinds.count(CONTEXT)
        is_plain = added + removed + kept == len(body) and (kept + removed, kept + added) == (
            old_count,
            new_count,
        )
        return body if is_plain and added + removed > 0 else None

    def _has_surplus(self, at: int) -> bool:
        while at < self._end and self._lines[at] == "":
            at += 1
        return at < self._end and self._is_body(at)

    def _take_miscounted(self, begin: int, old_count: int, new_count: int) -> None:
        body, _ = self._own_lines(begin + 1)
        old, new = len(old_lines(body)), len(new_lines(body))
        self._take_unread(
            Reason.COUNT_MISMATCH,
            f"The header counts {old_count} old and {new_count} new lines; {old} and {new} stand below it.",
        )

    def _take_unread(self, reason: Reason, problem: str, *, has_header: bool = True) -> None:
        number = len(self._reading.hunks) + 1
        header = _HUNK.fullmatch(self._lines[self._at])
        failure = Failure(
            reason,
            problem,
            number=number,
            diff_line=self._at + 1,
            declared_line=int(header[1]) if header else None,
        )
        body, self._at = self._own_lines(self._at + has_header)
        self._reading.hunks.append(Unread(failure, body))

    def _own_lines(self, first: int) -> tuple[list[str], int]:
        """The lines from index ``first`` on that look like a body, and the index behind them."""
        body: list[str] = []
        at = first
        while at < self._end and (self._lines[at] == "" or self._is_body(at)):
            body.append(self._lines[at] or CONTEXT)
            at += 1
        while body and self._lines[first + len(body) - 1] == "":
            body.pop()
        return [line for line in body if line[0] != MARKER], at

    # -- moving ---------------------------------------------------------------------------------------------

    def _is_body(self, index: int) -> bool:
        return self._lines[index].startswith(_BODY) and not self._is_file_header(index)

    def _is_second_file(self, index: int) -> bool:
        return self._is_file_header(index) or self._lines[index].startswith(("diff --git ", "Index: "))

    def _names_target(self, index: int) -> bool:
        line = self._lines[index]
        if self._is_file_header(index):
            both = (_named(line, _OLD_NAME), _named(self._lines[index + 1], _NEW_NAME))
            return all(self._is_target(name) for name in both)
        return True

    def _skip_empty(self) -> bool:
        while self._at < self._end and self._lines[self._at] == "":
            self._at += 1
        return self._at < self._end

    def _skip_blank(self) -> bool:
        while self._at < self._end and not self._lines[self._at].strip():
            self._at += 1
        return self._at < self._end

    def _skip_to_hunk(self) -> bool:
        while self._at < self._end and not _HUNK.fullmatch(self._lines[self._at]):
            self._at += 1
        return self._at < self._end

    def _fail(self, reason: Reason, problem: str, *, index: int | None = None) -> None:
        line = (self._at if index is None else index) + 1
        self._reading.failures.append(Failure(reason, problem, diff_line=min(line, len(self._lines))))


def _named(line: str, marker: str) -> str:
    return line[len(marker) :].removeprefix(" ")


def _cleaned(name: str) -> str:
    name = name.partition("\t")[0].rstrip(" ")
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name


def _marker_problem(line: str, body: list[str], *, bare_old: bool, bare_new: bool) -> str | None:
    if not line.startswith("\\ "):
        return "A line begins with a backslash and is no '\\ No newline at end of file'."
    if not body:
        return "A mark of a missing newline stands before any line."
    if body[-1][1:] == "":
        return "An empty line cannot be one without a newline at the end."
    if (bare_old and body[-1][0] != ADDED) or (bare_new and body[-1][0] != REMOVED):
        return "A mark of a missing newline stands twice."
    return None
