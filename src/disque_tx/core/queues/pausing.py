"""Which queues are paused: by PAUSE, by policy, or both (client protocol, section 19).

1. A queue is paused in a direction if PAUSE or the policy says so: PAUSE with ``none`` ends what
   PAUSE began, and nothing else.
2. What PAUSE said, who and when, is kept over restarts. What a policy says is in force for every
   queue that it matches, as soon as the queue is created.
3. When a policy changes, the queue of that exact name follows at once, others in slices. What waits
   in a queue that is no longer paused is delivered then, and so is what a limit held up.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.part import Part, Turn
from disque_tx.core.base.slices import SlicedTask, SlicedWork
from disque_tx.core.policies.policies import Policies, PolicyWatcher
from disque_tx.core.policies.settings import LIMITS
from disque_tx.core.queues.queues import Queue, Queues
from disque_tx.core.queues.waiters import Waiters

#: Queues looked at per slice.
_QUEUES_PER_SLICE: Final = 500


#: Pauses that are kept over restarts; names of queues in them, and who said it, in bytes.
_KEPT_MAX: Final = 10_000
_NAME_BYTES_MAX: Final = 4_096
_WHO_BYTES_MAX: Final = 300


class Pause:
    """What PAUSE said about a queue. ``who``: address and name of the client, or the node that
    passed it on. ``at_s``: seconds since 1970."""

    __slots__ = ("at_s", "flags", "who")

    def __init__(self, flags: i64, who: bytes, at_s: i64) -> None:
        self.flags: i64 = flags
        self.who: bytes = who[:_WHO_BYTES_MAX]
        self.at_s: i64 = at_s


class Pausing(Part, PolicyWatcher):
    """Sets the pause flags of queues. ``kept``: what PAUSE said, by the name of the queue;
    ``unsaved``: it is different in the file."""

    def __init__(
        self,
        turn: Turn,
        policies: Policies,
        queues: Queues,
        waiters: Waiters,
        outbox: Outbox,
        slices: SlicedWork,
    ) -> None:
        self.kept: dict[bytes, Pause] = {}
        self.unsaved: bool = False
        self._turn = turn
        self._queues = queues
        self._waiters = waiters
        self._outbox = outbox
        self._slices = slices
        self._walk: _Walk = _Walk(self)
        policies.watcher = self

    def command(self, name: bytes, pause: Pause) -> None:
        """PAUSE: set what it says about a queue, which is made if there is anything."""
        self._keep(name, pause)
        self._command(name, pause.flags)

    def _keep(self, name: bytes, pause: Pause) -> None:
        if pause.flags == 0:
            if self.kept.pop(name, None) is not None:
                self.unsaved = True
        elif name in self.kept or (len(self.kept) < _KEPT_MAX and len(name) <= _NAME_BYTES_MAX):
            self.kept[name] = pause
            self.unsaved = True

    def load(self, pauses: dict[bytes, Pause]) -> None:
        """The node starts: pause these queues again."""
        self.kept = pauses
        for name, pause in pauses.items():
            self._command(name, pause.flags)

    def forget_all(self) -> None:
        """All queues are forgotten, and that they were paused."""
        if self.kept:
            self.kept.clear()
            self.unsaved = True

    def _command(self, name: bytes, flags: i64) -> None:
        queue = self._queues.get(name)
        if queue is None:
            if flags == 0:
                return
            queue = self._queues.obtain(name, self._turn.now_ms)
        queue.paused_by_command = flags
        self._set(queue, flags | self._queues.paused_by_policy(name))

    def changed(self, pattern: bytes, name: bytes, exact: bool) -> None:
        """A setting of a policy changed."""
        if name != b"pause" and name not in LIMITS:
            return
        for selector in self._waiters.refused.take_all():
            self._waiters.note_pattern(selector)
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


class _Walk(SlicedTask):
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
