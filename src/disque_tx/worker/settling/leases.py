"""Heartbeats: they keep jobs from being delivered to other workers while this one holds them.

The rules are those of :mod:`disque_tx.client.leases`. A job that is still held 0.2 s after its
delivery gets its first heartbeat; shorter ones cost nothing. When a lease ends, the handler
continues, and can see it in ``lease_lost``.

A heartbeat also reports the progress of the job, if there is news. Where no heartbeat is due, one
is sent for that, but no more than one a second and job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from disque_tx.client import ClientError, Refused
from disque_tx.client.leases import REFUSALS
from disque_tx.worker.base.context import HeldJob

_FIRST_S: Final = 0.2
#: How often it is looked for news, and the least time between two heartbeats that only bring some.
_NEWS_S: Final = 0.25
_BETWEEN_S: Final = 1.0
#: For so long no progress is reported to a node that refused one.
_WITHOUT_S: Final = 60.0
#: What a node that knows no progress answers.
_UNKNOWN: Final = "wrong number of arguments"
_log = Logger()


class WorkerLeases:
    """Sends heartbeats for the jobs of a worker. ``lost``: called with each job whose heartbeat was
    refused. ``held``: all jobs that the worker holds."""

    def __init__(
        self,
        clock: IReactorTime,
        lost: Callable[[HeldJob], object],
        held: Collection[HeldJob] = (),
    ) -> None:
        self._clock = clock
        self._lost = lost
        self._held = held
        self._without: dict[object, float] = {}
        self._news = LoopingCall(self._send_news)
        self._news.clock = clock

    def start(self) -> None:
        """Look for news about the progress of jobs."""
        if not self._news.running:
            self._news.start(_NEWS_S, now=False)

    def stop(self) -> None:
        """Report no more progress than heartbeats do."""
        if self._news.running:
            self._news.stop()

    def _send_news(self) -> None:
        for held in [held for held in self._held if held.context.reported is not held.told]:
            if held.heartbeat is None and not held.lease.over and self._knows(held):
                sent_s = held.sent_s
                if sent_s is None or self._clock.seconds() - sent_s >= _BETWEEN_S:
                    self.send_heartbeat(held)

    def _knows(self, held: HeldJob) -> bool:
        """Whether the node of the job is told of its progress."""
        if not self._without:
            return True
        return self._without.get(_node(held), 0.0) <= self._clock.seconds()

    def keep(self, delivery: Iterable[HeldJob]) -> None:
        """Send heartbeats for these jobs until they are released."""
        self._clock.callLater(_FIRST_S, self._first, delivery)

    def release(self, held: HeldJob) -> None:
        """Send no more WORKING for a job. One that was sent may still be unanswered."""
        held.lease.release()
        self._schedule(held)

    def _first(self, delivery: Iterable[HeldJob]) -> None:
        for held in delivery:
            if held.timer is None and held.lease.due_s is not None and held.lease.retry_s != 0:
                self.send_heartbeat(held)

    def send_heartbeat(self, held: HeldJob) -> Deferred[None]:
        """Send WORKING now. Never fails; fires when there is an answer."""
        if held.heartbeat is None:
            heartbeat = Deferred.fromCoroutine(self._send_heartbeat(held))
            if heartbeat.called:
                return heartbeat
            held.heartbeat = heartbeat
        return held.heartbeat

    async def _send_heartbeat(self, held: HeldJob) -> None:
        held.sent_s = sent_s = self._clock.seconds()
        answer: int | ClientError
        try:
            try:
                answer = await self._working(held)
            except ClientError as error:
                answer = error
                _log.debug("WORKING for {id} failed: {error}", id=held.context.id, error=error)
            if held.lease.heard(answer, sent_s, self._clock.seconds()):
                _log.warn(
                    "Job {id} of queue {queue!r} may be delivered again while it is worked on:"
                    " {why}",
                    id=held.context.id,
                    queue=held.context.queue,
                    why=str(answer),
                )
            self._schedule(held)
            if isinstance(answer, REFUSALS):
                held.context.lease_lost = True
                self._lost(held)
        finally:
            held.heartbeat = None

    async def _working(self, held: HeldJob) -> int:
        report = held.context.reported
        if report is None or report is held.told or not self._knows(held):
            return await held.delivered.working()
        try:
            answer = await held.delivered.working(report.fraction, report.note)
        except Refused as error:
            if not error.text.startswith(_UNKNOWN):
                raise
            self._leave_out(_node(held))
            return await held.delivered.working()
        held.told = report
        return answer

    def _leave_out(self, node: object) -> None:
        if node not in self._without:
            _log.warn("Node {node} shows no progress of jobs: it does not know it", node=node)
        self._without[node] = self._clock.seconds() + _WITHOUT_S

    def _schedule(self, held: HeldJob) -> None:
        """Let the timer of a job run out when its next heartbeat is due, if one is."""
        if held.timer is not None and held.timer.active():
            held.timer.cancel()
        if held.lease.due_s is not None:
            wait_s = max(0.0, held.lease.due_s - self._clock.seconds())
            held.timer = self._clock.callLater(wait_s, self.send_heartbeat, held)


def _node(held: HeldJob) -> object:
    """The node that delivered a job."""
    return getattr(held.delivered, "address", None)
