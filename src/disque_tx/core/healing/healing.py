"""Copies are made again: when jobs are looked through, and how fast.

The original never replaces a copy that was lost with its node. Here:

1. When a node is lost, leaves or joins, this node looks through all its jobs, a part at a time, and
   counts those that lack copies. While there are any, and while lists of holders name nodes that
   are lost or unknown, it does so again.
2. Then it goes through them once more, and makes the copies that are its turn: up to
   :attr:`Healing.rate` per second, and a few per turn, so that clients come first.
3. Nodes of ours notify the other holders of each new copy by HOLDERS, so these know who makes
   copies, and whom to ask when the job is done.
4. Nodes that were started again are asked what they have lost (``restarts``), at the same rate.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.placement import Placement
from disque_tx.core.adding.replication import Replication
from disque_tx.core.base.part import NEVER_MS, Part
from disque_tx.core.base.schedule import earlier
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.healing.repairs import Repairs
from disque_tx.core.healing.restarts import RestartedNodes
from disque_tx.core.healing.shortages import Shortages
from disque_tx.core.jobs.job import NOWHERE, Job
from disque_tx.core.nodes.links import LinkWatcher
from disque_tx.core.state.state import State
from disque_tx.messages.holders import ARRIVED, HoldersMessage
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import ACKED, ACTIVE, QUEUED, WAIT_REPL

#: Jobs per second for which copies are made, unless configured.
RATE: Final = 2_000
#: Between two parts of a walk; jobs looked at in each; jobs that get copies in each at most.
_PAUSE_MS: Final = 10
_LOOKED_AT: Final = 2_000
_COPIED_MAX: Final = 100
#: Jobs that may be waiting for confirmations: what the rate allows in two seconds, or this many.
_UNDER_WAY_S: Final = 2
_UNDER_WAY_MIN: Final = 100
#: For how long the rate may be saved up.
_BURST_US: Final = 100_000
#: Between two walks: while copies are lacking, and while they might be.
_AGAIN_MS: Final = 10_000
_CHECK_MS: Final = 20_000
#: Between two that follow changes of the cluster.
_CHANGE_MS: Final = 1_000
_POSITIONS: Final = U32_MAX + 1

# What a walk is for.
_IDLE: Final = 0
_COUNT: Final = 1
_COPY: Final = 2

# Why copies are not made although they are lacking.
NOTHING: Final = ""
NO_NODE: Final = "no-node"
NO_ANSWER: Final = "no-answer"
PAUSED: Final = "paused"


class Healing(Part, LinkWatcher):
    """``rate``: jobs per second that get copies; 0 for none. ``lacking``: jobs that lack copies, as
    far as this node has counted. ``obstacle``: why no more are made, empty if they are.
    ``replication``: makes the first copies of a job. ``queued_move``: those in queues of this node
    leave it anyway."""

    def __init__(
        self,
        state: State,
        delivery: Delivery,
        arrivals: Arrivals,
        replication: Replication,
        acks: Acks,
    ) -> None:
        self.rate: i64 = RATE
        self.queued_move: bool = False
        self.lacking: i64 = 0
        self.obstacle: str = NOTHING
        placement = Placement(state.membership, state.random)
        self.shortages: Shortages = Shortages(state.turn, state.membership, placement)
        self.nodes = self.shortages.nodes
        self.repairs = Repairs(state, arrivals, placement)
        self.restarts = RestartedNodes(state, arrivals, self.repairs)
        self._turn = state.turn
        self._membership = state.membership
        self._jobs = state.jobs
        self._delivery = delivery
        self.replication = replication
        self._acks = acks
        self._walk: i64 = _IDLE
        self._cursor: int = 0
        self._found: i64 = 0
        self._next_ms: i64 = NEVER_MS
        self._counted_ms: i64 = -_AGAIN_MS
        #: Until when, on the steady clock, the copies made so far use up the rate.
        self._paid_us: i64 = 0

    # -- when --------------------------------------------------------------------------------

    def links_changed(self) -> None:
        """Nodes may have come or gone: see whether jobs may lack copies now."""
        now_ms = self._turn.now_ms
        changed = self.shortages.update()
        if self.rate > 0 and self.nodes.after_ms > 0 and not self._membership.leaving:
            self.restarts.links_changed(self.nodes.lost.keys() | self.nodes.leaving.keys())
        if changed:
            due_ms = max(now_ms, self._counted_ms + _CHANGE_MS)
            if self._walk != _COUNT:
                self._walk = _IDLE
                self._next_ms = due_ms
            else:
                self._cursor = 0
                self._found = 0

    def next_due_ms(self) -> i64:
        if self.replication.unconfirmed:
            return self._turn.now_ms
        due_ms = earlier(self._next_ms, self.restarts.next_due_ms())
        return earlier(due_ms, self.repairs.next_due_ms())

    def run_due(self) -> None:
        """Go on with the walk, and with copies that nobody confirmed."""
        now_ms = self._turn.now_ms
        if self.replication.unconfirmed:
            self._watch_late()
        if 0 <= self.repairs.next_due_ms() <= now_ms and self.repairs.run_due():
            self.obstacle = NO_ANSWER
            self.count_soon()
        if 0 <= self.restarts.next_due_ms() <= now_ms:
            self._restore()
        if not 0 <= self._next_ms <= now_ms:
            return
        if self._walk == _IDLE:
            self._begin_count()
        if self._walk == _COUNT:
            self._count()
        else:
            self._copy()

    def set_after(self, after_ms: i64) -> None:
        """For how long a node is in FAIL before its copies are made again; 0 for never."""
        self.nodes.after_ms = after_ms

    def set_rate(self, rate: i64) -> None:
        """How many jobs per second get copies."""
        self.rate = rate
        self._paid_us = 0

    def forget_all(self) -> None:
        self.repairs.forget_all()
        self.restarts.forget_all()
        self.lacking = 0
        self._walk = _IDLE
        self._next_ms = NEVER_MS

    def progress(self) -> float:
        """How much of the walk under way is done: 0 to 1, and 1 when there is none."""
        return 1.0 if self._walk == _IDLE else float(self._cursor) / _POSITIONS

    def copies_pending(self, node_id: bytes) -> bool:
        """Whether a node that is to be forgotten has to wait for that: its copies are made again
        first, beginning now."""
        if self.nodes.after_ms == 0:
            return False
        self.nodes.give_up(node_id)
        if node_id not in self.nodes.lost or self._counted_ms < self.nodes.since_ms(node_id):
            return True
        return self._walk != _IDLE or self.lacking > 0

    def why_not(self) -> str:
        """Why copies that are lacking are not made, empty if they are, or if none are."""
        if self.lacking == 0:
            return NOTHING
        return PAUSED if self.rate == 0 else self.obstacle

    # -- walks -------------------------------------------------------------------------------

    def _begin_count(self) -> None:
        self._walk = _COUNT
        self._cursor = 0
        self._found = 0
        self.shortages.forget()

    def _count(self) -> None:
        """Look at the next jobs, and only count."""
        self._cursor, jobs = self._jobs.table.scan_part(self._cursor, _LOOKED_AT)
        for job in jobs:
            if self.shortages.of(job) is not None:
                self._found += 1
        if self._cursor == 0:
            self._counted()
            return
        self._next_ms = self._turn.now_ms + _PAUSE_MS

    def _counted(self) -> None:
        now_ms = self._turn.now_ms
        self.lacking = self._found
        self._counted_ms = now_ms
        self._walk = _IDLE
        self._next_ms = NEVER_MS
        if self.lacking == 0:
            self.obstacle = NOTHING
            if self.shortages.doubtful:
                self._next_ms = now_ms + _CHECK_MS
        elif self.rate == 0:
            self._next_ms = now_ms + _AGAIN_MS
        else:
            self._walk = _COPY
            self._next_ms = now_ms

    def _copy(self) -> None:
        """Look at the next jobs, and make the copies that are this node's turn."""
        now_ms = self._turn.now_ms
        if self.rate == 0:
            self._walk = _IDLE
            self._next_ms = now_ms + _AGAIN_MS
            return
        budget = self._budget()
        looked_at: i64 = 0
        while looked_at < _LOOKED_AT and budget > 0:
            # Not more than the budget: a job that is passed is looked at in the next walk only.
            self._cursor, jobs = self._jobs.table.scan_part(self._cursor, budget)
            looked_at += budget
            for job in jobs:
                if self._repair(job):
                    budget -= 1
                    self._pay(1)
            if self._cursor == 0:
                self._walk = _IDLE
                self._next_ms = self._counted_ms + _AGAIN_MS
                return
        self._next_ms = now_ms + _PAUSE_MS

    def _restore(self) -> None:
        """Ask nodes that were started again, and send them what they have lost."""
        sent = self.restarts.run_due(self._budget())
        self._pay(sent)
        self.lacking += sent
        if self.restarts.dropped:
            self.restarts.dropped = False
            self.count_soon()

    def count_soon(self) -> None:
        """Lists of holders became shorter: count what is lacking, unless that is under way."""
        if self._walk == _IDLE:
            self._next_ms = earlier(self._next_ms, self._turn.now_ms + _CHANGE_MS)

    def _pay(self, jobs: i64) -> None:
        """This many jobs got copies."""
        if self.rate > 0:
            self._paid_us += jobs * max(1, 1_000_000 // self.rate)

    def _budget(self) -> i64:
        """For how many jobs copies may be made now."""
        if self.rate <= 0 or len(self.repairs.by_job) >= self._under_way_max():
            return 0
        now_us = self._turn.now_ms * 1000
        self._paid_us = max(self._paid_us, now_us - _BURST_US)
        return min(_COPIED_MAX, max(0, now_us - self._paid_us) * self.rate // 1_000_000)

    def _under_way_max(self) -> i64:
        return max(_UNDER_WAY_MIN, self.rate * _UNDER_WAY_S)

    def _repair(self, job: Job) -> bool:
        """Make the copies that the job lacks, if it is this node's turn."""
        shortage = self.shortages.of(job)
        if shortage is None or job.id in self.repairs.by_job:
            return False
        if job.id in self.replication.asynchronous or (self.queued_move and job.state == QUEUED):
            return False
        if self.shortages.due_ms(shortage) > self._turn.now_ms:
            return False
        if self.repairs.begin(job, shortage):
            return True
        self.obstacle = NO_NODE
        return False

    def _watch_late(self) -> None:
        """Jobs that have enough copies, and more nodes in their lists than confirmed one."""
        added, self.replication.unconfirmed = self.replication.unconfirmed, {}
        for job, nodes in added.items():
            if nodes:
                self.repairs.watch(job, nodes)

    # -- messages ----------------------------------------------------------------------------

    def confirmed(self, sender: NodeEntry, job_id: bytes) -> None:
        """GOTJOB: the sender has a copy."""
        if self.repairs.confirmed(sender, job_id):
            self.obstacle = NOTHING
            self.lacking = max(0, self.lacking - 1)

    def receive(self, sender: NodeEntry, message: HoldersMessage) -> None:
        """HOLDERS: the sender made copies, and these nodes may have one now."""
        self.shortages.made_ms[sender.id] = int(self._turn.now_ms)
        job = self._jobs.get(message.job_id)
        if job is None or job.state == WAIT_REPL:
            return
        if job.state == ACKED:
            self._acks.send_setack(job, sender.id)
            return
        if message.mflags & ARRIVED:
            self._set_state(job, message)
            return
        before = job.nodes
        self._jobs.merge_holders(job, message.holders)
        if job.nodes is not before:
            self._jobs.record(job)

    def _set_state(self, job: Job, message: HoldersMessage) -> None:
        """What the record of a copy that just arrived did not hold."""
        if job.state != ACTIVE or job.place != NOWHERE:
            return
        job.priority = message.priority
        if message.delay_ms > 0:
            due_ms = self._delivery.requeue_ms(job, self._turn.now_ms + message.delay_ms)
            job.qtime_ms = due_ms
            self._jobs.reschedule(job)
