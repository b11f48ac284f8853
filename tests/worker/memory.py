"""A client with a node in memory, and a worker on it, with a clock that the test advances."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import (
    AddOptions,
    ConnectionLost,
    Job,
    JobDetails,
    Refused,
    TooLate,
    UnknownJob,
)
from disque_tx.client.addresses import Address, address
from disque_tx.text.globs import glob_match
from disque_tx.worker import Backoff, Letter, Worker
from disque_tx.worker.running.runs import RunOutcome, Slot
from disque_tx.worker.running.threads import Report, run_in_thread
from tests.forwardclock import ForwardClock

NODE = "127.0.0.1:7711"


@attrs.define
class Stored:
    """A job on its node. ``requeue_s``: the time when it is queued again, or ``None``."""

    job: Job
    retry_s: int
    ttl_s: int
    made_s: float
    state: str = "queued"
    requeue_s: float | None = None


def _schedule_row(name: bytes) -> dict[bytes, Any]:
    """A schedule in SCHEDULE LIST, of which only the name matters here."""
    words = (b"when", b"zone", b"missed", b"state", b"queue", b"body", b"node", b"error")
    row: dict[bytes, Any] = dict.fromkeys(words, b"")
    return {**row, b"name": name, b"options": [], b"last": 0, b"next": []}


class MemoryTaken:
    """A delivered job of :class:`MemoryClient`."""

    def __init__(self, client: MemoryClient, job: Job) -> None:
        self.client = client
        self.job = job

    @property
    def id(self) -> str:
        """The ID of the job."""
        return self.job.id

    @property
    def data(self) -> bytes:
        """The body of the job."""
        return self.job.body

    @property
    def address(self) -> Address:
        """The node that delivered it."""
        return address(NODE)

    def working(self, progress: float | None = None, note: str | None = None) -> Deferred[int]:
        """WORKING."""
        return self.client.answer(
            "WORKING", lambda: self.client.postpone(self.id, progress, note), self.id
        )

    def show(self) -> Deferred[JobDetails | None]:
        """SHOW."""
        return self.client.answer("SHOW", lambda: self.client.details(self.id), self.id)


class MemoryClient:
    """The behaviour of a node that a worker can observe (client protocol, 15 to 18).

    ``calls``: command, time and argument of each request. ``broken``: called before each command;
    the request fails with the exception it returns. With ``lossy`` the command is still executed.
    ``late_s``: how long the answers to some commands take.
    ``policies``: settings by queue, ``None`` on an original; ``asked``: commands about them.
    ``schedules``: by name, the words they were set with, ``None`` on an original.
    ``reasons``: of the last NACK of each job. ``knows_match``, ``knows_progress``,
    ``knows_workers``: it is no original. ``announced``: what workers said about themselves.
    ``progress``: what was reported, and when.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.jobs: dict[str, Stored] = {}
        self.calls: list[tuple[str, float, Any]] = []
        self.broken: Callable[[str], Exception | None] = lambda command: None
        self.lossy = False
        self.late_s: dict[str, float] = {}
        self.retry_s = 300
        self.ttl_s = 86400
        self.waiting: deque[tuple[Deferred[Any], tuple[str, ...], int]] = deque()
        self.most_requested = 0
        self.knows_match = False
        self.knows_progress = True
        self.progress: list[tuple[float, float, str | None]] = []
        self.name = ""
        self.knows_workers = True
        self.announced: list[bytes] = []
        self.schedules: dict[bytes, tuple[object, ...]] | None = {}
        self.policies: dict[str, dict[str, str]] | None = None
        self.asked: list[tuple[object, ...]] = []
        self.reasons: dict[str, str | None] = {}

    # -- for tests ---------------------------------------------------------------------------

    def put(
        self, queue: str, body: bytes = b"", retry_s: int | None = None, ttl_s: int | None = None
    ) -> str:
        """Add a job, even while commands are broken."""
        job_id = f"D-{len(self.jobs):08x}"
        retry_s = self.retry_s if retry_s is None else retry_s
        now_s = self.clock.seconds()
        stored = Stored(Job(queue, job_id, body), retry_s, ttl_s or self.ttl_s, now_s)
        self.jobs[job_id] = stored
        self._queue(stored)
        return job_id

    def queued(self, queue: str) -> list[Job]:
        """The jobs queued in a queue."""
        found = [stored for stored in self.jobs.values() if stored.job.queue == queue]
        return [stored.job for stored in found if stored.state == "queued"]

    def letters(self, queue: str) -> list[Letter]:
        """The dead letters of a queue."""
        return [Letter.decoded(job.body) for job in self.queued(f"dead:{queue}")]

    def state(self, job_id: str) -> str:
        """The state of a job: queued, active or acked."""
        return self.jobs[job_id].state

    def times(self, command: str) -> list[float]:
        """The times at which a command was received."""
        return [at_s for name, at_s, _ in self.calls if name == command]

    def tick(self) -> None:
        """Queue the jobs that were not acknowledged in time."""
        now_s = self.clock.seconds()
        for stored in list(self.jobs.values()):
            due = stored.requeue_s is not None and stored.requeue_s <= now_s
            if stored.state == "active" and due:
                more = stored.job.additional_deliveries + 1
                stored.job = attrs.evolve(stored.job, additional_deliveries=more)
                self._queue(stored)

    # -- the client --------------------------------------------------------------------------

    def take(
        self,
        *queues: str,
        match: Sequence[str] = (),
        except_: str | Sequence[str] = (),
        count: int = 1,
        timeout_s: float | None = None,
        no_hang: bool = False,
    ) -> Deferred[Any]:
        """GETJOB, whose patterns an original refuses."""
        self.most_requested = max(self.most_requested, count)
        if match and not self.knows_match:
            self.calls.append(("GETJOB", self.clock.seconds(), match))
            return fail(Refused("GETJOB", NODE, "ERR", "syntax error"))
        if match:
            excepted = [except_] if isinstance(except_, str) else except_
            queues += tuple(self._matching(match, excepted))
        error = self.broken("GETJOB")
        self.calls.append(("GETJOB", self.clock.seconds(), queues))
        if error is not None:
            return fail(error)
        jobs = self._deliver(queues, count)
        if jobs or no_hang:
            return succeed(jobs)
        waiting: Deferred[Any] = Deferred(self._forget)
        self.waiting.append((waiting, queues, count))
        return waiting

    def add_job_with(self, queue: str, body: bytes, options: AddOptions, /) -> Deferred[str]:
        """ADDJOB."""
        return self.answer(
            "ADDJOB", lambda: self.put(queue, body, options.retry_s, options.ttl_s), queue
        )

    def set_name(self, name: str, /) -> None:
        """CLIENT SETNAME."""
        self.name = name

    def ack_taken(self, jobs: Sequence[Any], /) -> Deferred[int]:
        """ACKJOB."""
        ids = [job.id for job in jobs]
        return self.answer("ACKJOB", lambda: sum(map(self._ack, ids)), ids)

    def execute(self, *words: str | bytes | int | float) -> Deferred[Any]:
        """QPOLICY GET and SCHEDULE, of which an original knows nothing."""
        if words[0] == "CLIENT":
            return self._announce(words)
        if words[0] == "SCHEDULE":
            return self.answer("SCHEDULE", lambda: self._schedule(*words), words)
        self.asked.append(words)
        if self.policies is None:
            return fail(Refused("QPOLICY", NODE, "ERR", "unknown command 'QPOLICY'"))
        found = self.policies.get(str(words[2]), {}).items()
        return succeed([[name.encode(), value.encode(), b"*"] for name, value in found])

    def _announce(self, words: tuple[Any, ...]) -> Deferred[Any]:
        """CLIENT ANNOUNCE."""
        if not self.knows_workers:
            return fail(Refused("CLIENT", NODE, "ERR", "Syntax error, try CLIENT (LIST | KILL"))
        self.announced.append(words[2])
        return succeed(b"OK")

    def _schedule(self, _: object, word: object, name: object = b"", *rest: object) -> Any:
        """SCHEDULE LIST, SET and DEL."""
        if self.schedules is None:
            raise Refused("SCHEDULE", NODE, "ERR", "unknown command 'SCHEDULE'")
        assert isinstance(name, bytes)
        if word == "SET":
            self.schedules[name] = rest
            return b"OK"
        if word == "DEL":
            return 1 if self.schedules.pop(name, None) else 0
        return [_schedule_row(name) for name in self.schedules]

    def nack_taken(self, jobs: Sequence[Any], /, *, reason: str | None = None) -> Deferred[int]:
        """NACK."""
        ids = [job.id for job in jobs]
        self.reasons.update(dict.fromkeys(ids, reason))
        return self.answer("NACK", lambda: sum(map(self._nack, ids)), ids)

    def answer(self, command: str, execute: Callable[[], Any], argument: Any) -> Deferred[Any]:
        """Execute a command unless it is broken; returns its result."""
        self.calls.append((command, self.clock.seconds(), argument))
        error = self.broken(command)
        if error is not None and not self.lossy:
            return fail(error)
        try:
            value = execute()
        except Exception as raised:
            return fail(raised)
        if error is not None:
            return fail(error)
        if command not in self.late_s:
            return succeed(value)
        late: Deferred[Any] = Deferred()
        self.clock.callLater(self.late_s[command], late.callback, value)
        return late

    def postpone(self, job_id: str, progress: float | None = None, note: str | None = None) -> int:
        """The effect of WORKING."""
        stored = self.jobs[job_id]
        if progress is not None:
            if not self.knows_progress:
                text = "wrong number of arguments for 'working' command"
                raise Refused("WORKING", NODE, "ERR", text)
            self.progress.append((self.clock.seconds(), progress, note))
        if stored.state == "acked":
            raise UnknownJob("WORKING", NODE, "NOJOB", "")
        if self.clock.seconds() - stored.made_s > stored.ttl_s / 2:
            raise TooLate("WORKING", NODE, "TOOLATE", "")
        stored.state = "active"
        self._restart(stored)
        return stored.retry_s

    # -- inside ------------------------------------------------------------------------------

    def _restart(self, stored: Stored) -> None:
        retry_s = stored.retry_s
        stored.requeue_s = self.clock.seconds() + retry_s if retry_s else None

    def _queue(self, stored: Stored) -> None:
        stored.state = "queued"
        self._restart(stored)
        for waiting in list(self.waiting):
            jobs = self._deliver(waiting[1], waiting[2]) if waiting in self.waiting else []
            if jobs:
                self.waiting.remove(waiting)
                waiting[0].callback(jobs)

    def _deliver(self, queues: tuple[str, ...], count: int) -> list[MemoryTaken]:
        lines = [(queue, deque(self.queued(queue))) for queue in dict.fromkeys(queues)]
        by_name = dict(lines)
        jobs: list[MemoryTaken] = []
        before = -1
        while before < len(jobs) < count:
            before = len(jobs)
            for queue in queues:
                if by_name[queue] and len(jobs) < count:
                    job = by_name[queue].popleft()
                    self.jobs[job.id].state = "active"
                    jobs.append(MemoryTaken(self, job))
        return jobs

    def _matching(self, patterns: Sequence[str], excepted: Sequence[str]) -> list[str]:
        """The queues that match; the one with the fewest jobs in flight comes first."""

        def one_of(globs: Sequence[str], queue: str) -> bool:
            return any(glob_match(pattern.encode(), queue.encode()) for pattern in globs)

        in_flight: dict[str, int] = {}
        for stored in self.jobs.values():
            queue = stored.job.queue
            if one_of(patterns, queue) and not one_of(excepted, queue):
                in_flight[queue] = in_flight.get(queue, 0) + (stored.state == "active")
        return sorted(in_flight, key=lambda queue: in_flight[queue])

    def _forget(self, one: Deferred[Any]) -> None:
        self.waiting = deque(waiting for waiting in self.waiting if waiting[0] is not one)

    def _ack(self, job_id: str) -> bool:
        known = self.jobs[job_id].state != "acked"
        self.jobs[job_id].state = "acked"
        return known

    def _nack(self, job_id: str) -> bool:
        stored = self.jobs[job_id]
        if stored.state != "active" or not stored.retry_s:
            return False
        stored.job = attrs.evolve(stored.job, nacks=stored.job.nacks + 1)
        self._queue(stored)
        return True

    def details(self, job_id: str) -> JobDetails:
        """The reply of SHOW."""
        stored = self.jobs[job_id]
        left_s = stored.made_s + stored.ttl_s - self.clock.seconds()
        return JobDetails(
            id=job_id,
            queue=stored.job.queue,
            state=stored.state,
            replicate=1,
            ttl_s=max(0, int(left_s)),
            ctime=int(stored.made_s * 1e9),
            delay_s=0,
            retry_s=stored.retry_s,
            nacks=stored.job.nacks,
            additional_deliveries=stored.job.additional_deliveries,
            nodes_delivered=(),
            nodes_confirmed=(),
            next_requeue_ms=None,
            next_awake_ms=None,
            body=stored.job.body,
        )


class InlinePool:
    """Runs functions at once, or with ``hangs`` not before ``release``. ``stopped``: how often its
    threads were ended."""

    hangs = False

    def __init__(self, report: Report) -> None:
        self.report = report
        self.hung: list[Slot] = []
        self.stopped = 0

    def put(self, slot: Slot) -> None:
        """Run the functions in the slot."""
        if self.hangs:
            slot.current = (slot.runs.popleft(), 0.0)
            self.hung.append(slot)
            return
        done: list[tuple[Slot, RunOutcome | None]] = []
        while slot.runs:
            run = slot.runs.popleft()
            done.append((slot, RunOutcome(run, *run_in_thread(run), 0.001)))
        self.report([*done, (slot, None)])

    def release(self) -> None:
        """Run all functions that hang."""
        for slot in self.hung:
            assert slot.current is not None
            run = slot.current[0]
            slot.current = None
            self.report([(slot, RunOutcome(run, *run_in_thread(run), 1.0)), (slot, None)])
        self.hung.clear()

    def stop(self) -> None:
        """Count this: there are no threads."""
        self.stopped += 1


class HangingPool(InlinePool):
    """Its functions hang until they are released."""

    hangs = True


def lost(command: str) -> ConnectionLost:
    """An error: the connection was lost after this command was sent."""
    return ConnectionLost(NODE, f"cut at {command}", True)


class WorkerTestCase(SynchronousTestCase):
    """Tests with a clock, a node in memory, and workers on it."""

    def setUp(self) -> None:
        """Start without jobs and workers."""
        self.clock = ForwardClock()
        self.client = MemoryClient(self.clock)
        self.done: list[bytes] = []
        self.pools: list[InlinePool] = []

    def note(self, job: Any) -> None:
        """A handler that records the job."""
        self.done.append(job.body)

    def worker(self, handlers: Any, pool: type[InlinePool] = InlinePool, **words: Any) -> Worker:
        """Start a worker."""

        def made(report: Report) -> InlinePool:
            self.pools.append(pool(report))
            return self.pools[-1]

        words.setdefault("backoff", Backoff(10, 2, 1000, 0))
        words.setdefault("grace_s", 5)
        worker = Worker(
            self.client,
            handlers,
            self.clock,
            pool=made,
            random=Random(1),
            wall_s=self.clock.seconds,
            name="w",
            environ={},
            **words,
        )
        worker.startService()
        self.pass_s(0)
        return worker

    def pass_s(self, seconds: float, step_s: float = 0.05) -> None:
        """Advance the clock, for the worker and its node."""
        self.clock.pump([0, 0, 0])
        for _ in range(round(seconds / step_s)):
            self.clock.advance(step_s)
            self.client.tick()
            self.clock.pump([0, 0, 0])

    def stop(self, worker: Worker, seconds: float = 60) -> None:
        """Stop a worker, and check that it leaves no delayed call and no thread."""
        stopped = worker.stopService()
        self.pass_s(seconds)
        self.successResultOf(stopped)
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertTrue(all(pool.stopped for pool in self.pools))
