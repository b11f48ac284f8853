"""The worker: fetches jobs, runs their handlers, and acknowledges them or gives them back.

One request for jobs is under way at a time. It asks for as many as there are free slots, and for
more only if they will start within a tenth of a second, by how long jobs took lately.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from disque_tx.text.counts import counted
from disque_tx.worker.base.context import Context, DeliveredJob, HeldJob, WorkerClient
from disque_tx.worker.base.errors import AllSlotsLost, BadHandlers, UnknownTask
from disque_tx.worker.fetching import Fetcher, order_of
from disque_tx.worker.remote.announcing import WorkerIdentity
from disque_tx.worker.remote.presence import Presence
from disque_tx.worker.running.processes import Processes
from disque_tx.worker.running.running import Pool, Runner, RunnerCallbacks
from disque_tx.worker.running.runs import Batches, JobFailure, Run, RunOutcome
from disque_tx.worker.running.threads import Report, threads_of
from disque_tx.worker.running.watchdog import Watchdog
from disque_tx.worker.settling.failures import FailureHandler
from disque_tx.worker.settling.leases import WorkerLeases
from disque_tx.worker.settling.nodepolicies import NodePolicies
from disque_tx.worker.settling.settling import Settler
from disque_tx.worker.tasks.policy import Backoff, Policy
from disque_tx.worker.tasks.recurring import ScheduleKeeper
from disque_tx.worker.tasks.results import encoded_result
from disque_tx.worker.tasks.routes import RouteTable, routes_of

_AHEAD_S: Final = 0.1
_AHEAD_MAX: Final = 256
#: With more jobs than this that are done or failed, but not yet settled, nothing is fetched.
_HELD_MAX: Final = 10_000
#: How long acknowledgements and dead letters may take after the last handler has ended.
_SETTLE_S: Final = 10.0
_POLL_S: Final = 0.05
_TIME_LIMIT_S: Final = 3600.0
_EXHAUSTED: Final = (
    "It was delivered more often than allowed; perhaps its handler crashes the worker each time."
)
_STRANDED: Final = "It was delivered and not done, and with RETRY 0 it is not delivered again."
_log = Logger()


class Worker(Service):
    """Does the jobs of some queues. A Twisted service, to be used alone or in another service.

    ``client``: a ``DisqueClient``; it is not closed. ``handlers``: see :func:`routes_of`.
    ``concurrency``: how many run at a time. ``queues``: only these, in this order, patterns among
    them; by default all that have handlers. ``order``: ``priority`` or ``fair``, with ``weights``
    from 1 to 100 if wanted. ``retries_max``: how many nacks and additional deliveries a job may
    have; when it fails after that, it goes to ``dead_queue``. ``replicate``: how many copies there
    are of dead letters and results. ``grace_s``: how long handlers may still run after the worker
    is stopped.
    ``time_limit_s``: for handlers without one, ``None``: none. ``name``: of this worker, in dead
    letters. ``remote_control``: it takes commands from those who may add jobs. ``pool``,
    ``random``, ``wall_s``, ``environ``: replaced in tests.

    :raises BadHandlers: if handlers, queues or the order are not valid.
    """

    def __init__(
        self,
        client: WorkerClient,
        handlers: Any,
        reactor: Any,
        *,
        concurrency: int = 8,
        queues: Sequence[str] | None = None,
        order: str = "fair",
        weights: Mapping[str, int] | None = None,
        retries_max: int = 5,
        dead_queue: str = "dead:{queue}",
        grace_s: float = 30.0,
        backoff: Backoff | None = None,
        replicate: int | None = None,
        time_limit_s: float | None = _TIME_LIMIT_S,
        name: str | None = None,
        remote_control: bool = False,
        pool: Callable[[Report], Pool] | None = None,
        random: Random | None = None,
        wall_s: Callable[[], float] = time.time,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if concurrency < 1:
            raise BadHandlers("A worker needs at least one slot.")
        self._routes = RouteTable(routes_of(handlers)).only(queues)
        chosen = self._routes.queues
        self.worker_name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.setName(f"disque-worker:{self.worker_name}")  # type: ignore[no-untyped-call]
        self._clock = reactor
        self._grace_s = grace_s
        self._slots = concurrency
        self._at_once = concurrency * self._routes.size_max()
        self._policy = Policy(
            retries_max, dead_queue, replicate=replicate, backoff=backoff or Backoff()
        )
        self._held: set[HeldJob] = set()
        self._active = 0
        self._stopped: list[Deferred[None]] = []
        chance = random or Random()
        turns = order_of(order, chosen, weights)
        self._fetcher = Fetcher(client, turns, reactor, chance, self._room, self._arrived)
        self._build(
            client,
            reactor,
            chance,
            remote_control,
            pool=pool,
            time_limit_s=time_limit_s,
            wall_s=wall_s,
            environ=environ,
        )

    def _build(
        self,
        client: WorkerClient,
        reactor: Any,
        random: Random,
        remote_control: bool,
        *,
        pool: Callable[[Report], Pool] | None,
        time_limit_s: float | None,
        wall_s: Callable[[], float],
        environ: Mapping[str, str] | None,
    ) -> None:
        threads = pool or partial(threads_of, self._slots, reactor)
        listener = RunnerCallbacks(self._ran, self._given_up, self._all_lost)
        processes = Processes(reactor, environ)
        self._runner = Runner(reactor, self._slots, time_limit_s, threads, processes, listener)
        routes = self._routes
        who = WorkerIdentity(
            f"{random.getrandbits(64):016x}", self.worker_name, socket.gethostname(), os.getpid(),
            self._slots, routes.queues, routes.tasks(), remote_control,
        )  # fmt: skip
        self._presence = Presence(
            client, reactor, who, self._held, self._runner.running, self._fetcher
        )
        self._schedules = ScheduleKeeper(client, reactor, self._routes.recurring())
        # A test that replaces the threads has no reactor that could be blocked.
        watched = self._runner.coroutines
        self._watchdog = Watchdog(reactor, watched, time.monotonic) if pool is None else None
        self._batches = Batches(reactor, self._ready)
        self._leases = WorkerLeases(reactor, self._lease_lost, self._held)
        self._settling = Settler(client, self._leases, reactor, self._ended, self._stranded, wall_s)
        self._failures = FailureHandler(
            self.worker_name,
            self._policy,
            NodePolicies(client, reactor),
            self._leases,
            self._settling,
            clock=reactor,
            random=random,
            wall_s=wall_s,
        )

    # -- service -----------------------------------------------------------------------------

    def startService(self) -> None:
        super().startService()  # type: ignore[no-untyped-call]
        self._presence.start(self._end_if_idle)
        self._leases.start()
        self._schedules.start()
        if self._watchdog is not None:
            self._watchdog.start()
        _log.info("Worker {name} does {queues}", name=self.worker_name, queues=self._routes.queues)
        self._fetcher.fetch_more()

    def stopService(self) -> Deferred[None]:
        """Drain: fetch no more jobs, give back those that have not started, and wait up to
        ``grace_s`` for those that run. Fires when all jobs are settled."""
        super().stopService()  # type: ignore[no-untyped-call]
        return Deferred.fromCoroutine(self._drain())

    def when_stopped(self) -> Deferred[None]:
        """Fires when the worker has been drained; fails with :class:`AllSlotsLost` when all slots
        are lost. Then it has stopped fetching by itself."""
        waiting: Deferred[None] = Deferred()
        self._stopped.append(waiting)
        return waiting

    async def _drain(self) -> None:
        here = counted(len(self._held), "job")
        _log.info("Worker {name} stops, with {jobs} here", name=self.worker_name, jobs=here)
        self._presence.drain()
        self._schedules.stop()
        for held in self._batches.take_all():
            self._give_back(held)
        for run in self._runner.take_unstarted():
            for held in run.held:
                self._give_back(held)
        self._failures.stop()
        if not await self._until(lambda: not self._runner.busy, self._grace_s):
            self._runner.stop_all()
            await self._until(lambda: not self._runner.busy, _SETTLE_S + _SETTLE_S)
        if not await self._until(lambda: not self._held, _SETTLE_S):
            _log.warn("Left to RETRY: {jobs}", jobs=counted(len(self._held), "job"))
            for held in list(self._held):
                self._settling.leave(held)
        self._settling.close()
        self._runner.close()
        self._presence.stop()
        self._leases.stop()
        if self._watchdog is not None:
            self._watchdog.stop()
        _log.info("Worker {name} has stopped", name=self.worker_name)
        self._report_stopped(None)

    async def _until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for a condition. Returns whether it became true in time."""
        deadline_s = self._clock.seconds() + timeout_s
        while not condition():
            if self._clock.seconds() >= deadline_s:
                return False
            await deferLater(self._clock, _POLL_S)
        return True

    def _report_stopped(self, result: Failure | None) -> None:
        waiting, self._stopped = self._stopped, []
        for one in waiting:
            one.callback(result)

    def _all_lost(self) -> None:
        self.running = 0
        self._fetcher.stop()
        error = AllSlotsLost(
            f"All {self._slots} slots of worker {self.worker_name} are held by handlers that passed"
            " their time limit and cannot be stopped. Restart the process, and find out what hangs;"
            " a handler with process=True can be stopped."
        )
        _log.critical("{error}", error=error)
        self._report_stopped(Failure(error))

    def _room(self) -> int:
        """How many jobs to request now; 0 if there is too little room to be worth a request."""
        if not self.running or not self._presence.taking or len(self._held) >= _HELD_MAX:
            return 0
        ahead = int(_AHEAD_S * self._slots / max(self._runner.mean_s, 1e-6))
        capacity = self._at_once + min(ahead, _AHEAD_MAX)
        hungry = self._runner.free > 0 and not self._runner.buffer
        usable = max(0, capacity - self._active - self._runner.lost)
        return usable if hungry or usable > capacity // 2 else 0

    # -- from delivery to the end of a job ---------------------------------------------------

    def _arrived(self, jobs: list[DeliveredJob]) -> None:
        delivery = [self._hold(delivered) for delivered in jobs]
        self._leases.keep(delivery)
        self._held.update(delivery)
        self._active += len(delivery)
        for held in delivery:
            self._start(held)
        self._continue()

    def _hold(self, delivered: DeliveredJob) -> HeldJob:
        route = self._routes.get(delivered.job.queue)
        limit = route.retries_max if route is not None else None
        context = Context(delivered.job, self.worker_name)
        return HeldJob(delivered, context, self._policy.retries_max if limit is None else limit)

    def _start(self, held: HeldJob) -> None:
        if not self.running:
            self._give_back(held)
            return
        try:
            call = self._routes.route(held.context.queue).call(held.context)
        except BaseException as error:  # what a body makes of itself may raise SystemExit, too
            held.reply = error.reply if isinstance(error, UnknownTask) else None
            self._active -= 1
            self._presence.hour.count(0, 1)
            self._failures.failed(held, JobFailure.of(error))
            return
        held.reply, held.task = call.reply, call.handler.name
        if self._failures.is_exhausted(held):
            self._active -= 1
            self._failures.bury(held, JobFailure(_EXHAUSTED))
        elif call.handler.is_batch:
            self._batches.add(held, call.handler)
        else:
            self._runner.buffer.append(Run(call, [held]))

    def _ready(self, run: Run) -> None:
        self._runner.buffer.append(run)
        self._runner.start()

    def _ran(self, outcomes: list[RunOutcome]) -> None:
        for outcome in outcomes:
            jobs = len(outcome.run.held)
            self._presence.hour.count(*((jobs, 0) if outcome.failed is None else (0, jobs)))
            if not outcome.late:
                self._active -= jobs
            for held in outcome.run.held:
                self._process_outcome(held, outcome)
        self._continue()

    def _process_outcome(self, held: HeldJob, outcome: RunOutcome) -> None:
        if outcome.failed is not None:
            if not outcome.late:
                self._failures.failed(held, outcome.failed)
        elif held.reply is None or outcome.payload is None:
            self._settling.ack(held)
        else:
            Deferred.fromCoroutine(self._answer(held, held.reply, outcome.payload))

    async def _answer(self, held: HeldJob, queue: str, payload: bytes) -> None:
        if await self._settling.add(queue, encoded_result(payload), self._policy.result_options):
            self._settling.ack(held)
        else:
            self._settling.leave(held)

    def _given_up(self, run: Run, failed: JobFailure) -> None:
        self._active -= len(run.held)
        for held in run.held:
            self._failures.given_up(held, failed)

    def _give_back(self, held: HeldJob) -> None:
        self._active -= 1
        self._settling.nack(held)

    def _lease_lost(self, held: HeldJob) -> None:
        self._failures.lease_lost(held)

    def _stranded(self, held: HeldJob) -> None:
        self._failures.bury(held, JobFailure(_STRANDED))

    def _ended(self, batch: list[HeldJob]) -> None:
        self._held.difference_update(batch)
        self._fetcher.fetch_more()
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self.running and self._presence.is_over:
            self.stopService()

    def _continue(self) -> None:
        self._runner.start()
        self._fetcher.fetch_more()
