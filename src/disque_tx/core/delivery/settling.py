"""The end of a job that two nodes hold, one of which gave it to the other (cluster protocol,
section 21.13).

A job that was added with one copy, and went to a client at another node, has two holders: the node
that gave it keeps its copy for the case that the other one is lost. When the client acknowledges
the job, three messages are due: SETACK, GOTACK, and DELJOB once all holders have confirmed. Between
two nodes of ours the answer to the first one can be the last:

1. SETACK says that its sender knows of no third node that may hold the job.
2. If the receiver knows of none either, nobody else can have it, or get it: the receiver forgets
   the job at once, and says so in GOTACK.
3. The sender forgets the job when it gets that. Until then it sends SETACK again and again.

Otherwise both go on as :mod:`disque_tx.core.delivery.acks` says.
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import Job
from disque_tx.core.state.state import State
from disque_tx.messages.bus import FORGOTTEN, ONLY_US
from disque_tx.messages.bustypes import CAN_SETTLE, GOTACK, SETACK
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import ACTIVE, QUEUED


class Settling:
    """Both sides of it."""

    def __init__(self, state: State, delivery: Delivery) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._membership = state.membership
        self._peers = state.peers
        self._handovers = state.handovers
        self._delivery = delivery

    def begin(self, job: Job) -> bool:
        """Send SETACK for an acknowledged job to its other holder; ``False`` if there may be more
        of them, or it does not know this way, or cannot be reached."""
        other = self._other_holder(job)
        if not other or not self._peers.knows(other, CAN_SETTLE):
            return False
        # A client may have deleted the job here, and another node have brought it back since.
        job_id = job.id
        self._handovers.done(job_id, self._turn.now_ms, other)
        self._peers.signal(other, SETACK, job_id, 2 | ONLY_US)
        return True

    def _other_holder(self, job: Job) -> bytes:
        """The one node that may hold the job besides this one; empty if there may be others. With
        more copies the node that made it may still look for holders."""
        nodes = job.nodes
        if len(nodes) != 2 or job.repl != 1:
            return b""
        mine = self._membership.myself.id
        if nodes[0] == mine:
            return nodes[1]
        return nodes[0] if nodes[1] == mine else b""

    def requested(self, sender: NodeEntry, job: Job, job_id: bytes) -> bool:
        """The sender of SETACK knows of no third holder; ``False`` if this node does, or collects
        acknowledgements of the job itself."""
        if self._other_holder(job) != sender.id:
            return False
        if job.state == QUEUED:
            self._delivery.dequeue(job)
        elif job.state != ACTIVE:
            return False
        self._jobs.acknowledge(job)
        self._handovers.done(job_id, self._turn.now_ms, sender.id)
        self._delivery.remove(job)
        self._peers.signal(sender.id, GOTACK, job_id, FORGOTTEN)
        return True

    def is_settled(self, sender: NodeEntry, job: Job, aux: i64) -> bool:
        """Whether GOTACK with this ``aux`` says that no other node has the job any more."""
        return aux == FORGOTTEN and self._other_holder(job) == sender.id
