"""The counts of queues at this node, without a walk over their jobs: QCOUNT, the rows of QLIST, and
the figures that listeners show.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.policies.settings import dead_queue
from disque_tx.core.queues.queues import PAUSE_NAMES, Queue, Queues
from disque_tx.core.state.state import State
from disque_tx.messages.limits import QUEUE_BYTES_MAX

#: The numbers of a row, behind its name.
NUMBERS: Final = (
    *(b"queued", b"delayed", b"backoff", b"in-flight", b"dead", b"blocked-clients"),
    *(b"oldest-ms", b"in-per-s", b"out-per-s", b"loaded"),
)
#: The number that is no sum over nodes.
_OLDEST: Final = 6
#: Digits of a number that another node reports.
_DIGITS_MAX: Final = 18
_PAUSES: Final = [name.decode() for name in PAUSE_NAMES]
#: A row of figures: see :func:`queue_figures`.
Figures = tuple[bytes, int, float, int, int, int, int, int, int, str, int, int, int, int]


class QueueNumbers:
    """One queue, at one node or at several. ``numbers``: in the order of :data:`NUMBERS`; rates in
    jobs per 1,000 seconds.

    ``dead`` is how many dead letters are queued in the queue that the policy names for them.
    ``loaded`` is how many jobs came from the log, and are in none of these places yet.
    ``oldest-ms`` is for how long the first job of the queue has been queued, 0 without one.
    """

    __slots__ = ("name", "numbers")

    def __init__(self, name: bytes, numbers: list[int]) -> None:
        self.name: bytes = name
        self.numbers: list[int] = numbers

    def add(self, numbers: list[int]) -> None:
        """Add what another node counts: each job is counted by the one node that has it in its
        queue, waits for its delay or backoff, gave it to a client, or loaded it."""
        for place in range(len(NUMBERS)):
            mine, other = self.numbers[place], numbers[place]
            self.numbers[place] = max(mine, other) if place == _OLDEST else mine + other

    def words(self) -> list[bytes]:
        """Words of a report: the name, and the numbers."""
        return [self.name, *[b"%d" % number for number in self.numbers]]


def number_of(word: bytes) -> i64:
    """A number that another node reports, -1 for anything else."""
    return int(word) if word.isdigit() and len(word) <= _DIGITS_MAX else -1


def rows_of(words: list[bytes]) -> list[QueueNumbers] | None:
    """The rows of a report; ``None`` if it is none."""
    size = len(NUMBERS) + 1
    if len(words) % size:
        return None
    rows: list[QueueNumbers] = []
    for start in range(0, len(words), size):
        numbers: list[int] = []
        for word in words[start + 1 : start + size]:
            number = number_of(word)
            if number < 0:
                return None
            numbers.append(int(number))
        rows.append(QueueNumbers(words[start], numbers))
    return rows


class QueueCounter:
    """Counts what is kept: nothing is walked."""

    def __init__(self, state: State) -> None:
        self._turn = state.turn
        self._queues = state.queues
        self._tallies = state.tallies
        self._policies = state.policies

    def of(self, name: bytes) -> QueueNumbers:
        """One queue, which need not exist."""
        now_ms = self._turn.now_ms
        queued: i64 = 0
        blocked: i64 = 0
        oldest_ms: i64 = 0
        in_milli: i64 = 0
        out_milli: i64 = 0
        queue = self._queues.get(name)
        if queue is not None:
            queued = queue.jobs.size
            blocked = queue.blocked()
            in_milli, out_milli = queue.milli_per_s(now_ms)
            first = queue.jobs.first()
            if first is not None:
                oldest_ms = now_ms - first.moved_ms
        delayed, backoff, in_flight, loaded = self.elsewhere(name)
        numbers: list[int] = [
            *(queued, delayed, backoff, in_flight, self._dead(name), blocked),
            *(oldest_ms, in_milli, out_milli, loaded),
        ]
        return QueueNumbers(name, numbers)

    def elsewhere(self, name: bytes) -> tuple[i64, i64, i64, i64]:
        """The jobs of a queue that are not in it: delayed, in backoff, in flight,
        loaded from the log."""
        tally = self._tallies.get(name)
        if tally is None:
            return 0, 0, 0, 0
        return tally.delayed, tally.backoff, tally.in_flight, tally.loaded

    def _dead(self, name: bytes) -> i64:
        if len(name) > QUEUE_BYTES_MAX and self._tallies.get(name) is None:
            return 0  # no policy is looked for; of names that were made up there is no end
        policy = self._policies.of(name)
        queue = self._queues.get(dead_queue(name) if policy is None else policy.dead_queue)
        return 0 if queue is None else queue.jobs.size


def scan_figures(
    queues: Queues, counts: QueueCounter, cursor: i64, least: i64, now_ms: i64
) -> tuple[int, list[Figures]]:
    """The figures of at least ``least`` queues from this cursor on, and the next cursor."""
    rows: list[Figures] = []
    while True:
        cursor, found = queues.table.scan(cursor)
        for queue in found:
            rows.append(queue_figures(queue, counts, now_ms))
        if cursor == 0 or len(rows) >= least:
            return int(cursor), rows


def queue_figures(queue: Queue, counts: QueueCounter, now_ms: i64) -> Figures:
    """In the order of ``QueueFigures``, whose members they are: name, jobs in it, seconds that the
    first one has waited, seconds since it exists and since it was used, clients that wait, jobs
    queued and fetched, jobs per second from other nodes, pause; its jobs that are delayed, in
    backoff, in flight, and loaded from the log."""
    delayed, backoff, in_flight, loaded = counts.elsewhere(queue.name)
    first = queue.jobs.first()
    return (
        queue.name,
        queue.jobs.size,
        0.0 if first is None else max(0, now_ms - first.moved_ms) / 1000,
        int((now_ms - queue.created_ms) // 1000),
        int((now_ms - queue.used_ms) // 1000),
        queue.blocked(),
        int(queue.jobs_in),
        int(queue.jobs_out),
        int(queue.import_rate(now_ms)),
        _PAUSES[queue.paused],
        int(delayed),
        int(backoff),
        int(in_flight),
        int(loaded),
    )
