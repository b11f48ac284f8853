"""GETJOB MATCH and limits: no job waits beside a client that may get it, and no limit is passed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from disque_tx.core.base.client import BLOCKED_GETJOB
from disque_tx.core.policies.settings import thousandths
from disque_tx.core.queues.queues import PAUSE_OUT
from disque_tx.sim.stage.checker import Checker

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.core.queues.queues import Queue
    from disque_tx.sim.stage.stage import Stage

_LOOK_US: Final = 50_000
_SECOND: Final = 1_000_000
#: By how much clocks may run differently, and the turns in which a token is noticed.
_DRIFT: Final = 1.02


class _Looking(Checker):
    """Looks at all nodes from time to time, between their turns, if clients use patterns."""

    def __init__(self) -> None:
        self._breaches: dict[str, None] = {}

    def watch(self, run: Stage) -> None:
        """Look for the first time soon."""
        if run.workload.match > 0:
            run.world.at(_LOOK_US, lambda: self._check(run))

    def _check(self, run: Stage) -> None:
        for machine, node in run.nodes():
            for breach in self.breaches_at(run, node):
                self._breaches.setdefault(f"{machine.ip.decode()}: {breach}")
        if not run.over:
            run.world.at(_LOOK_US, lambda: self._check(run))

    def breaches_at(self, run: Stage, node: Node) -> list[str]:
        """What is wrong on this node now."""
        raise NotImplementedError

    def judge(self, run: Stage) -> list[str]:
        """What was found."""
        return list(self._breaches)


class NoJobBesideClient(_Looking):
    """No job waits in a queue while a client is blocked that named the queue, or whose patterns
    match it.

    What is promised, under any fault: between two turns of a node there is no such pair, but for
    queues that are paused or have as many jobs in flight as their policy allows. A queue with a
    ``rate`` may have a token that nobody noticed yet, until the next turn that is due; so it is
    looked at twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self._suspects: set[tuple[bytes, bytes]] = set()

    def breaches_at(self, run: Stage, node: Node) -> list[str]:
        """Queues with a job and a client."""
        breaches = []
        names: set[bytes] = set()
        matching = node.waiters.matching
        for client in node.waiters.blocked:
            if client.blocked == BLOCKED_GETJOB and not client.abort_now:
                names.update(client.blocked_queues)
                if client.blocked_selector:
                    selector = matching.of_client(client)
                    queues = [queue.name for queue in node.queues.table.values()]
                    names.update(filter(selector.matches, queues))
        seen = set()
        for name in sorted(names):
            queue = node.queues.get(name)
            if queue is None or not _deliverable(run, node, queue):
                continue
            limited = _setting(run, name, b"rate") > 0
            seen.add((node.id, name))
            if not limited or ((node.id, name) in self._suspects and not run.plan.history):
                breaches.append(f"a job waits in {name.decode()} while a client waits for it")
        self._suspects = {one for one in self._suspects if one[0] != node.id} | seen
        return breaches


class LimitsKept(_Looking):
    """No node has more jobs of a queue in flight than ``concurrency`` says, or delivers more of
    them than ``rate`` and ``rate-burst`` allow.

    What is promised, under any fault: the first at every moment, by the state of each single job;
    the second for everything that a node delivered since it was started last, in any span of time.
    """

    def breaches_at(self, run: Stage, node: Node) -> list[str]:
        """Queues with too many jobs in flight."""
        counts = Counter(job.queue for job in node.jobs.table.values() if job.in_flight)
        return [
            f"{count} jobs of {name.decode()} are in flight"
            for name, count in counts.items()
            if 0 < _setting(run, name, b"concurrency") < count
        ]

    def judge(self, run: Stage) -> list[str]:
        """Breaches of the limit on jobs in progress, and of the rate limit."""
        breaches = super().judge(run)
        for machine in run.machines:
            sent: dict[bytes, list[int]] = {}
            for delivery in run.history.delivered:
                if delivery.node == machine.ip and delivery.sent_us > machine.started_us:
                    sent.setdefault(delivery.queue, []).append(delivery.sent_us)
            for name, times in sent.items():
                rate, burst = _setting(run, name, b"rate"), _setting(run, name, b"rate-burst")
                if rate > 0 and _too_many(sorted(times), rate, burst):
                    breaches.append(f"{machine.ip.decode()}: {name.decode()} passes its rate")
        return breaches


def _deliverable(run: Stage, node: Node, queue: Queue) -> bool:
    """Whether a client may get a job of the queue, as far as the state of jobs says."""
    now_ms = node.now_ms
    if queue.paused & PAUSE_OUT or all(job.expire_ms <= now_ms for job in queue.jobs):
        return False
    most = _setting(run, queue.name, b"concurrency")
    jobs = node.jobs.table.values()
    if most > 0 and sum(job.in_flight and job.queue == queue.name for job in jobs) >= most:
        return False
    if _setting(run, queue.name, b"rate") == 0:
        return True
    return node.getting.limits.allows(queue.name, now_ms)


def _setting(run: Stage, queue: bytes, name: bytes) -> float:
    """A setting of the workload's policies, 0 for none; each stands for one queue."""
    for pattern, setting, value in run.workload.policies:
        if pattern == queue and setting == name:
            return thousandths(value) / 1000
    return 0.0


def _too_many(times_us: list[int], rate: float, burst: float) -> bool:
    """Whether there is a span of time with more deliveries than a bucket could hold and get."""
    level, before_us = burst, times_us[0]
    for at_us in times_us:
        level = min(burst, level + (at_us - before_us) / _SECOND * rate * _DRIFT)
        # A token is in the bucket of the node a moment before its answer leaves.
        if level < 1 - rate * _DRIFT * 0.1:
            return True
        level, before_us = level - 1, at_us
    return False
