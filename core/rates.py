"""Counting who does how much, in memory that the worker processes of a server share.

No service, no file and no lock between processes: each process adds in a row of its own and reads those of the others.
Time is cut into slices, ten to the length of a rate, and a slice counts until all of it is past: however one looks, no
stretch of that length has more than the limit. Who does as much as is allowed, evenly, gets up to a tenth less. A
restart of the server begins anew.
"""

import hashlib
import math
import mmap
import threading
from dataclasses import dataclass

from core import clock
from core.errors import RateLimited

# Server processes at once; those beyond count for themselves.
ROWS_MAX = 80
# A row is a hash table. In a bucket that is full, what is soonest of no account makes room.
BUCKETS = 512
WAYS = 8
SLICES = 10
KEPT = SLICES + 1
# A slot: whose it is, when it is of no account any more, and the count of each slice, at its number modulo KEPT.
KEY, ENDS, COUNTS = range(3)
FIELDS = COUNTS + KEPT
FIELD_BYTES = 8
ROW_FIELDS = BUCKETS * WAYS * FIELDS


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``most`` of ``name`` within ``seconds``, a multiple of 10."""

    name: str
    most: int
    seconds: int

    @property
    def slice_seconds(self) -> int:
        """How long a slice is."""
        return self.seconds // SLICES


class Counters:
    """The counts of one server, with room for as many processes as there are ``rows``."""

    def __init__(self, rows: int = 1) -> None:
        # Anonymous and shared: children that are forked later have the same memory. The last field counts the rows.
        self._memory = memoryview(mmap.mmap(-1, (rows * ROW_FIELDS + 1) * FIELD_BYTES)).cast("Q")
        self.use_row(0)

    def use_row(self, row: int) -> None:
        """Add to this row from now on. For a process that shares it with none, right after its fork."""
        self._begin = row * ROW_FIELDS
        self._memory[-1] = max(self._memory[-1], row + 1)
        self._adding = threading.Lock()

    def spend(self, rate: Rate, subject: str) -> None:
        """Count one more for the subject. Raises RateLimited, and then it does not count."""
        key = _key(rate, subject)
        # Added first: of two at the last place at least one sees the other.
        self._add(rate, key, 1)
        try:
            self._check(rate, key, rate.most)
        except RateLimited:
            self._add(rate, key, -1)
            raise

    def require_room(self, rate: Rate, subject: str) -> None:
        """Refuse where nothing is left. Raises RateLimited."""
        self._check(rate, _key(rate, subject), rate.most - 1)

    def add(self, rate: Rate, subject: str, amount: int) -> None:
        """Count this much, whether there is room for it or not."""
        self._add(rate, _key(rate, subject), amount)

    def used(self, rate: Rate, subject: str) -> int:
        """How much counts for the subject just now."""
        return self._total(rate, _key(rate, subject), clock.monotonic())

    def _add(self, rate: Rate, key: int, amount: int) -> None:
        number = int(clock.monotonic() // rate.slice_seconds)
        ends = (number + KEPT) * rate.slice_seconds
        memory = self._memory
        with self._adding:
            slot = self._own_slot(key)
            if memory[slot + KEY] != key:
                memory[slot + KEY] = 0
                _clear(memory, slot, range(KEPT))
                memory[slot + ENDS] = ends
                memory[slot + KEY] = key
            elif memory[slot + ENDS] < ends:
                latest = memory[slot + ENDS] // rate.slice_seconds - KEPT
                _clear(memory, slot, range(max(latest + 1, number - SLICES), number + 1))
                memory[slot + ENDS] = ends
            count = slot + COUNTS + number % KEPT
            memory[count] = max(0, memory[count] + amount)

    def _check(self, rate: Rate, key: int, most: int) -> None:
        now = clock.monotonic()
        if self._total(rate, key, now) <= most:
            return
        counts = self._by_age(rate, key, now)
        raise RateLimited(
            rate=rate.name,
            limit=rate.most,
            per_seconds=rate.seconds,
            retry_after_seconds=_seconds_to_wait(most, counts, now % rate.slice_seconds, rate),
        )

    def _total(self, rate: Rate, key: int, now: float) -> int:
        # What ``_by_age`` adds up to, without sorting the slices where none of them is past.
        ends = (int(now // rate.slice_seconds) + KEPT) * rate.slice_seconds
        memory = self._memory
        total = 0
        for slot in self._slots_of(key):
            if memory[slot + ENDS] != ends:
                return sum(self._by_age(rate, key, now))
            total += sum(memory[slot + COUNTS : slot + FIELDS])
        return total

    def _by_age(self, rate: Rate, key: int, now: float) -> list[int]:
        # The counts of all processes, one a slice, this one first.
        number = int(now // rate.slice_seconds)
        counts = [0] * KEPT
        memory = self._memory
        for slot in self._slots_of(key):
            latest = min(number, memory[slot + ENDS] // rate.slice_seconds - KEPT)
            for one in range(number - SLICES, latest + 1):
                counts[number - one] += memory[slot + COUNTS + one % KEPT]
        return counts

    def _slots_of(self, key: int) -> list[int]:
        # Where the processes have the key.
        memory = self._memory
        bucket = key % BUCKETS * WAYS * FIELDS
        found = []
        for begin in range(bucket, memory[-1] * ROW_FIELDS, ROW_FIELDS):
            for slot in range(begin, begin + WAYS * FIELDS, FIELDS):
                if memory[slot] == key:
                    found.append(slot)
                    break
        return found

    def _own_slot(self, key: int) -> int:
        # The key's, else the one that is free or soonest will be.
        memory = self._memory
        begin = self._begin + key % BUCKETS * WAYS * FIELDS
        slots = range(begin, begin + WAYS * FIELDS, FIELDS)
        for slot in slots:
            if memory[slot] == key:
                return slot
        return min(slots, key=lambda slot: memory[slot + ENDS])


class Rows:
    """Which process has which row. Kept by the one process that forks the others, before each fork."""

    def __init__(self) -> None:
        self._taken: set[int] = set()

    def take(self) -> int | None:
        """A row that no living process has; what stands in it still counts. None where all are taken."""
        free = next((row for row in range(ROWS_MAX) if row not in self._taken), None)
        if free is not None:
            self._taken.add(free)
        return free

    def give_back(self, row: int) -> None:
        """After the process ended."""
        self._taken.discard(row)


def _clear(memory: memoryview, slot: int, slices: range) -> None:
    for number in slices:
        memory[slot + COUNTS + number % KEPT] = 0


def _seconds_to_wait(most: int, counts: list[int], passed: float, rate: Rate) -> int:
    # Until so many of the oldest slices are past that the rest is no more than ``most``.
    left, slices = sum(counts), 0
    while left > most:
        slices += 1
        left -= counts[KEPT - slices]
    return max(1, math.ceil(slices * rate.slice_seconds - passed))


def _key(rate: Rate, subject: str) -> int:
    digest = hashlib.blake2b(f"{rate.name} {subject}".encode(), digest_size=FIELD_BYTES).digest()
    return int.from_bytes(digest, "little") or 1
