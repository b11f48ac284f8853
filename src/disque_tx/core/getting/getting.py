"""GETJOB (client protocol, sections 15 and 15.1): jobs at once, or a client that waits for them.

1. Queues that are named come first, in order, round after round. Then come those that match, each
   job from the queue whose turn it is (see :mod:`disque_tx.core.queues.selector`).
2. A client that finds nothing waits, unless it said NOHANG, and other nodes are asked.
3. With patterns that are new to this node, a client may have to wait until all queues were looked
   at, even if it said NOHANG: then it gets a job that is found, or an empty answer at the end.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import Client
from disque_tx.core.base.part import Part
from disque_tx.core.base.schedule import earlier
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.getting.demanding import Demanding
from disque_tx.core.getting.federation import Federation
from disque_tx.core.getting.patterndemand import PatternDemand
from disque_tx.core.getting.unblocking import leaving
from disque_tx.core.nodes.duplicateids import identity_conflict_error
from disque_tx.core.queues.filling import fill
from disque_tx.core.queues.index import check_globs
from disque_tx.core.queues.queues import PAUSE_OUT
from disque_tx.core.state.state import State
from disque_tx.messages.records import JobRecord

#: Queues per turn that have a token again.
_QUEUES_PER_TURN: Final = 1_000


class GetRequest:
    """What a GETJOB with MATCH asks for. ``names``: queues of FROM; ``patterns``, ``excepts``:
    globs of MATCH and of EXCEPT. ``timeout_ms``: 0 for none."""

    __slots__ = ("count", "counters", "excepts", "names", "no_hang", "patterns", "timeout_ms")

    def __init__(self, names: list[bytes], patterns: list[bytes], excepts: list[bytes]) -> None:
        self.names: list[bytes] = names
        self.patterns: list[bytes] = patterns
        self.excepts: list[bytes] = excepts
        self.count: i64 = 1
        self.timeout_ms: i64 = 0
        self.no_hang: bool = False
        self.counters: bool = False


class Getting(Part):
    """Answers GETJOB. ``pattern_demand``: asks other nodes by pattern. ``limits``: what policies of
    queues allow."""

    def __init__(
        self, state: State, delivery: Delivery, federation: Federation, demanding: Demanding
    ) -> None:
        self._turn = state.turn
        self._membership = state.membership
        self._queues = state.queues
        self._waiters = state.waiters
        self._slices = state.slices
        self._policies = state.policies
        self.limits = state.limits
        self._matching = state.matching
        self._delivery = delivery
        self._federation = federation
        self.pattern_demand = PatternDemand(state, federation, demanding)

    def get(
        self,
        client: Client,
        names: list[bytes],
        count: i64,
        timeout_ms: i64,
        no_hang: bool,
        counters: bool,
    ) -> None:
        """Answer with jobs of these queues, or block the client. Raises ``CommandError`` for names
        that are too long."""
        if self._membership.identity.suspended:
            raise identity_conflict_error()
        for name in names:
            self._queues.check(name)
        jobs: list[JobRecord] = []
        self._take_named(client, names, count, jobs)
        if jobs:
            self._answer(client, jobs, counters)
            return
        if no_hang:
            client.replies.null_array()
        elif self._membership.leaving:
            raise leaving()
        else:
            self._waiters.wait_for_jobs(client, names, counters, timeout_ms)
        self.want(names)

    def get_matching(self, client: Client, request: GetRequest) -> None:
        """Answer with jobs of the queues that are named or match, or block the client. Raises
        ``CommandError`` for names and patterns that cannot be used."""
        if self._membership.identity.suspended:
            raise identity_conflict_error()
        for name in request.names:
            self._queues.check(name)
        check_globs(request.patterns)
        check_globs(request.excepts)
        matching = self._matching
        selector = matching.obtain(request.patterns, request.excepts)
        fill(selector, self._queues, self._waiters, self._slices, self._turn.now_ms)
        jobs: list[JobRecord] = []
        self._take_named(client, request.names, request.count, jobs)
        while len(jobs) < request.count:
            queue = matching.choose(selector)
            if queue is None:
                break
            job = self._delivery.fetch(queue)
            if job is not None:
                self._delivery.delivered(client, job)
                matching.note_served(queue)
                jobs.append(job)
        if jobs:
            self._answer(client, jobs, request.counters)
            return
        if request.no_hang and selector.filled:
            client.replies.null_array()
        elif self._membership.leaving:
            raise leaving()
        else:
            timeout_ms = request.timeout_ms
            self._waiters.wait_for_jobs(client, request.names, request.counters, timeout_ms)
            matching.join(selector, client)
            if self._waiters.demanding:
                self._waiters.note_pattern(selector)
            if request.no_hang:
                selector.passing[client] = None
        self.want(request.names)
        self.pattern_demand.want(selector)

    def _take_named(
        self, client: Client, names: list[bytes], count: i64, jobs: list[JobRecord]
    ) -> None:
        """Take up to ``count`` jobs, one per queue and round."""
        now_ms = self._turn.now_ms
        limited = self._policies.limited
        while len(jobs) < count:
            before = len(jobs)
            for name in names:
                queue = self._queues.obtain(name, now_ms)
                if queue.jobs.size == 0 or queue.paused & PAUSE_OUT:
                    continue
                if limited and not self.limits.allows(name, now_ms):
                    continue
                job = self._delivery.fetch(queue)
                if job is not None:
                    self._delivery.delivered(client, job)
                    if self._matching.active:
                        self._matching.note_served(queue)
                    jobs.append(job)
                if len(jobs) >= count:
                    break
            if len(jobs) == before:
                break

    def _answer(self, client: Client, jobs: list[JobRecord], counters: bool) -> None:
        client.replies.jobs(jobs, counters)
        if self._delivery.emptied:
            self.emptied()

    def emptied(self) -> None:
        """Queues became empty: more may be had elsewhere."""
        emptied, self._delivery.emptied = self._delivery.emptied, []
        for queue in emptied:
            self._federation.emptied(queue)

    def want(self, names: list[bytes]) -> None:
        """Ask other nodes for jobs of these queues."""
        now_ms = self._turn.now_ms
        for name in names:
            self._federation.want(self._queues.obtain(name, now_ms))

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        due_ms = earlier(self.limits.next_due_ms(), self._matching.next_due_ms())
        return earlier(due_ms, self.pattern_demand.wanting.next_ms())

    def run_due(self) -> None:
        """Look at queues that have a token again, and ask other nodes again."""
        now_ms = self._turn.now_ms
        for name in self.limits.due(now_ms, _QUEUES_PER_TURN):
            queue = self._queues.get(name)
            if queue is not None:
                self._waiters.note_ready(queue)
            else:
                self._waiters.may_deliver_more(name)
        if self._matching.active:
            self.pattern_demand.run_due()
            self._matching.expire()

    def forget_all(self) -> None:
        """All queues are about to be forgotten."""
        self._federation.forget_all()
        self._delivery.emptied.clear()
        self._matching.forget_queues()
        self.pattern_demand.wanting.clear()
