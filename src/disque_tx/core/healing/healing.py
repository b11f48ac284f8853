"""Copies are made again: when jobs are looked through, and how fast.

The original never replaces a copy that was lost with its node. Here:

1. When a node is lost, leaves or joins, this node looks through all its jobs, a part at a time, and
   counts those that lack copies. While lists of holders name nodes that are lost or unknown, it
   does so again.
2. Then it goes through them once more, and makes the copies that are its turn, as fast as the rate
   allows. It does so again when it becomes its turn for what other holders should have made, and
   did not.
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
from disque_tx.core.healing.copyrate import CopyRate, shares
from disque_tx.core.healing.repairs import Repairs
from disque_tx.core.healing.restarts import RestartedNodes
from disque_tx.core.healing.shortages import Shortage, Shortages
from disque_tx.core.jobs.job import Job
from disque_tx.core.lookup.walk import Walk
from disque_tx.core.nodes.links import LinkWatcher
from disque_tx.core.state.state import State
from disque_tx.messages.holders import ARRIVED, HoldersMessage
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import ACKED, QUEUED, WAIT_REPL

#: Between two parts of a walk, and jobs looked at in each.
_PAUSE_MS: Final = 10
_LOOKED_AT: Final = 2_000
#: How many of these are looked at between two looks at the budget.
_AT_ONCE: Final = 4
#: Lists of holders that wait for the turn of this node, and are looked at instead of their jobs.
_WAITING_MAX: Final = 64
#: Between two walks: while copies are lacking, and while they might be.
_AGAIN_MS: Final = 10_000
_CHECK_MS: Final = 20_000
#: Between two that follow changes of the cluster.
_CHANGE_MS: Final = 1_000

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
    """``rate``: how fast jobs get copies. ``lacking``: jobs that lack copies, as
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
        self.rate: CopyRate = CopyRate(state.turn)
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
        self._arrivals = arrivals
        self._walk: i64 = _IDLE
        self._looking: Walk[Job] = Walk(state.jobs.table)
        self._found: i64 = 0
        #: What jobs passed in the last walk lack, if it was only not this node's turn.
        self._waiting: list[Shortage] = []
        self._passed: bool = False
        #: Which walk begins next, and when this one goes on, or that one begins.
        self._following: i64 = _COUNT
        self._next_ms: i64 = NEVER_MS
        self._counted_ms: i64 = -_AGAIN_MS

    # -- when --------------------------------------------------------------------------------

    def links_changed(self) -> None:
        """Nodes may have come or gone: see whether jobs may lack copies now."""
        now_ms = self._turn.now_ms
        changed = self.shortages.update()
        if self.rate.per_s > 0 and self.nodes.after_ms > 0 and not self._membership.leaving:
            self.restarts.links_changed(self.nodes.lost.keys() | self.nodes.leaving.keys())
        if changed:
            due_ms = max(now_ms, self._counted_ms + _CHANGE_MS)
            if self._walk != _COUNT:
                self._walk = _IDLE
                self._looking.end()
                self._following = _COUNT
                self._next_ms = due_ms
            else:
                self._begin()

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
            self._begin()
        if self._walk == _COUNT:
            self._count()
        elif self._walk == _COPY:
            self._copy()
            self.repairs.notify()

    def set_after(self, after_ms: i64) -> None:
        """For how long a node is in FAIL before its copies are made again; 0 for never."""
        self.nodes.after_ms = after_ms

    def forget_all(self) -> None:
        self.repairs.forget_all()
        self.restarts.forget_all()
        self.lacking = 0
        self._walk = _IDLE
        self._looking.end()
        self._next_ms = NEVER_MS

    def progress(self) -> float:
        """How much of the walk under way is done: 0 to 1, and 1 when there is none."""
        return self._looking.progress()

    def copies_pending(self, node_id: bytes) -> bool:
        """Whether a node that is to be forgotten has to wait for that: its copies are made again
        first, beginning now."""
        if self.nodes.after_ms == 0:
            return False
        self.nodes.give_up(node_id)
        if node_id not in self.nodes.lost or self._counted_ms < self.nodes.since_ms(node_id):
            return True
        passed = self._following == _COPY and self._found > 0
        return self._walk != _IDLE or passed or self.lacking > 0

    def why_not(self) -> str:
        """Why copies that are lacking are not made, empty if they are, or if none are."""
        if self.lacking == 0:
            return NOTHING
        return PAUSED if self.rate.per_s == 0 else self.obstacle

    # -- walks -------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Begin the next walk, unless it would find nothing to do."""
        if self._following == _COPY and self._found == 0:
            self._settle()  # only confirmations were missing
            return
        if self._following == _COPY and self._waiting and not self._passed:
            due_ms: i64 = min([self.shortages.due_ms(shortage) for shortage in self._waiting])
            if due_ms > self._turn.now_ms:
                self._next_ms = due_ms
                return
        self._walk = self._following
        self._looking.begin()
        self._found = 0
        self._passed = False
        self._waiting = []
        self.shortages.forget()

    def _count(self) -> None:
        """Look at the next jobs, and only count."""
        for job in self._looking.part(_LOOKED_AT):
            shortage = self.shortages.of(job)
            if shortage is not None:
                self._found += 1
                self._passed = not self._waits(shortage) or self._passed
        if self._looking.under_way:
            self._next_ms = self._turn.now_ms + _PAUSE_MS
            return
        self._settle()
        if self._following == _COPY:
            self._next_ms = self._turn.now_ms

    def _settle(self) -> None:
        """All jobs were looked at: see when that is to be done again."""
        now_ms = self._turn.now_ms
        remaining = self._found + self.repairs.lacking()
        # Others may have made copies of jobs that were passed in this walk.
        self.lacking = remaining if self._walk == _COUNT else min(self.lacking, remaining)
        self._counted_ms = now_ms
        self._walk = _IDLE
        self._next_ms = NEVER_MS
        self._following = _COUNT
        if remaining > 0:
            self._following = _COPY if self.rate.per_s > 0 else _COUNT
            self._next_ms = now_ms + _AGAIN_MS
        else:
            self.obstacle = NOTHING
            if self.shortages.doubtful:
                self._next_ms = now_ms + _CHECK_MS

    def _copy(self) -> None:
        """Look at the next jobs, and make the copies that are this node's turn."""
        now_ms = self._turn.now_ms
        if self.rate.per_s == 0:
            self._walk = _IDLE
            self._looking.end()
            self._following = _COUNT
            self._next_ms = now_ms + _AGAIN_MS
            return
        budget = self.rate.budget(len(self.repairs.by_job))
        looked_at: i64 = 0
        while looked_at < _LOOKED_AT and budget > 0:
            # Not more than the budget: a job that is passed is looked at in the next walk only.
            part = min(budget, _AT_ONCE)
            looked_at += part
            for job in self._looking.part(part):
                if self._repair(job):
                    budget -= shares(job)
                    self.rate.pay(1)
            if not self._looking.under_way:
                self._settle()
                return
        self._next_ms = now_ms + _PAUSE_MS

    def _restore(self) -> None:
        """Ask nodes that were started again, and send them what they have lost."""
        sent = self.restarts.run_due(self.rate.budget(len(self.repairs.by_job)))
        self.rate.pay(sent)
        self.lacking += sent
        if self.restarts.dropped:
            self.restarts.dropped = False
            self.count_soon()

    def count_soon(self) -> None:
        """Lists of holders became shorter: count what is lacking, unless that is under way."""
        if self._walk == _IDLE:
            self._following = _COUNT
            self._next_ms = earlier(self._next_ms, self._turn.now_ms + _CHANGE_MS)

    def check_soon(self) -> None:
        """Look also at jobs that came from an original, whose lists of holders nobody corrects."""
        self.shortages.doubtful = True  # the walk may have passed them
        self._next_ms = earlier(self._next_ms, self._turn.now_ms + _CHECK_MS)

    def _repair(self, job: Job) -> bool:
        """Make the copies that the job lacks, if it is this node's turn."""
        shortage = self.shortages.of(job)
        if shortage is None:
            return False
        job_id = job.id
        repair = self.repairs.by_job.get(job_id)
        if repair is not None and repair.lacks:
            return False  # it counts as under way
        self._found += 1
        moves = self.queued_move and job.state == QUEUED
        if repair is not None or job_id in self.replication.asynchronous or moves:
            self._passed = True
        elif not self._waits(shortage):
            if self.repairs.begin(job, shortage):
                self._found -= 1
                return True
            self._passed = True
            self.obstacle = NO_NODE
        return False

    def _waits(self, shortage: Shortage) -> bool:
        """Whether others should make what jobs with this list lack, before this node does."""
        if self.shortages.due_ms(shortage) <= self._turn.now_ms:
            return False
        if not shortage.waits:
            shortage.waits = True
            self._waiting.append(shortage)
            self._passed = self._passed or len(self._waiting) > _WAITING_MAX
        return True

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
        before: tuple[bytes, ...] | None = None
        merged: tuple[bytes, ...] = ()
        for job_id in message.job_ids:
            job = self._jobs.get(job_id)
            if job is None or job.state == WAIT_REPL:
                continue
            if job.state == ACKED:
                self._acks.send_setack(job, sender.id)
            elif message.mflags & ARRIVED:
                self._arrivals.complete(job, message)
            else:
                if job.nodes is not before:
                    before = job.nodes
                    merged = self._arrivals.merged(before, message.holders)
                if merged is not before:
                    self._replace_holders(job, merged)

    def _replace_holders(self, job: Job, holders: tuple[bytes, ...]) -> None:
        lacked = self.lacking > 0 and self.shortages.of(job) is not None
        self._jobs.set_holders(job, holders)
        self._jobs.record(job)
        if lacked and self.shortages.of(job) is None:
            self.lacking -= 1
