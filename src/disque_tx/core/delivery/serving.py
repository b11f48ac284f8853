"""Jobs of queues go to the clients that wait for them."""

from __future__ import annotations

from disque_tx.core.base.client import BLOCKED_GETJOB, REPLY_OFF, Client
from disque_tx.core.base.part import Part
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.queues import Queue
from disque_tx.core.queues.selector import Selector
from disque_tx.core.state.state import State
from disque_tx.messages.records import JobRecord


class Serving(Part):
    """Serves the wait lists of queues that are ready: that have jobs, or may deliver again."""

    def __init__(self, state: State, delivery: Delivery) -> None:
        self._turn = state.turn
        self._waiters = state.waiters
        self._outbox = state.outbox
        self._limits = state.limits
        self._matching = state.matching
        self._delivery = delivery

    def forget_all(self) -> None:
        """No queue is ready, or longer than its policy allows."""
        self._waiters.ready.clear()
        self._delivery.overfull.clear()
        self._delivery.early_counts.forget_all()

    def run(self) -> None:
        """Give jobs of ready queues to the clients in line: oldest job, longest waiting client.
        Those that named the queue come first, then those that wait by patterns."""
        now_ms = self._turn.now_ms
        ready = self._waiters.ready
        matching = self._matching
        selectors: list[Selector] = []
        while ready:
            queue = ready.pop()
            queue.ready = False
            while queue.waiters and self._limits.may_deliver(queue, now_ms):
                self._serve_one(next(iter(queue.waiters)), queue)
            if matching.active and queue.jobs.size > 0:
                for selector in matching.of(queue):
                    if selector.clients and not selector.ready:
                        selector.ready = True
                        selectors.append(selector)
        for selector in selectors:
            selector.ready = False
            while selector.clients:
                chosen = matching.choose(selector)
                if chosen is None:
                    break
                self._serve_one(next(iter(selector.clients)), chosen)

    def _serve_one(self, client: Client, queue: Queue) -> None:
        if client.abort_now:  # the answer would not be read
            self._waiters.leave(client)
            return
        job = self._delivery.fetch(queue)
        if job is not None:
            self._hand_over(client, job)
            if self._matching.active:
                self._matching.note_served(queue)

    def _hand_over(self, client: Client, job: Job) -> None:
        """Answer a blocked GETJOB with one job (client protocol, section 20)."""
        assert client.blocked == BLOCKED_GETJOB
        self._delivery.delivered(client, job)
        if client.reply_mode != REPLY_OFF:
            jobs: list[JobRecord] = [job]
            client.replies.jobs(jobs, client.blocked_counters)
        self._waiters.leave(client)
        self._outbox.touch(client)
