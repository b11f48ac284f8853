"""A job on this node: the record, its bookkeeping, the one table of transitions, and its lifetime.

Case by case (cluster protocol, section 10.1): a job is born waiting for copies; ``QUEUE`` puts it
in this node's queue, ``HOLD`` lets it wait here outside the queue, ``ACK`` ends its life for
clients. What the table does not allow raises ``LocalError`` before anything has changed.

How long a job lives and is delayed, when neither the clock of another machine nor this one's time
of day since the job was recorded can be relied on:

1. While a node runs, all this lies on its steady clock.
2. ``ctime`` is the time of day of another machine, or of this one before its clock was set. It
   orders jobs; the difference to a time of day of this machine proves nothing.
3. The ID of a job holds its TTL in minutes, rounded. That bounds what is computed from clocks.
4. After a restart DELAY starts again, as with the original: the job may be late, never early. But
   not so late that its life would end before a client could get it.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_le
from mypy_extensions import i32, i64, mypyc_attr, u8

from disque_tx.errors import LocalError
from disque_tx.messages.limits import SECONDS_MAX, U32_MAX
from disque_tx.messages.records import ACKED, ACTIVE, QUEUED, STATE_NAMES, WAIT_REPL, JobRecord

#: Events.
QUEUE: Final = 0
HOLD: Final = 1
ACK: Final = 2

#: Where an active job of this node is counted.
NOWHERE: Final = 0
DELAYED: Final = 1
BACKOFF: Final = 2
IN_FLIGHT: Final = 3
#: From here on: from the log, and nothing else is known of it yet.
LOADED: Final = 4
RESUMING: Final = 5
PLACE_NAMES: Final = (b"none", b"delayed", b"backoff", b"in-flight", b"loaded", b"resuming")
_EVENT_NAMES: Final = ("queue", "hold", "ack")

#: The priority of jobs that were added without one. Smaller numbers come first, as far as 2³² - 1.
PRIORITY: Final = 1_024
_MIDDLE: Final = 0x8000_0000

_FORBIDDEN: Final = -1
_TRANSITIONS: Final = {
    (WAIT_REPL, QUEUE): QUEUED,
    (WAIT_REPL, HOLD): ACTIVE,
    (WAIT_REPL, ACK): ACKED,
    (ACTIVE, QUEUE): QUEUED,
    (ACTIVE, ACK): ACKED,
    (QUEUED, HOLD): ACTIVE,
    (QUEUED, ACK): ACKED,
}
#: The same table by number, for the hot path: state * 3 + event.
_NEXT: Final = [
    _TRANSITIONS.get((state, event), _FORBIDDEN) for state in range(4) for event in range(3)
]


@mypyc_attr(acyclic=True)
class Job(JobRecord):
    """A registered job.

    All times are milliseconds of the node's steady clock. ``expire_ms``: when its life ends.
    ``qtime_ms``: when its state next wants something done, 0 for never: place more copies (waiting
    for copies), send SETACK again (acked), otherwise queue it again.
    ``confirmed``: nodes that confirmed the copy (waiting for copies) or the acknowledgement
    (acked), otherwise ``None``. ``gc_retry``: collection attempts so far. ``dummy``: only the
    memory that this ID was acknowledged, without queue and body. ``held``: kept for another node,
    with RETRY 0: it may be queued at the order of that node, and not before. ``retried``: its RETRY
    began because the one before it was over, here or at another holder. ``regained``: this node
    made it, and got it from another one, since it had lost it. ``promised``: others were told that
    it exists while the node that made it could not be reached. ``place``: what it is
    counted as besides its state: ``DELAYED`` while this node waits for its DELAY, ``BACKOFF`` while
    it is held back here until ``qtime_ms`` (see :mod:`disque_tx.core.delivery.backoff`),
    ``IN_FLIGHT`` if a client of this node fetched it, and it is neither done nor queued here again,
    ``LOADED`` if it came from the log, and waits for its RETRY or for a message about it,
    ``RESUMING`` if it also was in this node's queue when the node stopped, and goes back there soon
    (see :mod:`disque_tx.core.recovery`), else ``NOWHERE``; changed by :class:`JobStore` only.
    ``moved_ms``: when it was last queued or delivered here; of one that is held back, when the
    other holders were last notified of that. ``rank``: its priority at this node, less 2³¹; not
    changed while it is in a queue.
    """

    __slots__ = (
        "gc_retry",
        "dummy",
        "held",
        "retried",
        "regained",
        "promised",
        "place",
        "rank",
        "_life_s",
        "confirmed",
        "expire_ms",
        "qtime_ms",
        "moved_ms",
    )

    def __init__(
        self,
        job_id: bytes,
        queue: bytes,
        body: bytes,
        nodes: tuple[bytes, ...],
        ctime: i64,
        etime_s: i64,
        *,
        delay_s: i64,
        retry_s: i64,
        repl: i64,
    ) -> None:
        super().__init__(
            job_id, queue, body, nodes, ctime, etime_s, delay_s=delay_s, retry_s=retry_s, repl=repl
        )
        self.gc_retry: u8 = 0
        self.dummy: bool = False
        self.held: bool = False
        self.retried: bool = False
        self.regained: bool = False
        self.promised: bool = False
        self.place: u8 = NOWHERE
        self.rank: i32 = i32(PRIORITY - _MIDDLE)
        self._life_s: i32 = 0
        self.confirmed: set[bytes] | None = None
        self.expire_ms: i64 = 0
        self.qtime_ms: i64 = 0
        self.moved_ms: i64 = 0

    @property
    def in_flight(self) -> bool:
        """Whether a client of this node works on it, as far as this node knows."""
        return self.place == IN_FLIGHT

    @property
    def backoff(self) -> bool:
        """Whether it is held back here (see :mod:`disque_tx.core.delivery.backoff`)."""
        return self.place == BACKOFF

    @property
    def priority(self) -> i64:
        """The priority at this node, from 0, which comes first, to 2³² - 1."""
        return i64(self.rank) + _MIDDLE

    @priority.setter
    def priority(self, priority: i64) -> None:
        self.rank = i32(priority - _MIDDLE)

    @property
    def life_ms(self) -> i64:
        """The TTL it was added with; of a copy, and after a restart, as far as that is known."""
        return (i64(self._life_s) & U32_MAX) * 1000

    @life_ms.setter
    def life_ms(self, life_ms: i64) -> None:
        life_s = life_ms // 1000
        self._life_s = i32(life_s if life_s < 0x8000_0000 else life_s - 0x1_0000_0000)

    def step(self, event: i64) -> None:
        """Make the transition; raises ``LocalError`` for one that the table does not hold."""
        state = _NEXT[i64(self.state) * 3 + event]
        if state == _FORBIDDEN:
            raise LocalError(
                f"job {self.id.decode('latin-1')}: no {_EVENT_NAMES[event]}"
                f" in state {STATE_NAMES[self.state].decode()}"
            )
        self.state = u8(state)


def before(a: Job, b: Job) -> bool:
    """Queue order: priority, creation time, then ID bytes (client protocol, section 13.2)."""
    if a.rank != b.rank:
        return a.rank < b.rank
    if a.ctime != b.ctime:
        return a.ctime < b.ctime
    return a.id < b.id


def valid_id(job_id: bytes) -> bool:
    """Whether this can be a job ID: length and the four fixed bytes (client protocol, 6.3)."""
    return (
        len(job_id) == 40
        and job_id[0] == 68
        and job_id[1] == 45
        and job_id[10] == 45
        and job_id[35] == 45
    )


def life_minutes(job_id: bytes) -> i64:
    """The TTL in the ID, in minutes; other characters than hexadecimal digits count as 0."""
    minutes: i64 = 0
    at: i64 = 36
    end: i64 = min(len(job_id), 40)
    while at < end:
        digit: i64 = job_id[at]
        at += 1
        minutes *= 16
        if 48 <= digit <= 57:
            minutes += digit - 48
        elif 97 <= digit <= 102 or 65 <= digit <= 70:
            minutes += digit % 32 + 9
    return minutes


def may_repeat(job_id: bytes) -> bool:
    """Whether the job may be delivered more than once: then the TTL in its ID is odd."""
    return life_minutes(job_id) % 2 == 1


#: How much of its life may have passed for a copy when it arrived.
_ARRIVED_S: Final = 10
#: The most that an ID can hold.
_MINUTES_MAX: Final = 65_534


def life_s_min(job_id: bytes) -> i64:
    """The shortest TTL that goes with the ID: the last bit of the minutes is not part of it."""
    return _shortest_s(life_minutes(job_id))


def life_s_max(job_id: bytes) -> i64:
    """The longest TTL that goes with the ID."""
    return _longest_s(life_minutes(job_id))


def _shortest_s(minutes: i64) -> i64:
    return (minutes & ~1) * 60


def _longest_s(minutes: i64) -> i64:
    minutes |= 1
    return SECONDS_MAX if minutes > _MINUTES_MAX else 60 * (minutes + 1)


def whole_life_s(job_id: bytes, clocks_s: i64) -> i64:
    """The TTL that a job was added with: ``clocks_s``, by two clocks, but as the ID allows."""
    minutes = life_minutes(job_id)
    return max(_shortest_s(minutes), min(clocks_s, _longest_s(minutes)))


def delay_left_ms(job: Job, mine: bool, left_ms: i64) -> i64:
    """For how long a job that comes from the log is delayed.

    ``mine``: this node made it, so both ends of its life are by one clock. ``left_ms``: what is
    left of that. Of the time between DELAY and the end of its life, half is kept for its delivery,
    but not more than DELAY.
    """
    delay_ms = job.delay_s * 1000
    if mine:
        life_ms = min(job.life_ms, job.etime_s * 1000 - job.ctime // 1_000_000)
    else:
        life_ms = (life_s_min(job.id) - _ARRIVED_S) * 1000
    reserve_ms = max(0, min(delay_ms, (life_ms - delay_ms) // 2))
    return max(0, min(delay_ms, left_ms - reserve_ms))


def made_by(node_id: bytes, job_id: bytes) -> bool:
    """Whether the ID of the job says that the node made it (cluster protocol, section 15.2)."""
    if len(node_id) < 8 or len(job_id) < 10:
        return node_id[:8] == job_id[2:10]
    return read_i64_le(node_id, 0) == read_i64_le(job_id, 2)  # eight characters at once
