"""What is recorded of a run, to be judged afterwards: every ADDJOB and every delivery, as clients
saw them, and who had a copy of a job when its client was answered.

Each job has a body that no other job has, so a delivery says which ADDJOB it belongs to, also when
the answer to that ADDJOB was lost on its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import attrs

from disque_tx.core.tables.definition import Definition
from disque_tx.core.tables.table import REPAIRED
from disque_tx.messages.tables import POLICIES, Register


@attrs.define
class Added:
    """One ADDJOB. Times are true time in microseconds, -1 for never.

    ``asked_us``: sent. ``answered_us``: when the node sent the ID. ``accepted_us``: the ID came
    back. ``refused``: the error that came back.
    ``node``: address of the node asked. ``outside``: that node kept no copy itself at that time.
    ``holders``: addresses of the nodes that had a copy when the client was answered. ``known``: the
    answer named the job that an earlier request with its key had added. ``key``: its key, if jobs
    have keys that are used again.
    """

    body: bytes
    queue: bytes
    node: bytes
    asked_us: int
    replicate: int
    retry_s: int
    ttl_s: int
    delay_s: int
    asynchronous: bool
    answered_us: int = -1
    accepted_us: int = -1
    job_id: bytes = b""
    refused: str = ""
    outside: bool = False
    holders: frozenset[bytes] = frozenset()
    known: bool = False
    key: bytes = b""


@attrs.frozen
class NamedJob:
    """An answer of ``node`` to ADDJOB that named a job which had the key already. ``asked_us``:
    when it was asked for."""

    key: bytes
    job_id: bytes
    node: bytes
    asked_us: int


@attrs.frozen
class RecordedDelivery:
    """One job in the answer to a GETJOB. ``sent_us``: when the node sent it; ``at_us``: when the
    client received it. ``answer``: a number that the jobs of one answer share."""

    body: bytes
    job_id: bytes
    queue: bytes
    node: bytes
    sent_us: int
    at_us: int
    nacks: int
    deliveries: int
    answer: int = 0


@attrs.define
class JobRequest:
    """One job in a request that does something with it: ACKJOB, NACK, ENQUEUE, WORKING and so on.

    ``asked_us``: sent. ``answered_us``: when the node answered, -1 if nothing arrived; ``reply`` is
    the number then, for this job, -1 for an error or if the answer leaves open which jobs it
    counts. ``delay_us``: what a NACK asked for, -1 if nothing. ``refused``: the error.
    """

    word: bytes
    job_id: bytes
    node: bytes
    asked_us: int
    answered_us: int = -1
    reply: int = -1
    delay_us: int = -1
    refused: str = ""


@attrs.frozen
class SeenLetter:
    """A delivery of a dead letter. ``about``: the ID of the job in it, ``body``: its body.
    ``job_id``: of the letter."""

    about: bytes
    body: bytes
    job_id: bytes


@attrs.define
class RecordedPause:
    """One PAUSE. ``flags``: 1 for in, 2 for out. ``everywhere``: broadcast to all other nodes.
    Times as in :class:`JobRequest`."""

    queue: bytes
    node: bytes
    flags: int
    everywhere: bool
    asked_us: int
    answered_us: int = -1


@attrs.frozen
class ShownCounters:
    """The counters in an answer to SHOW that the node sent at ``answered_us``."""

    job_id: bytes
    node: bytes
    answered_us: int
    nacks: int
    deliveries: int


#: The generation and the counter of a register.
Version = tuple[int, int]


@attrs.define
class TableChange:
    """A change of policies, or of the schedule ``pattern``. ``value``: of all its settings, or the
    body of its jobs; empty when it deletes. ``table``: its number. ``answered``: the client knows
    that it is made. ``versions``: by setting, the version of the change, where nothing later was
    there already. ``node``: where it was made. ``disk``: which disk of that node had it. Times as
    in :class:`JobRequest`."""

    pattern: bytes
    names: list[bytes]
    value: bytes
    asked_us: int
    table: int = POLICIES
    answered: bool = False
    answered_us: int = -1
    versions: dict[bytes, Version] = attrs.Factory(dict)
    node: bytes = b""
    disk: int = 0

    def is_in(self, register: Register) -> bool:
        """Whether this is what the register holds."""
        if not self.value:
            return register.deleted_s != 0
        held = register.value if self.table == POLICIES else register.value.partition(b"\n")[2]
        return register.deleted_s == 0 and held == self.value


@attrs.define
class TableRepair:
    """A REPAIR of a table. ``values``: what all nodes had in it, if nobody changed it any more.
    Times as in :class:`JobRequest`."""

    table: int
    asked_us: int
    values: dict[tuple[bytes, ...], tuple[bytes, ...]] | None = None
    answered_us: int = -1


@attrs.define
class Waited:
    """One WAITJOB. ``answer``: what came back, an error as text, empty after the time-out; valid
    once ``answered_us`` is not -1. Times as in :class:`JobRequest`."""

    job_id: bytes
    node: bytes
    asked_us: int
    timeout_ms: int
    answered_us: int = -1
    answer: bytes | str = b""


@attrs.define
class RecordedFlush:
    """One QFLUSH. ``there``: by node, the jobs that it was for when it was sent. ``reply``: how
    many jobs ended, -1 if nothing arrived. Times as in :class:`JobRequest`."""

    queue: bytes
    state: bytes
    everywhere: bool
    asked_us: int
    node: bytes = b""
    answered_us: int = -1
    reply: int = -1
    there: dict[bytes, set[bytes]] = attrs.Factory(dict)


@attrs.define
class Counted:
    """One QCOUNT, and the fields of its answer, none if nothing arrived. Times as in
    :class:`JobRequest`."""

    queue: bytes
    everywhere: bool
    asked_us: int
    answered_us: int = -1
    values: dict[bytes, Any] = attrs.Factory(dict)


class WatchedSchedule:
    """One definition of a schedule, as the nodes had it. ``last_s``: the last occurrence that a
    node knew of; ``known_us``: for each, when that was first seen, in true time. ``force_us``: when
    it was last seen in force, and not paused, at all nodes that have tables. ``repaired``: a repair
    of the table has made it of the one before."""

    def __init__(self, name: bytes, definition: Definition, generation: int = 0) -> None:
        self.name = name
        self.definition = definition
        self.repaired = generation > 0 and definition.counter == REPAIRED
        self.last_s = 0
        self.known_us: list[tuple[int, int]] = []
        self.force_us = 0


class ScheduleRecord:
    """What became of schedules. ``used``: there are any in this run. ``watched``: by name,
    generation, counter, node and start of the definition. ``taken``: by job ID, how often it was
    delivered. ``ended``: every schedule is deleted. ``short_us``: when fewer nodes than a job has
    copies stayed in the cluster.
    """

    def __init__(self) -> None:
        self.used = False
        self.watched: dict[tuple[bytes, int, int, bytes, int], WatchedSchedule] = {}
        self.taken: dict[bytes, int] = {}
        self.ended = True
        self.short_us: list[int] = []


@attrs.define
class RunHistory:
    """Everything in the order in which it happened. ``added``: by body. ``job_requests``: in the
    order in which they were asked for. ``copied``: the bodies of jobs that came from the queue of
    copies. ``admitted``: answers without errors to clients that have no password. ``keys``: IDs
    that ADDJOB was answered with, by key, which is the body, too."""

    added: dict[bytes, Added] = attrs.Factory(dict)
    delivered: list[RecordedDelivery] = attrs.Factory(list)
    job_requests: list[JobRequest] = attrs.Factory(list)
    letters: list[SeenLetter] = attrs.Factory(list)
    copied: list[bytes] = attrs.Factory(list)
    pauses: list[RecordedPause] = attrs.Factory(list)
    shown_counters: list[ShownCounters] = attrs.Factory(list)
    admitted: list[str] = attrs.Factory(list)
    table_changes: list[TableChange] = attrs.Factory(list)
    repairs: list[TableRepair] = attrs.Factory(list)
    waits: list[Waited] = attrs.Factory(list)
    flushes: list[RecordedFlush] = attrs.Factory(list)
    counts: list[Counted] = attrs.Factory(list)
    keys: dict[bytes, set[bytes]] = attrs.Factory(dict)
    named: list[NamedJob] = attrs.Factory(list)
    schedules: ScheduleRecord = attrs.Factory(ScheduleRecord)

    def accepted(self) -> Iterator[Added]:
        """The jobs whose clients have an ID."""
        return (added for added in self.added.values() if added.accepted_us >= 0)

    def last_accepted(self, count: int) -> list[Added]:
        """The last accepted jobs, ``count`` at most, in the order in which they were asked for."""
        newest = (added for added in reversed(self.added.values()) if added.accepted_us >= 0)
        return list(islice(newest, count))[::-1]

    def asked(self, *words: bytes) -> dict[bytes, list[JobRequest]]:
        """The requests with these words, by job."""
        result: dict[bytes, list[JobRequest]] = {}
        for request in self.job_requests:
            if request.word in words:
                result.setdefault(request.job_id, []).append(request)
        return result

    def by_body(self) -> dict[bytes, list[RecordedDelivery]]:
        """Deliveries of each job."""
        result: dict[bytes, list[RecordedDelivery]] = {}
        for delivery in self.delivered:
            result.setdefault(delivery.body, []).append(delivery)
        return result

    def duplicates(self) -> int:
        """Deliveries beyond the first one of each job."""
        return len(self.delivered) - len({delivery.body for delivery in self.delivered})
