"""Which queues are paused: by PAUSE, by policy, or both (client protocol, section 19).

1. A queue is paused in a direction if PAUSE or the policy says so: PAUSE with ``none`` ends what
   PAUSE began, and nothing else.
2. What PAUSE said is forgotten with the node, or with the queue. What a policy says is in force for
   every queue that it matches, from the moment in which the queue comes to be.
3. When a policy changes, the queue of that exact name follows at once, others in slices. What waits
   in a queue that is no longer paused is delivered then, and so is what a limit held up.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.outbox import Outbox
from disque_tx.core.queues import Queue, Queues
from disque_tx.core.shared.policies import Policies, PolicyWatcher
from disque_tx.core.shared.settings import LIMITS
from disque_tx.core.slices import Slices, Task
from disque_tx.core.waiters import Waiters

#: Queues looked at per slice.
_QUEUES_PER_SLICE: Final = 500


class Pausing(PolicyWatcher):
    """Sets the pause flags of queues."""

    def __init__(
        self,
        policies: Policies,
        queues: Queues,
        waiters: Waiters,
        outbox: Outbox,
        slices: Slices,
    ) -> None:
        self._queues = queues
        self._waiters = waiters
        self._outbox = outbox
        self._slices = slices
        self._walk: _Walk = _Walk(self)
        policies.watcher = self

    def command(self, name: bytes, flags: i64, now_ms: i64) -> None:
        """PAUSE: set what it says about a queue, which is made if there is anything."""
        queue = self._queues.get(name)
        if queue is None:
            if flags == 0:
                return
            queue = self._queues.obtain(name, now_ms)
        queue.paused_by_command = flags
        self._set(queue, flags | self._queues.paused_by_policy(name))

    def changed(self, pattern: bytes, name: bytes, exact: bool) -> None:
        """A setting of a policy changed."""
        if name != b"pause" and name not in LIMITS:
            return
        if not exact:
            self._walk.restart()
            self._slices.add(self._walk)
            return
        queue = self._queues.get(pattern)
        if queue is not None:
            self.follow_policy(queue)

    def follow_policy(self, queue: Queue) -> None:
        """Give the queue the flags that PAUSE and the policy say. What it may deliver besides may
        have changed as well."""
        flags = queue.paused_by_command | self._queues.paused_by_policy(queue.name)
        if flags != queue.paused:
            self._set(queue, flags)
        elif queue.jobs.size > 0:
            self._waiters.note_ready(queue)

    def some(self, cursor: int) -> int:
        """Let the queues from ``cursor`` on, some of them, follow the policies; the next cursor, 0
        at the end."""
        seen = 0
        while True:
            cursor, queues = self._queues.table.scan(cursor)
            for queue in queues:
                self.follow_policy(queue)
            seen += len(queues) + 1
            if cursor == 0 or seen >= _QUEUES_PER_SLICE:
                return cursor

    def _set(self, queue: Queue, flags: i64) -> None:
        queue.paused = flags
        if self._outbox.events is not None:
            self._outbox.events.paused(queue.name, flags)
        self._waiters.note_ready(queue)


class _Walk(Task):
    """Lets all queues follow. A change while this is under way makes it go round once more: every
    queue is reached, however often policies change."""

    __slots__ = ("_again", "_cursor", "_pausing")

    def __init__(self, pausing: Pausing) -> None:
        self._pausing: Pausing = pausing
        self._cursor: int = 0
        self._again: bool = False

    def restart(self) -> None:
        """A policy changed."""
        self._again = True

    def step(self, now_ms: i64) -> bool:
        if self._cursor == 0:
            self._again = False
        self._cursor = self._pausing.some(self._cursor)
        return self._cursor == 0 and not self._again
