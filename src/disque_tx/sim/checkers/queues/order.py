"""Queues deliver the oldest job first, and nothing enters or leaves a paused queue."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from disque_tx.messages.events import DELIVERED, EXPORTED, EventSink
from disque_tx.messages.records import JobRecord
from disque_tx.sim.stage.checker import Checker
from disque_tx.sim.stage.history import Added, RecordedPause

if TYPE_CHECKING:
    from disque_tx.sim.machines.process import Process
    from disque_tx.sim.stage.stage import Stage

#: So many of the jobs left in a queue are compared, at its front and at its end.
_FRONT: Final = 20
_BACK: Final = 3


class OldestFirst(Checker):
    """A queue is a queue: the oldest job leaves it first (client protocol, section 13.2).

    What is promised, under any fault: at the moment in which a node takes a job out of a queue, for
    a client or for another node, no older job is in that queue on that node; and in one answer to
    GETJOB the jobs of one queue stand in the order of their creation. Older is who has the earlier
    creation time, and of two with the same one, the smaller ID.

    Nothing is excused. Nothing is promised about jobs that are not in the queue at that moment:
    those on other nodes, those that wait for RETRY or DELAY, and those that are put back
    later.
    """

    def __init__(self) -> None:
        self.born: dict[bytes, int] = {}
        self._breaches: list[str] = []

    def watch(self, run: Stage) -> None:
        """Be notified of every job that leaves a queue."""
        for machine in run.machines:
            machine.events = partial(_Departures, self)

    def left(self, process: Process, job: JobRecord) -> None:
        """A job was taken out of its queue just now."""
        self.born[job.id] = job.ctime
        queue = process.node.queues.get(job.queue)
        assert queue is not None
        mine = job.ctime, job.id
        for other in (*queue.jobs.oldest(_FRONT), *queue.jobs.newest(_BACK)):
            if (other.ctime, other.id) < mine:
                self._breaches.append(
                    f"{job.id.decode('latin-1')}: left its queue on {process.ip.decode()} at"
                    f" {process.world.now_us / 1e6:.3f} s before {other.id.decode('latin-1')},"
                    " which is older"
                )
                return

    def judge(self, run: Stage) -> list[str]:
        """Jobs that overtook others."""
        last: dict[tuple[bytes, int, bytes], tuple[int, bytes]] = {}
        breaches = list(self._breaches)
        for delivery in run.history.delivered:
            place = delivery.node, delivery.answer, delivery.queue
            mine = self.born[delivery.job_id], delivery.job_id
            if mine < last.get(place, mine):
                breaches.append(
                    f"{delivery.job_id.decode('latin-1')}: stands behind a younger job in one"
                    " answer to GETJOB"
                )
            last[place] = mine
        return breaches


class _Departures(EventSink):
    """Receives the events of a node, and passes on which jobs leave queues."""

    def __init__(self, checker: OldestFirst, process: Process) -> None:
        super().__init__()
        self._checker = checker
        self._process = process

    def added(self, job: JobRecord, ttl_s: int, reason: int, client_id: int, queued: bool) -> None:
        """Ignored: a job that is added leaves no queue."""

    def job(self, kind: int, job: JobRecord, reason: int, number: int, elapsed_ms: int) -> None:
        """A delivery, or something else."""
        if kind == DELIVERED:
            self._checker.left(self._process, job)

    def moved(self, kind: int, job: JobRecord, node_id: bytes) -> None:
        """A job goes to another node, or comes from there."""
        if kind == EXPORTED:
            self._checker.left(self._process, job)

    def paused(self, queue: bytes, flags: int) -> None:
        """Ignored: a pause does not change the order."""

    def flushed(self, jobs: int) -> None:
        """Changes no order."""


_IN: Final = 1
_OUT: Final = 2
_TURNS_US: Final = 20_000


class PauseRespected(Checker):
    """Nothing enters or leaves a paused queue.

    What is promised, under any fault: once a node has answered PAUSE q out (or all), it delivers no
    job of that queue, and once it has answered PAUSE q in (or all), it accepts none, until it is
    asked for something else. With BCAST the same holds on every other node from the time on at
    which the message has arrived there; that is judged in runs without faults, where it does
    arrive.

    Excused: a node that was restarted since, for the flags are not stored; and whatever happens
    after another PAUSE of that queue may have reached the node, be it its own or one that
    another node broadcasts. One whose answer was lost may arrive at any later time. An ADDJOB is
    executed at some time before its answer, perhaps after a PAUSE that was asked for later than the
    ADDJOB and lets jobs in.
    """

    def judge(self, run: Stage) -> list[str]:
        """What moved although it should not."""
        breaches: list[str] = []
        for delivery in run.history.delivered:
            paused = _in_force(run, delivery.queue, delivery.node, delivery.sent_us, _OUT)
            if paused is not None:
                breaches.append(
                    f"{delivery.job_id.decode('latin-1')}: delivered by {delivery.node.decode()} at"
                    f" {delivery.sent_us / 1e6:.3f} s, {_reason(paused)}"
                )
        for added in run.history.accepted():
            paused = _in_force(run, added.queue, added.node, added.asked_us, _IN)
            if paused is not None and not _let_in(run, added):
                breaches.append(
                    f"{added.job_id.decode('latin-1')}: accepted by {added.node.decode()} after"
                    f" {added.asked_us / 1e6:.3f} s, {_reason(paused)}"
                )
        return breaches


def _reason(paused: RecordedPause) -> str:
    how = ", for all nodes" if paused.everywhere else ""
    return (
        f"its queue paused at {paused.answered_us / 1e6:.3f} s by {paused.node.decode()}{how}"
        f" (flags {paused.flags})"
    )


def _in_force(run: Stage, queue: bytes, node: bytes, at_us: int, flag: int) -> RecordedPause | None:
    """The PAUSE that certainly holds on the node at that time, if it stops this."""
    arrived_us = 2 * run.world.longest_transit_us + _TURNS_US
    last: RecordedPause | None = None
    since_us = doubt_us = before_us = -1
    for paused in run.history.pauses:
        here = paused.node in (node, b"")
        if paused.queue != queue or paused.asked_us > at_us or not (here or paused.everywhere):
            continue
        if paused.answered_us < 0:
            return None  # unknown when it arrives, if ever
        last, since_us, before_us = paused, paused.answered_us, doubt_us
        if not here:
            since_us += arrived_us
            doubt_us = max(doubt_us, since_us)
            if run.plan.history:
                last = None
    started_us = next(machine.started_us for machine in run.machines if machine.ip == node)
    if last is None or last.answered_us < started_us or not last.flags & flag:
        return None
    return last if before_us < last.asked_us and since_us < at_us else None


def _let_in(run: Stage, added: Added) -> bool:
    """Whether a PAUSE that was sent after the ADDJOB and before its answer may have ended one that
    stopped it."""
    return any(
        paused.queue == added.queue
        and added.asked_us < paused.asked_us < added.answered_us
        and (paused.everywhere or paused.node in (added.node, b""))
        and not paused.flags & _IN
        for paused in run.history.pauses
    )
