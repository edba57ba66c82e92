"""The store beside the least that a durable save can cost: one write and one fdatasync of the same bytes.

Each figure and its baseline come from one run, in turn where that is possible, on the disk of the checkout: a folder
for temporary files is often in memory, or full of files that others just removed.
"""

import atexit
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.rows import Row, median, milliseconds, quantile
from core import safe_open
from core.types import SYSTEM_ACTOR
from kb.content import Content, prepare_content
from kb.store.content_store import ContentStore
from kb.store.record import Subject
from tests.store.changes import Create, Import, MakeFolder, Update, make, new_line, text_of
from tests.store.children import Child, Killed, in_child
from tests.store.kills import look
from tests.store.small import Small

PLACE = Path(__file__).resolve().parent.parent / "test-results"
BODY = "A line of Markdown, as long as people write them, more or less.\n" * 125
SAVES = 400
RECORDS = 1_000


def save_beside_a_write() -> list[Row]:
    """In turn: an entry of 8 kB is saved, and as many bytes as its record has are written and synced.

    As the services do it, the text is checked and hashed before the save begins.
    """
    saves, writes = [], []
    with organization() as small, small.opened() as store:
        make(store, Create("a.md", BODY))
        with plain_file(small) as plain:
            for number in range(SAVES):
                before = log_bytes(small)
                saves.append(
                    timed(partial(save, store, f"e{number}.md", prepare_content(f"{number}\n{BODY}")))
                )
                writes.append(timed(partial(write_and_sync, plain, log_bytes(small) - before)))
    return [
        compared("save p50 beside write + fdatasync", saves, writes, median, "<= 3"),
        compared("save p95 beside write + fdatasync", saves, writes, partial(quantile, part=0.95)),
    ]


def save(store: ContentStore, name: str, content: Content) -> None:
    """The save of a new entry at the root, and nothing else."""
    with store.transaction() as transaction:
        line = new_line(transaction, name, content)
        transaction.save_entry(transaction.root.folder, line, content.data)
        subject = Subject(transaction.root.folder.id, name, line.id)
        transaction.commit("create", SYSTEM_ACTOR, [subject])


def eight_writers() -> list[Row]:
    """As many saves by eight writers, in two processes as the server has, as by one: how fast, how fair, none lost."""
    alone, (alone_times,) = _writers(1, 1)
    together, together_times = _writers(2, 4)
    worst = max(quantile(times, 0.99) for times in together_times)
    one = quantile(alone_times, 0.99)
    return [
        Row(
            "8 writers' saves a second beside one's",
            f"{together:.0f}/s",
            f"{alone:.0f}/s",
            together / alone,
            ">= 0.9",
        ),
        Row(
            "worst writer's p99 of 8 beside one's",
            milliseconds(worst),
            milliseconds(one),
            worst / one,
            "<= 10",
        ),
    ]


def _writers(processes: int, threads: int) -> tuple[float, list[list[float]]]:
    saves = 2 * SAVES // (processes * threads)

    def write(small: Small, place: int, connection: Connection) -> None:
        with small.opened() as store:
            make(store, Create(f"own{place}.md", BODY))
            times: list[list[float]] = [[] for _ in range(threads)]

            def save(thread: int) -> None:
                for number in range(saves):
                    path = f"p{place}t{thread}e{number}.md"
                    times[thread].append(timed(partial(make, store, Create(path, BODY))))

            hands = [threading.Thread(target=save, args=(thread,)) for thread in range(threads)]
            connection.send(("done", "ready"))
            connection.recv()
            for hand in hands:
                hand.start()
            for hand in hands:
                hand.join()
            connection.send(("done", times))

    with organization() as small:
        children = [Child(partial(write, small, place)) for place in range(processes)]
        for child in children:
            child.hear()
        begin = time.perf_counter()
        for child in children:
            child.tell("go")
        times = [one for child in children for one in child.hear()]
        seconds = time.perf_counter() - begin
        for child in children:
            child.wait()
        entries, _ = in_child(partial(look, small))
        assert len(entries) == processes * (threads * saves + 1), "a save is lost"
    return processes * threads * saves / seconds, times


def large_folder() -> list[Row]:
    """A save into a folder of 10,000 entries, and one into a folder of ten, in turn; and reading in both."""
    with organization() as small, small.opened() as store:
        for name, count in (("Large", 10_000), ("Little", 10)):
            make(store, Import({f"{name}/e{number}.md": "text\n" for number in range(count)}))
        large, little = ([], []), ([], [])  # type: tuple[list[float], list[float]], tuple[list[float], list[float]]
        for number in range(SAVES // 2):
            for times, path in ((large, "Large/e5.md"), (little, "Little/e5.md")):
                times[0].append(timed(partial(make, store, Update(path, f"{number}\n{BODY}"))))
                times[1].append(timed(partial(text_of, store, path)))
        return [
            compared("save into 10,000 entries beside into 10", large[0], little[0], median, "<= 1.5"),
            compared("read among 10,000 entries beside among 10", large[1], little[1], median),
        ]


def reading() -> list[Row]:
    """A read of one entry under the lock, beside opening, reading and closing the file alone."""
    with organization() as small, small.opened() as store:
        make(store, MakeFolder("F"))
        make(store, Create("F/a.md", BODY))
        locked, plain = [], []
        for _ in range(5 * SAVES):
            locked.append(timed(partial(text_of, store, "F/a.md")))
            plain.append(timed(partial(safe_open.read_file, store.layout.root, ("content", "F", "a.md"))))
        return [compared("read under the lock beside the file alone", locked, plain, median)]


def starting() -> list[Row]:
    """The first look of a process after a clean stop, and after SIGKILL with 1,000 records behind the checkpoint."""
    with organization() as small:
        saves = in_child(partial(_fill, small, SAVES))
        clean = in_child(partial(_first_look, small))
        try:
            in_child(partial(_save_and_die, small))
        except Killed:
            pass
        killed = in_child(partial(_first_look, small))
        save = median(saves)
        return [
            Row("start after a clean stop, in saves", milliseconds(clean), milliseconds(save), clean / save),
            Row(
                f"start after SIGKILL with {RECORDS} records, in saves",
                milliseconds(killed),
                milliseconds(save),
                killed / save,
            ),
        ]


def _fill(small: Small, count: int) -> list[float]:
    with small.opened() as store:
        return [timed(partial(make, store, Create(f"e{number}.md", BODY))) for number in range(count)]


def _first_look(small: Small) -> float:
    begin = time.perf_counter()
    with small.opened() as store:
        assert text_of(store, "e0.md") is not None
        return time.perf_counter() - begin


def _save_and_die(small: Small) -> None:
    store = small.open()
    text_of(store, "e0.md")
    store._checkpoint_due.set = lambda: None  # type: ignore[method-assign]
    for number in range(RECORDS):
        make(store, Update(f"e{number % SAVES}.md", f"{number}\n{BODY}"))
    assert store.records_behind_checkpoint() >= RECORDS
    os.kill(os.getpid(), 9)


def checkpoints() -> list[Row]:
    """A checkpoint of 1,000 records, in saves."""
    with organization() as small, small.opened() as store:
        store._checkpoint_due.set = lambda: None  # type: ignore[method-assign]
        saves = [timed(partial(make, store, Create(f"e{number}.md", BODY))) for number in range(RECORDS)]
        value = timed(store.checkpoint)
        assert store.records_behind_checkpoint() == 0
        return [
            Row(
                f"checkpoint of {RECORDS} records, in saves",
                milliseconds(value),
                milliseconds(median(saves)),
                value / median(saves),
            )
        ]


def among_readers() -> list[Row]:
    """How a writer gets on among two processes, as the server has, that read without a pause."""
    alone, among = _saves_among(0), _saves_among(2)
    return [
        Row(
            "saves a second among 2 busy readers beside alone",
            f"{among:.0f}/s",
            f"{alone:.0f}/s",
            among / alone,
            ">= 0.2",
        )
    ]


def _saves_among(readers: int) -> float:
    def read(small: Small, connection: Connection) -> None:
        with small.opened() as store:
            connection.send(("done", text_of(store, "a.md")))
            while True:
                text_of(store, "a.md")

    with organization() as small:
        in_child(partial(_fill, small, 1))
        with small.opened() as store:
            make(store, Create("a.md", BODY))
        children = [Child(partial(read, small)) for _ in range(readers)]
        for child in children:
            child.hear()
        times = in_child(partial(_update, small))
        for child in children:
            child.kill()
    return len(times) / sum(times)


def _update(small: Small) -> list[float]:
    with small.opened() as store:
        text_of(store, "a.md")
        return [
            timed(partial(make, store, Update("a.md", f"{number}\n{BODY}"))) for number in range(SAVES // 2)
        ]


BENCHMARKS: list[Callable[[], list[Row]]] = [
    save_beside_a_write,
    eight_writers,
    large_folder,
    reading,
    starting,
    checkpoints,
    among_readers,
]


@contextmanager
def organization() -> Iterator[Small]:
    """A fresh organization on the disk of the checkout.

    It is removed when everything is measured: for some seconds after files were removed, ext4 makes new ones slowly.
    """
    PLACE.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=PLACE))
    atexit.register(shutil.rmtree, folder)
    yield Small(folder / "data").provision()


def timed(work: Callable[[], object]) -> float:
    """Seconds that the work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def compared(
    name: str, values: list[float], baselines: list[float], of: Callable[[list[float]], float], goal: str = ""
) -> Row:
    """One figure of the values beside the same one of the baselines."""
    value, baseline = of(values), of(baselines)
    return Row(name, milliseconds(value), milliseconds(baseline), value / baseline, goal)


def log_bytes(small: Small) -> int:
    """How long the log is."""
    return sum(path.stat().st_size for path in small.log.iterdir())


@contextmanager
def plain_file(small: Small) -> Iterator[int]:
    """A file on the same disk that nothing but the baseline writes to."""
    descriptor = os.open(small.data_dir / "plain", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_and_sync(descriptor: int, size: int) -> None:
    """Append so many bytes and wait for the disk."""
    os.pwrite(descriptor, bytes(size), os.fstat(descriptor).st_size)
    os.fdatasync(descriptor)
