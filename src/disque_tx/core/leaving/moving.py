"""Where the jobs of a leaving node go.

1. A queued job moves to a node that takes jobs and, while copies are lacking, has none yet.
2. What clients of other nodes wait for has gone there before, at the end of the turn.
3. Nodes that are short of memory, or answer no PING, are left out for a while.
4. All that is found out about the nodes is remembered for one part of a walk, by list of holders.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.placement import Placement
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.getting.federation import BYTES_MAX, JOBS_MAX, Federation, Parcel
from disque_tx.core.getting.supplying import is_silent
from disque_tx.core.healing.lostnodes import ALIVE
from disque_tx.core.healing.shortages import Shortages
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.queues import Queue
from disque_tx.core.state.state import State
from disque_tx.messages.handover import HANDED_OVER
from disque_tx.messages.nodes import FAIL, PFAIL, NodeEntry

#: For how long a node that is short of memory is left out.
_FULL_MS: Final = 5_000


class Moving:
    """``able``: the nodes that can be given jobs, in this part of the walk."""

    def __init__(
        self, state: State, delivery: Delivery, federation: Federation, shortages: Shortages
    ) -> None:
        self.able: list[NodeEntry] = []
        self._turn = state.turn
        self._membership = state.membership
        self._peers = state.peers
        self._delivery = delivery
        self._federation = federation
        self._shortages = shortages
        self._placement = Placement(state.membership, state.random)
        self._full_until_ms: dict[bytes, int] = {}
        self._parcels: dict[bytes, Parcel] = {}
        self._holders: dict[tuple[bytes, ...], list[NodeEntry]] = {}
        self._next: i64 = 0

    def begin_part(self) -> None:
        """A part of the walk begins."""
        now_ms = self._turn.now_ms
        full = {node: end for node, end in self._full_until_ms.items() if end > now_ms}
        self._full_until_ms = full
        self._holders.clear()
        self.able = [
            entry
            for entry in self._membership.reachable
            if entry.ready and not is_silent(entry, now_ms) and entry.id not in full
        ]

    def is_full(self, node_id: bytes) -> None:
        """The node is short of memory."""
        self._full_until_ms[node_id] = int(self._turn.now_ms) + _FULL_MS

    # -- who has copies ----------------------------------------------------------------------

    def wanted(self, job: Job) -> i64:
        """How many other nodes are to have copies."""
        return max(1, min(i64(job.repl), self._shortages.nodes.takers))

    def holders(self, job: Job) -> list[NodeEntry]:
        """The other holders that stay and can be asked."""
        found = self._holders.get(job.nodes)
        if found is None:
            found = self._holders[job.nodes] = self._look_up(job.nodes)
        return found

    def _look_up(self, nodes: tuple[bytes, ...]) -> list[NodeEntry]:
        now_ms = self._turn.now_ms
        found: list[NodeEntry] = []
        for node_id in nodes:
            entry = self._peers.entry(node_id)
            if entry is None or entry is self._membership.myself or entry.link is None:
                continue
            if entry.flags & (FAIL | PFAIL) or is_silent(entry, now_ms):
                continue
            if self._shortages.nodes.status(node_id) == ALIVE:
                found.append(entry)
        return found

    def confirming(self, job: Job, first: NodeEntry | None) -> list[NodeEntry]:
        """The holders to ask: ``first``, and others in turn; none if there are too few of them."""
        wanted = self.wanted(job)
        chosen: list[NodeEntry] = [] if first is None else [first]
        holders = self.holders(job)
        self._next += 1
        for place in range(len(holders)):
            if len(chosen) >= wanted:
                break
            entry = holders[(self._next + place) % len(holders)]
            if entry is not first:
                chosen.append(entry)
        return chosen if len(chosen) >= wanted else []

    # -- moving ------------------------------------------------------------------------------

    def receiver(self, job: Job) -> NodeEntry | None:
        """A node that the job can go to; ``None`` if there is none."""
        size: i64 = len(self.able)
        if size == 0:
            return None
        self._next += 1
        shortage = self._shortages.of(job)
        if shortage is not None:
            if self._membership.hosts_differ:
                drawn = self._placement.draw(job.nodes, 1, shortage.avoid, shortage.alive)
                entry = self._peers.entry(drawn[0]) if drawn else None
                if entry is not None and entry in self.able:
                    return entry
            for place in range(size):
                other = self.able[(self._next + place) % size]
                if other.id not in job.nodes:
                    return other
        return self.able[self._next % size]

    def move(self, queue: Queue, receiver: NodeEntry) -> Job | None:
        """Take the oldest job out of a queue, and send it in the next parcel; ``None`` if there was
        none that is still alive."""
        job = self._delivery.fetch(queue)
        if job is None:
            return None
        parcel = self._parcels.get(receiver.id)
        if parcel is None:
            parcel = self._parcels[receiver.id] = Parcel(receiver)
            parcel.mflags = HANDED_OVER
        self._federation.put(parcel, job)
        if len(parcel.jobs) >= JOBS_MAX or parcel.size >= BYTES_MAX:
            del self._parcels[receiver.id]
            self._federation.send(parcel)
        return job

    def send(self) -> None:
        """Send the jobs that have been taken out of their queues."""
        parcels, self._parcels = self._parcels, {}
        for parcel in parcels.values():
            self._federation.send(parcel)
