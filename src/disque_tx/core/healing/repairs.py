"""Copies under way: a job whose holders were lost, until enough other nodes have confirmed theirs.

1. The new holder gets the job, and the other holders the complete list, before anything else about
   it leaves: whoever ends the job can reach the new copy.
2. What the job's record does not hold follows it: the rest of its DELAY, its priority.
3. A node that does not confirm within a second is replaced by another. It may be late, so it stays
   in the list until the repair ends, and is asked again if its connection was replaced meanwhile;
   after that, a late confirmation brings it back, or ends its copy if the job is done by then (see
   ``unconfirmed``).
4. The same holds for nodes that were asked when the job was added, and did not confirm in time.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.placement import Placement
from disque_tx.core.adding.replication import life_s
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.healing.holderlists import HolderLists
from disque_tx.core.healing.shortages import Shortage
from disque_tx.core.jobs.job import DELAYED, PRIORITY, Job
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.state.state import State
from disque_tx.messages import events
from disque_tx.messages.bus import JobCopy
from disque_tx.messages.bustypes import CAN_HEAL, DELJOB, SETACK
from disque_tx.messages.holders import AGAIN, ARRIVED, HoldersMessage
from disque_tx.messages.nodes import FAIL, Link, NodeEntry
from disque_tx.messages.records import ACKED, ACTIVE, QUEUED, Keyed

#: For how long a node may take to confirm a copy before another one is asked, too.
_CONFIRM_MS: Final = 1_000
#: How often that is repeated.
_ATTEMPTS_MAX: Final = 5
_TIMEOUTS_PER_TURN: Final = 1_000


class Repair(Keyed):
    """A job that gets copies. ``asked``: the nodes that did not confirm yet, and the links on which
    they were asked. ``wanted``: confirmations that are missing. ``attempts``: how often nodes were
    drawn, 0 if it was not lost copies for which they were."""

    __slots__ = ("asked", "attempts", "avoid", "job", "wanted")

    def __init__(self, job: Job, wanted: i64, avoid: bytes) -> None:
        super().__init__(job.id)
        self.job: Job = job
        self.asked: dict[bytes, Link | None] = {}
        self.wanted: i64 = wanted
        self.avoid: bytes = avoid
        self.attempts: i64 = 0

    @property
    def lacks(self) -> bool:
        """Whether copies that were lost are missing still."""
        return self.attempts > 0 and self.wanted > 0


class Repairs:
    """``by_job``: those under way, by job ID."""

    def __init__(self, state: State, arrivals: Arrivals, placement: Placement) -> None:
        self.by_job: dict[bytes, Repair] = {}
        self._timeouts: Schedule[Repair] = Schedule()
        self._unconfirmed = state.unconfirmed
        self._turn = state.turn
        self._jobs = state.jobs
        self._outbox = state.outbox
        self._totals = state.totals
        self._peers = state.peers
        self._membership: Membership = state.membership
        self._arrivals = arrivals
        self._placement = placement
        self._lists = HolderLists(state.peers, state.membership)

    def next_due_ms(self) -> i64:
        """When the next node has taken too long to confirm."""
        return self._timeouts.next_ms()

    def lacking(self) -> i64:
        """How many jobs lack copies of which none is confirmed yet."""
        return i64(len([one for one in self.by_job.values() if one.lacks]))

    def forget_all(self) -> None:
        """All jobs are gone."""
        self.by_job.clear()
        self._timeouts.clear()
        self._unconfirmed.nodes.clear()

    # -- making copies -----------------------------------------------------------------------

    def begin(self, job: Job, shortage: Shortage) -> bool:
        """Have the missing copies made; ``False`` if there is no node for any."""
        mine = self._membership.myself.id
        if mine not in job.nodes:
            # It was imported. From now on it is this node that others ask.
            self._jobs.set_holders(job, self._arrivals.shared((*job.nodes, mine)))
        repair = Repair(job, shortage.missing, shortage.avoid)
        if not self._ask(repair, shortage.missing, shortage.alive):
            return False
        self.by_job[repair.id] = repair
        self._timeouts.add(repair, self._turn.now_ms + _CONFIRM_MS)
        return True

    def watch(self, job: Job, nodes: set[bytes]) -> None:
        """See which of these nodes confirm their copies."""
        repair = Repair(job, 0, b"")
        for node_id in nodes:
            entry = self._peers.entry(node_id)
            repair.asked[node_id] = entry.link if entry is not None else None
        self.by_job[job.id] = repair
        self._timeouts.add(repair, self._turn.now_ms + _ATTEMPTS_MAX * _CONFIRM_MS)

    def restore(self, job: Job, entry: NodeEntry) -> None:
        """Have a holder that has lost its copy keep the job again; it is the only one asked."""
        repair = Repair(job, 1, b"")
        repair.attempts = _ATTEMPTS_MAX
        self._send(repair, entry, JobCopy(job, life_s(job, self._turn.now_ms)))
        self.by_job[job.id] = repair
        self._timeouts.add(repair, self._turn.now_ms + _CONFIRM_MS)

    def withdraw(self, job_id: bytes) -> None:
        """DELJOB: the job is gone, perhaps because the node that was adding it gave up. That node
        does not know whom this one has asked for copies, so they get the message, too."""
        repair = self.by_job.get(job_id)
        if repair is not None and repair.job.state != ACKED:
            for node_id in repair.asked:
                self._peers.signal(node_id, DELJOB, job_id, 0)

    def _ask(self, repair: Repair, count: i64, alive: list[bytes]) -> bool:
        """Draw nodes, and send them the job; ``False`` if there are none."""
        job = repair.job
        drawn = self._placement.draw(job.nodes, count, repair.avoid, alive)
        if not drawn:
            return False
        repair.attempts += 1
        self._jobs.set_holders(job, self._arrivals.shared(job.nodes + tuple(drawn)))
        self._jobs.record(job)
        copy = JobCopy(job, life_s(job, self._turn.now_ms))
        for node_id in drawn:
            self._send(repair, self._membership.nodes[node_id], copy)
        self._lists.add(job, copy, len(drawn))
        return True

    def notify(self) -> None:
        """Notify the other holders of the copies of this turn."""
        self._lists.send()

    def _send(self, repair: Repair, entry: NodeEntry, copy: JobCopy) -> None:
        """Send the job to a node that is to keep it, and what its record does not hold."""
        link = repair.asked[entry.id] = entry.link
        self._peers.copy(entry.id, copy, AGAIN)
        state = self._state_of(repair.job)
        if link is not None and link.features & CAN_HEAL:
            if state.delay_ms > 0 or state.priority != PRIORITY:
                self._peers.answer(link, state)

    def _state_of(self, job: Job) -> HoldersMessage:
        """What the record of a job does not hold."""
        left_ms: i64 = 0
        if job.state == ACTIVE and job.qtime_ms != 0 and not job.backoff:
            left_ms = job.qtime_ms - self._turn.now_ms
            if job.place != DELAYED:
                left_ms -= job.retry_s * 1000
        left_ms = max(0, left_ms) if job.delay_s > 0 else 0
        message = HoldersMessage([job.id], job.nodes, left_ms, job.priority)
        message.mflags = ARRIVED
        return message

    # -- answers -----------------------------------------------------------------------------

    def confirmed(self, sender: NodeEntry, job_id: bytes) -> bool:
        """GOTJOB: whether that ends a repair."""
        repair = self.by_job.get(job_id)
        if repair is None or sender.id not in repair.asked:
            if self._unconfirmed.arrived(job_id, sender.id):
                self._late(sender, job_id)
            return False
        del repair.asked[sender.id]
        if repair.attempts:
            repair.wanted -= 1
            self._totals.copies_made += 1
            copies = i64(len(repair.job.nodes) - len(repair.asked))
            self._outbox.record_event(events.COPIED, repair.job, events.NO_REASON, copies)
        if repair.wanted <= 0 and not repair.asked:
            self._end(repair)
        return repair.attempts > 0 and repair.wanted == 0

    def _late(self, sender: NodeEntry, job_id: bytes) -> None:
        """A node confirmed that does not count any more."""
        job = self._jobs.get(job_id)
        if job is None:
            self._peers.signal(sender.id, SETACK, job_id, 0)
        else:
            self._jobs.merge_holders(job, (sender.id,))

    def run_due(self) -> i64:
        """Replace the nodes that took too long; returns how many repairs were given up."""
        given_up: i64 = 0
        for repair in self._timeouts.due(self._turn.now_ms, _TIMEOUTS_PER_TURN):
            job = repair.job
            known = self._jobs.get(job.id) is job
            if not known or (job.state != ACTIVE and job.state != QUEUED):
                self.by_job.pop(job.id, None)
            elif repair.attempts >= _ATTEMPTS_MAX or repair.wanted <= 0:
                if repair.wanted > 0:
                    given_up += 1
                    repair.wanted = 0
                if self._ask_again(repair):
                    self._timeouts.add(repair, self._turn.now_ms + _CONFIRM_MS)
                else:
                    self._end(repair)
            else:
                confirmed = [n for n in job.nodes if n not in repair.asked]
                if not self._ask(repair, repair.wanted, confirmed):
                    repair.attempts += 1
                self._timeouts.add(repair, self._turn.now_ms + _CONFIRM_MS)
        self._totals.copies_failed += given_up
        self.notify()
        return given_up

    def _ask_again(self, repair: Repair) -> bool:
        """Ask the nodes whose connection was replaced since, for nobody knows whether they have a
        copy; whether any may still confirm. One that has failed is none to wait for."""
        waiting = False
        copy = JobCopy(repair.job, life_s(repair.job, self._turn.now_ms))
        for node_id, link in list(repair.asked.items()):
            entry = self._peers.entry(node_id)
            if entry is None or entry.flags & FAIL:
                del repair.asked[node_id]
            elif entry.link is None or entry.ping_sent_ms != 0:
                waiting = True
            elif entry.link is not link:
                self._send(repair, entry, copy)
                waiting = True
        return waiting

    def _end(self, repair: Repair) -> None:
        """No more nodes are asked. Those that could have confirmed and did not have no copy: they
        answer pings on the link on which they were asked."""
        job = repair.job
        self._timeouts.remove(repair)
        self.by_job.pop(repair.id, None)
        if not repair.asked:
            return
        silent = set(repair.asked)
        left = tuple([node_id for node_id in job.nodes if node_id not in silent])
        self._jobs.set_holders(job, self._arrivals.shared(left))
        self._jobs.record(job)
        self._unconfirmed.note(job.id, silent)
