"""Clients that look at queues: they wait for the end of jobs, empty queues, and count jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from disque_tx.core.jobs.job import BACKOFF, DELAYED, IN_FLIGHT, LOADED, RESUMING
from disque_tx.messages.records import QUEUED
from disque_tx.sim.actors.actors import QUEUES, Actor
from disque_tx.sim.actors.clients import LOST, SimClient
from disque_tx.sim.stage.history import Counted, RecordedFlush, Waited

if TYPE_CHECKING:
    from disque_tx.sim.stage.stage import Stage

_REST_US: Final = 300_000
_FLUSH_REST_US: Final = 2_000_000
_RECENT: Final = 20
_TIMEOUTS_MS: Final = (200, 1_000, 4_000)
_CLUSTER_US: Final = 1_500_000
_STATES: Final = (b"queued", b"delayed", b"backoff", b"in-flight", b"loaded", b"any", b"any")
_PLACES: Final = {
    DELAYED: b"delayed",
    BACKOFF: b"backoff",
    IN_FLIGHT: b"in-flight",
    LOADED: b"loaded",
    RESUMING: b"loaded",
}


class EndingsWatcher(Actor):
    """Waits for the end of jobs, at the nodes that accepted them."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._clients = {
            machine.ip: SimClient(
                self.run, f"{self.name}-{machine.ip.decode()}", machine, self.run.password
            )
            for machine in self.run.machines
        }

    def act(self) -> None:
        random = self.random
        accepted = self.run.history.last_accepted(_RECENT)
        if not accepted:
            self.rest(_REST_US)
            return
        added = random.choice(accepted)
        timeout_ms = random.choice(_TIMEOUTS_MS)
        client = self._clients[added.node]
        waited = Waited(added.job_id, added.node, self.run.world.now_us, timeout_ms)
        self.run.history.waits.append(waited)

        def answered(reply: Any) -> None:
            if reply is not LOST:
                waited.answered_us = client.sent_us
                waited.answer = str(reply) if isinstance(reply, Exception) else reply or b""
            self.rest(_REST_US)

        client.ask(
            answered,
            *(b"WAITJOB", added.job_id, b"TIMEOUT", b"%d" % timeout_ms),
            within_us=timeout_ms * 1000,
        )


class QueueFlusher(Actor):
    """Empties queues, and counts jobs, at one node or in the cluster."""

    def act(self) -> None:
        random = self.random
        queue = random.choice(QUEUES[: self.run.queues])
        everywhere = random.random() < 0.5
        if random.random() < 0.7:
            self._count(queue, everywhere)
        else:
            self._flush(queue, random.choice(_STATES), everywhere)

    def _count(self, queue: bytes, everywhere: bool) -> None:
        counted = Counted(queue, everywhere, self.run.world.now_us)
        self.run.history.counts.append(counted)

        def answered(reply: Any) -> None:
            if isinstance(reply, list):
                counted.answered_us = self.client.sent_us
                counted.values = dict(zip(reply[::2], reply[1::2], strict=True))
            self.client.leave()
            self.rest(_REST_US)

        words = [b"QCOUNT", queue, *((b"CLUSTER",) if everywhere else ())]
        self.client.ask(answered, *words, within_us=_CLUSTER_US)

    def _flush(self, queue: bytes, state: bytes, everywhere: bool) -> None:
        flushed = RecordedFlush(queue, state, everywhere, self.run.world.now_us)
        flushed.there = _there(self.run, queue, state)
        self.run.history.flushes.append(flushed)

        def answered(reply: Any) -> None:
            flushed.node = self.client.node
            if isinstance(reply, int):
                flushed.answered_us = self.client.sent_us
                flushed.reply = reply
            self.client.leave()
            self.rest(_FLUSH_REST_US)

        words = [b"QFLUSH", queue, b"STATE", state, *((b"CLUSTER",) if everywhere else ())]
        self.client.ask(answered, *words, within_us=_CLUSTER_US)


def _there(run: Stage, queue: bytes, state: bytes) -> dict[bytes, set[bytes]]:
    """By node, the jobs of the queue that are in this state there."""
    return {
        machine.ip: {
            job.id
            for job in node.jobs.table.values()
            if job.queue == queue
            and (b"queued" if job.state == QUEUED else _PLACES.get(int(job.place), b""))
            in ((state,) if state != b"any" else (b"queued", *_PLACES.values()))
        }
        for machine, node in run.nodes()
    }
