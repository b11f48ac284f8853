"""A leaving node gives its jobs away, until it holds none and can be stopped (cluster protocol,
section 21.12).

The node goes through all its jobs, a part at a time, again and again:

1. Queued jobs move to nodes that take jobs, as they do when clients there wait for them.
2. Copies of all other jobs are made elsewhere by whoever makes copies again (``core.healing``).
   What this node alone waits for, the end of a DELAY or of a backoff, another holder takes over.
3. As soon as as many other nodes as REPLICATE says have confirmed a copy, this node drops its own.
4. Jobs in flight at clients of this node stay until these end them, or RETRY is over, and
   acknowledgements until all holders have confirmed them that are not lost.
5. Jobs with RETRY 0 move as they do whenever clients elsewhere wait for them: once, without a
   confirmation. Those that were delivered do not count.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import NEVER_MS, Part
from disque_tx.core.base.schedule import earlier
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.getting.federation import Federation
from disque_tx.core.healing.healing import NO_NODE, NOTHING, Healing
from disque_tx.core.healing.lostnodes import LOST
from disque_tx.core.jobs.job import DELAYED, IN_FLIGHT, Job
from disque_tx.core.leaving.confirmations import Confirmations
from disque_tx.core.leaving.giving import Giving
from disque_tx.core.leaving.takeovers import Takeovers
from disque_tx.core.redelivery.replacements import Replacements
from disque_tx.core.state.state import State
from disque_tx.messages.handover import ANSWER, FULL, RELEASE, RESTARTED, HandoverMessage
from disque_tx.messages.nodes import FAIL, HANDSHAKE, MYSELF, NodeEntry
from disque_tx.messages.records import (
    ACKED,
    QUEUED,
    WAIT_REPL,
)

#: Between two parts of a walk; jobs looked at in each; jobs that move, and are asked about.
_PAUSE_MS: Final = 5
_LOOKED_AT: Final = 2_000
_MOVED_MAX: Final = 200
_ASKED_MAX: Final = 1_000
#: Between two walks: while the last one has done something, and while it has not.
_BUSY_MS: Final = 50
_IDLE_MS: Final = 500
#: For so long after the beginning other nodes may not know that this one leaves.
_ANNOUNCED_MS: Final = 2_000

# Why jobs are still here (besides those of ``core.healing.healing``).
CLIENTS: Final = "clients"
ACKNOWLEDGEMENTS: Final = "acknowledgements"
COPIES: Final = "copies"


class Evacuation(Part):
    """``active``: this node gives its jobs away; ``automatic``: it does so whenever it leaves.
    ``obstacle``: what the last walk found to wait for, empty if nothing. ``healing``: makes copies
    elsewhere."""

    def __init__(
        self,
        state: State,
        takeovers: Takeovers,
        delivery: Delivery,
        federation: Federation,
        healing: Healing,
        replacements: Replacements,
    ) -> None:
        self.active: bool = False
        self.automatic: bool = False
        self.obstacle: str = NOTHING
        self.healing = healing
        self.confirmations = Confirmations(state, takeovers, delivery)
        self._turn = state.turn
        self._jobs = state.jobs
        self._membership = state.membership
        self._delivery = delivery
        self._giving = Giving(
            state, self.confirmations, delivery, federation, healing, replacements
        )
        self._takeovers = takeovers
        self._begun_ms: i64 = 0
        #: Jobs that were left at the end of the last walk, and how many were gone by then.
        self._left: i64 = 0
        self._left_at: i64 = 0
        self._next_ms: i64 = NEVER_MS
        self._cursor: int = 0
        # Of the walk under way: jobs found, and of these in flight and acknowledged; and whether
        # anything was done.
        self._found: i64 = 0
        self._in_flight: i64 = 0
        self._acked: i64 = 0
        self._done: bool = False

    @property
    def moved(self) -> i64:
        """How many jobs this evacuation has got rid of."""
        return self.confirmations.released

    @property
    def left(self) -> i64:
        """How many jobs this node still has to get rid of; not 0 until it is sure that none is
        left, and that no other node will give it one."""
        if self._left == 0:
            return 0
        return max(1, self._left - (self.moved - self._left_at))

    def eta_s(self) -> i64:
        """In how many seconds the rest may be gone, at the pace so far; -1 if that is unknown."""
        left = self.left
        if left == 0:
            return 0
        elapsed_ms = self._turn.now_ms - self._begun_ms
        return -1 if self.moved == 0 else left * elapsed_ms // self.moved // 1000 + 1

    # -- when --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Give all jobs away; this node is leaving."""
        if self.active:
            return
        self.active = True
        self._begun_ms = self._turn.now_ms
        self.obstacle = NOTHING
        self.confirmations.begin()
        self.healing.queued_move = True
        self._left = max(1, len(self._jobs))
        self._left_at = 0
        self._begin_walk(self._turn.now_ms)

    def resume(self) -> None:
        """This node is leaving, perhaps since before it was started."""
        if self.automatic:
            self.begin()

    def call_off(self) -> None:
        """Keep what is still here."""
        self.active = False
        self._left = 0
        self.obstacle = NOTHING
        self._next_ms = NEVER_MS
        self.confirmations.clear()
        self.healing.queued_move = False

    def next_due_ms(self) -> i64:
        if not self.active:
            return NEVER_MS
        if self.confirmations.has_news():
            return self._turn.now_ms
        return earlier(self._next_ms, self.confirmations.next_due_ms())

    def run_due(self) -> None:
        """Go on with the walk."""
        if not self.active:
            return
        if not self._membership.leaving:
            self.call_off()
            return
        self.confirmations.expire()
        if 0 <= self._next_ms <= self._turn.now_ms:
            self._walk()
        self.confirmations.send()

    def forget_all(self) -> None:
        self.confirmations.clear()

    # -- the walk ----------------------------------------------------------------------------

    def _begin_walk(self, at_ms: i64) -> None:
        self._cursor = 0
        self._found = 0
        self._in_flight = 0
        self._acked = 0
        self._giving.lacking = 0
        self._done = False
        self.confirmations.walk += 1
        self.confirmations.released_in_walk = 0
        self._next_ms = at_ms

    def _walk(self) -> None:
        """Look at the next jobs."""
        self._giving.begin_part()
        looked_at: i64 = 0
        while looked_at < _LOOKED_AT and not self._has_done_enough():
            self._cursor, jobs = self._jobs.table.scan(self._cursor)
            looked_at += 1 + i64(len(jobs))
            for job in jobs:
                self._visit(job)
            if self._cursor == 0:
                self._finish_part()
                self._walked()
                return
        self._finish_part()
        self._next_ms = self._turn.now_ms + _PAUSE_MS

    def _has_done_enough(self) -> bool:
        giving = self._giving
        if giving.moved >= _MOVED_MAX or giving.asked >= _ASKED_MAX:
            return True
        return self.confirmations.is_full()

    def _finish_part(self) -> None:
        self._giving.moving.send()
        if self._giving.moved or self._giving.asked:
            self._done = True

    def _walked(self) -> None:
        """The whole table was looked at."""
        now_ms = self._turn.now_ms
        left = max(0, self._found - self.confirmations.released_in_walk)
        if left == 0 and not self._announced():
            left = 1
        self._left = left
        self._left_at = self.moved
        self.obstacle = self._waits_for()
        self._begin_walk(now_ms + (_BUSY_MS if self._done else _IDLE_MS))

    def _announced(self) -> bool:
        """Whether the other nodes know that this one leaves."""
        if self._turn.now_ms - self._begun_ms < _ANNOUNCED_MS:
            return False
        for entry in self._membership.nodes.values():
            if entry.link is None or entry.flags & (MYSELF | FAIL | HANDSHAKE):
                continue
            if 0 < entry.pong_received_ms <= self._begun_ms:
                return False
        return True

    def _waits_for(self) -> str:
        if self._found == 0 or self._done:
            return NOTHING
        if not self._giving.moving.able and self._found > self._in_flight + self._acked:
            return NO_NODE
        if self._giving.lacking:
            return self.healing.why_not() or COPIES
        if self._in_flight:
            return CLIENTS
        return ACKNOWLEDGEMENTS if self._acked else NOTHING

    def _visit(self, job: Job) -> None:
        if job.state == QUEUED:
            self._found += 1
            self._giving.queued(job)
        elif job.state == ACKED:
            if not self._takeovers.acks.give_up(job, self._is_lost):
                self._found += 1
                self._acked += 1
        elif job.state == WAIT_REPL:
            self._found += 1
        elif job.retry_s == 0:
            if job.place == DELAYED:
                self._found += 1
                self._giving.delayed_once(job)
        else:
            self._found += 1
            if job.place == IN_FLIGHT and not self._is_abandoned(job):
                self._in_flight += 1
            else:
                self._giving.other(job)

    def _is_lost(self, node_id: bytes) -> bool:
        return self.healing.nodes.status(node_id) == LOST

    def _is_abandoned(self, job: Job) -> bool:
        """Whether only PAUSE keeps a job, that no client ended in time, from being queued again."""
        if not self._delivery.is_paused_in(job):
            return False
        return self._turn.now_ms - job.moved_ms > job.retry_s * 1000

    # -- messages ----------------------------------------------------------------------------

    def receive(self, sender: NodeEntry, message: HandoverMessage) -> None:
        """HANDOVER."""
        if message.mflags & RELEASE:
            self._takeovers.released(sender, message)
        elif not message.mflags & ANSWER:
            self._takeovers.asked(sender, message)
        elif message.number == RESTARTED:
            self.healing.restarts.answered(sender, message)
        elif self.active:
            if message.mflags & FULL:
                self._giving.moving.is_full(sender.id)
            self.confirmations.answered(sender, message)
