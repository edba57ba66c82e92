"""What the benchmarks stand on: the same tree everywhere, honest verdicts, and nobody's names misspelt in silence.

No figure is judged here.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from benchmarks import corpus, diffs, load
from benchmarks.rows import Row, median, quantile
from benchmarks.timing import in_turn, ratio_in_the_middle
from kb.patching.applying import apply_diff
from tests.server import ROOT

# Of a tree of 25 entries: every name and every byte.
DIGEST = "cd4525301232d08d82b7b07a4693c513c1c398e0e8fda3470ae224f0a6647f2d"


def test_a_tree_is_the_same_to_the_byte_wherever_it_is_made(tmp_path: Path) -> None:
    corpus.make(tmp_path, 25)

    digest = hashlib.sha256()
    for file in files_below(tmp_path):
        digest.update(str(file.relative_to(tmp_path)).encode() + file.read_bytes())
    assert digest.hexdigest() == DIGEST


def test_a_tree_has_words_that_nearly_all_entries_hold_and_a_text_that_none_holds(tmp_path: Path) -> None:
    corpus.make(tmp_path, 100)

    texts = [file.read_text("utf-8") for file in files_below(tmp_path)]
    common = corpus.common_word(files_below(tmp_path))
    assert len(texts) == 100
    assert sum(common in text.lower() for text in texts) > 50
    assert not any(corpus.NOWHERE in text for text in texts)


@pytest.mark.parametrize(
    ("ratio", "goal", "is_met"),
    [
        (2.0, "<= 2", True),
        (2.01, "<= 2", False),
        (0.7, ">= 0.7", True),
        (0.69, ">= 0.7", False),
        (9.0, "", None),
    ],
)
def test_a_row_says_whether_it_meets_its_goal(ratio: float, goal: str, is_met: bool | None) -> None:
    assert Row("a", "1", "1", ratio, goal).is_met is is_met


def test_times_are_taken_in_turn_and_warm_rounds_do_not_count() -> None:
    calls: list[str] = []

    taken = in_turn(lambda: calls.append("a"), lambda: calls.append("b"), times=2, warm=1)

    assert calls == ["a", "b"] * 3
    assert [len(times) for times in taken] == [2, 2]


def test_figures_are_the_ones_in_the_middle() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert quantile([float(number) for number in range(100)], 0.95) == 95.0
    assert ratio_in_the_middle([2.0, 9.0, 6.0], [1.0, 3.0, 3.0]) == 2.0


def test_the_diff_that_is_measured_is_one_that_applies() -> None:
    lines = [diffs.LINE.format(number) for number in range(60)]
    text = "\n".join(lines) + "\n"

    patched = apply_diff(text, diffs.diff_of(lines, 3), path="a.md")

    assert patched.offsets == ()
    assert patched.text.count("\n") == 63
    assert [f"New {number}\nAnd more\n" in patched.text for number in range(3)] == [True] * 3


def test_the_load_counts_whole_answers() -> None:
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            body = b"x" * 100_000
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Quiet."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Whoever asked goes without a word when its time is over."""

    with Quiet(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        request = b"GET /who HTTP/1.1\r\nHost: x\r\n\r\n"
        count, _ = load.count_answers(server.server_address[1], request, seconds=0.2, connections=2)
        server.shutdown()

    # At the end each of the two connections waits for an answer.
    assert 0 < count <= len(asked) <= count + 2
    assert set(asked) == {"/who"}


def test_a_run_writes_its_rows_as_json_and_an_unknown_name_is_refused(tmp_path: Path) -> None:
    whole = run("--only", "store.reading", "--json", str(tmp_path / "rows.json"))
    unknown = run("--only", "store.raeding", "--json", str(tmp_path / "none.json"))

    (row,) = json.loads((tmp_path / "rows.json").read_text("utf-8"))
    assert whole.returncode == 0
    assert row["name"] in whole.stdout
    assert set(row) == {"part", "name", "value", "baseline", "ratio", "goal", "is_met"}
    assert unknown.returncode == 1
    assert "store.raeding" in unknown.stderr
    assert not (tmp_path / "none.json").exists()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.run", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def files_below(folder: Path) -> list[Path]:
    found: Iterable[Path] = folder.rglob("*.md")
    return sorted(found)
