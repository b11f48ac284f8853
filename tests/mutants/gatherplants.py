"""The wrong methods of clusters that look after themselves: copies that differ from those that were
lost, and nodes that find each other by a name; see :mod:`tests.mutants.plants`."""

from __future__ import annotations

from copy import copy
from typing import Any

from disque_tx.core.adding.replication import life_s
from disque_tx.core.healing.lostnodes import ALIVE, LOST
from disque_tx.messages.bus import NOREPLY, JobCopy
from disque_tx.messages.nodes import LEAVING
from disque_tx.messages.records import ACKED


def not_beside_originals(right: Any) -> Any:
    """No copies are made of jobs that an original holds as well, as if it made them."""

    def begin(self: Any, job: Any, shortage: Any) -> bool:
        entries = [self._peers.entry(node_id) for node_id in shortage.alive]
        links = [entry.link for entry in entries if entry is not None and entry.link is not None]
        if any(link.features == 0 for link in links):
            return False
        begun: bool = right(self, job, shortage)
        return begun

    return begin


def whole_life(right: Any) -> Any:
    """A new copy lives as long as the job did from its beginning."""

    def life_s(job: Any, now_ms: int) -> int:
        return max(int(right(job, now_ms)), int(job.life_ms) // 1000)

    return life_s


def changed(**fields: Any) -> Any:
    """A new copy differs in these fields from the job."""

    def plant(right: Any) -> Any:
        def send(self: Any, repair: Any, entry: Any, record: Any) -> None:
            other = copy(record.job)
            for name, value in fields.items():
                setattr(other, name, value)
            right(self, repair, entry, JobCopy(other, record.life_s))

        return send

    return plant


def late_copy(right: Any) -> Any:
    """A job that is acknowledged is copied all the same when a holder is lost, and nobody knows of
    the copy."""

    def repair(self: Any, job: Any) -> bool:
        if job.state != ACKED or job.dummy:
            done: bool = right(self, job)
            return done
        if all(self.nodes.status(node_id) != LOST for node_id in job.nodes):
            return False
        late = copy(job)
        late.nodes = ()
        peers = self.repairs._peers
        for node_id in self.shortages._placement.draw(job.nodes, 1):
            peers.copy(node_id, JobCopy(late, int(life_s(job, self._turn.now_ms))), NOREPLY)
        return True

    return repair


def some_unaware(right: Any) -> Any:
    """Half of the nodes take one that is lost for a holder."""

    def status(self: Any, node_id: bytes) -> int:
        found: int = right(self, node_id)
        unaware = self._membership.myself.id < b"8"
        return ALIVE if found == LOST and unaware else found

    return status


def gives_to_leaving(right: Any) -> Any:
    """A node that leaves gives its jobs to others that leave as well."""

    def begin_part(self: Any) -> None:
        right(self)
        leaving = [e for e in self._membership.nodes.values() if e.flags & LEAVING and e.link]
        self.able = leaving or self.able

    return begin_part


def without_hosts(right: Any) -> Any:
    """Nodes are drawn as if each had a host of its own."""

    def refresh(self: Any) -> None:
        right(self)
        self.hosts_differ = False

    return refresh


def tried_once(right: Any) -> Any:
    """An address where nobody answered is tried no more."""

    def review(self: Any, candidate: Any, now_ms: int, node_timeout_ms: int) -> bool:
        going: bool = right(self, candidate, now_ms, node_timeout_ms)
        if candidate.attempts:
            candidate.retry_ms = now_ms + 10**9
        return going

    return review
