"""Blocked clients: who waits for what, until when (client protocol, section 20).

1. A client that waits for jobs stands in the line of every queue it named, once each.
2. It leaves all lines at once: when it is served, when its time is over, when it goes away.
3. A queue whose line may be served stands in ``ready`` until the node has looked at it.
"""

from __future__ import annotations

from collections import OrderedDict

from mypy_extensions import i64

from disque_tx.core.client import BLOCKED_GETJOB, NOT_BLOCKED, Client
from disque_tx.core.outbox import Outbox
from disque_tx.core.queues import PAUSE_OUT, Queue, Queues
from disque_tx.core.schedule import Schedule

#: Time-outs above this are no time-outs (about 100 years, in milliseconds).
NO_TIMEOUT_MS = 100 * 366 * 86_400_000


class Waiters:
    """``blocked``: clients that wait; ``ready``: queues with a line and, lately, a job."""

    def __init__(self, queues: Queues, outbox: Outbox) -> None:
        self.blocked: dict[Client, None] = {}
        self.ready: list[Queue] = []
        self.timeouts: Schedule[Client] = Schedule()
        self._queues = queues
        self._outbox = outbox

    def wait_for_jobs(
        self, client: Client, names: list[bytes], counters: bool, timeout_ms: i64, now_ms: i64
    ) -> None:
        """Let ``client`` stand in line at every queue named; 0 waits for ever."""
        client.blocked = BLOCKED_GETJOB
        client.blocked_queues = names
        client.blocked_counters = counters
        for name in names:
            queue = self._queues.obtain(name, now_ms)
            if queue.waiters is None:
                queue.waiters = OrderedDict()
            queue.waiters[client] = None
        self.blocked[client] = None
        if 0 < timeout_ms < NO_TIMEOUT_MS:
            self.timeouts.add(client, now_ms + timeout_ms)

    def leave(self, client: Client) -> None:
        """The client waits no more; its further requests are executed again."""
        if client.blocked == NOT_BLOCKED:
            return
        for name in client.blocked_queues:
            queue = self._queues.get(name)
            if queue is not None and queue.waiters is not None:
                queue.waiters.pop(client, None)
        self.timeouts.remove(client)
        client.blocked = NOT_BLOCKED
        client.blocked_queues = []
        del self.blocked[client]
        self._outbox.resumed.append(client)

    def expired(self, now_ms: i64, limit: i64) -> list[Client]:
        """Clients whose time is over, taken out of the schedule but not yet out of line."""
        return self.timeouts.due(now_ms, limit)

    def note_ready(self, queue: Queue) -> None:
        """Jobs came or a pause ended: somebody in the queue's line may be served."""
        if queue.waiters and not queue.ready and not queue.paused & PAUSE_OUT:
            queue.ready = True
            self.ready.append(queue)
