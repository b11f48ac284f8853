"""Who has jobs that get new copies: the lists that the other holders get.

Many jobs have the same holders, and those of lost nodes get new copies one after the other. So a
list is sent once for all jobs of a turn. Nodes that take no list of several jobs get one message
for each, and originals, which know no such lists, get the job.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import PRIORITY
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bus import NOREPLY, JobCopy
from disque_tx.messages.bustypes import CAN_HEAL, CAN_LIST
from disque_tx.messages.holders import HoldersMessage
from disque_tx.messages.nodes import Link
from disque_tx.messages.records import JobRecord

#: Jobs in one message, of which a receiver looks up each.
_JOBS_MAX: Final = 200


class _List:
    """The jobs of one list. ``links``: of the holders that get it for all of them at once.
    ``single``: of those that get it for each job. ``originals``: IDs of those that get the jobs.
    ``drawn``: how many nodes, the last ones, have just been asked for a copy."""

    __slots__ = ("drawn", "holders", "job_ids", "links", "originals", "single")

    def __init__(self, holders: tuple[bytes, ...], drawn: i64) -> None:
        self.holders = holders
        self.drawn: i64 = drawn
        self.job_ids: list[bytes] = []
        self.links: list[Link] = []
        self.single: list[Link] = []
        self.originals: list[bytes] = []


class HolderLists:
    """Collects the lists of a turn. They must be sent before anything else about the jobs."""

    __slots__ = ("_by_holders", "_membership", "_peers")

    def __init__(self, peers: Peers, membership: Membership) -> None:
        self._peers = peers
        self._membership = membership
        self._by_holders: dict[tuple[bytes, ...], _List] = {}

    def add(self, job: JobRecord, copy: JobCopy, drawn: i64) -> None:
        """The last ``drawn`` nodes of the job's list get copies; the others are notified. A node of
        ours gets nothing but the list, and cannot take it for a job that it has just forgotten
        because it is done."""
        found = self._by_holders.get(job.nodes)
        if found is None or found.drawn != drawn:
            if found is not None:
                self._send(found)
            found = self._by_holders[job.nodes] = self._begin(job.nodes, drawn)
        for link in found.single:
            self._peers.answer(link, _message([job.id], found.holders))
        for node_id in found.originals:
            self._peers.copy(node_id, copy, NOREPLY)
        if found.links:
            found.job_ids.append(job.id)
            if len(found.job_ids) == _JOBS_MAX:
                self._send(found)

    def _begin(self, holders: tuple[bytes, ...], drawn: i64) -> _List:
        found = _List(holders, drawn)
        mine = self._membership.myself.id
        for node_id in holders[: len(holders) - drawn]:
            entry = self._peers.entry(node_id)
            if node_id == mine or entry is None or entry.link is None:
                continue
            features = entry.link.features
            if features & CAN_LIST:
                found.links.append(entry.link)
            elif features & CAN_HEAL:
                found.single.append(entry.link)
            elif features == 0:
                found.originals.append(node_id)
        return found

    def send(self) -> None:
        """Send what was collected."""
        for found in self._by_holders.values():
            self._send(found)
        self._by_holders.clear()

    def _send(self, found: _List) -> None:
        if found.job_ids:
            for link in found.links:
                self._peers.answer(link, _message(found.job_ids, found.holders))
            found.job_ids = []


def _message(job_ids: list[bytes], holders: tuple[bytes, ...]) -> HoldersMessage:
    return HoldersMessage(job_ids, holders, 0, PRIORITY)
