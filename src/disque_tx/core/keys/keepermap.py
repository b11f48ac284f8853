"""The keepers of keys as this node sees them, and passing keys on when the keepers change.

1. Two nodes keep each key, its keepers: those that rank first and second among the nodes of ours
   that can be reached (see ``owners``). Who adds a job asks both, so two nodes whose views differ
   by one node have a keeper in common.
2. When the view changes, every node sends what it knows of a key to those keepers that it did not
   have before: in parts, then a message that this was all (``LAST``).
3. A node does not answer for keys while it waits for that message of a node that has just become
   reachable, for up to :data:`SYNC_MS`. So one that was away has what was reserved meanwhile before
   it answers.
4. Who makes a new link asks for what concerns it (``ASK``): the other side may not have noticed
   that there was none.
5. A node that becomes reachable also gets the jobs that are done since it was last known to be:
   what it knows of their keys is out of date.
6. Nor does a node answer for keys while members may not be reached yet that keep them (see
   ``joining``). One that stood still asks all for what concerns it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.core.base.slices import SlicedTask, SlicedWork
from disque_tx.core.jobs.job import made_by
from disque_tx.core.keys.done import DoneJobs
from disque_tx.core.keys.joining import SYNC_MS, Joining
from disque_tx.core.keys.keycopies import KeyCopies
from disque_tx.core.keys.owners import Owners, ranking
from disque_tx.core.keys.reservation import Reservations, left
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bustypes import CAN_KEYS, KEY_COPY
from disque_tx.messages.keys import ASK, DONE, ENTRIES_MAX, FREE, LAST, KeyMessage
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.messages.records import KeyEntry

#: Messages to a node may have been lost for so long before it was found to be unreachable.
_UNNOTICED_MS: Final = 30_000
#: How many nodes keep a key.
KEEPERS: Final = 2
#: How many are notified that a key is free: views may differ.
NOTIFIED: Final = 3
#: Keys that are looked at in one part of passing them on.
_KEYS_PER_PART: Final = 200


class KeeperMap:
    """``nodes``: IDs of the nodes that keep keys, in the order of the node table. ``changes``: how
    often they have changed."""

    __slots__ = (
        "_asks",
        "_awaited",
        "_done_jobs",
        "_joining",
        "_leaving",
        "_links",
        "_lost_ms",
        "_membership",
        "_owners",
        "_passed",
        "_passing",
        "_peers",
        "_reservations",
        "_slices",
        "_turn",
        "changes",
        "nodes",
    )

    def __init__(
        self,
        turn: Turn,
        membership: Membership,
        peers: Peers,
        reservations: Reservations,
        done_jobs: DoneJobs,
        slices: SlicedWork,
    ) -> None:
        self.nodes: list[bytes] = [membership.myself.id]
        self.changes: i64 = 0
        self._turn: Turn = turn
        self._membership: Membership = membership
        self._peers: Peers = peers
        self._reservations: Reservations = reservations
        self._done_jobs: DoneJobs = done_jobs
        self._slices: SlicedWork = slices
        self._owners = Owners()
        # By node, the link to it that is in use.
        self._links: dict[bytes, Link] = {}
        # By node whose keys are awaited, since when.
        self._awaited: dict[bytes, int] = {}
        # Nodes that are still to be asked for what concerns this one.
        self._asks: set[bytes] = set()
        # The nodes to which all keys that concern them were passed on.
        self._passed: list[bytes] = [membership.myself.id]
        self._passing: _Passing | None = None
        # By node that was reachable once, when it was found to be so no more.
        self._lost_ms: dict[bytes, int] = {}
        self._joining: Joining = Joining(turn, membership)
        # Whether this node was leaving at the last look.
        self._leaving: bool = False

    def alone(self) -> bool:
        """Whether no other node keeps keys."""
        return len(self.nodes) < 2

    def refresh(self) -> None:
        """Notice nodes that came or went; to be called whenever it matters."""
        now_ms = self._turn.now_ms
        membership = self._membership
        joining = self._joining
        joining.begin()
        if len(membership.nodes) < 2 and not self._links:
            if self.nodes[0] is not membership.myself.id:
                self.nodes = self._passed = [membership.myself.id]
            return
        leaving = membership.leaving
        stood_still = joining.stood_still()
        if not stood_still and leaving == self._leaving and self._as_before():
            return
        links = {entry.id: link for entry, link in self._keeping()}
        if stood_still:
            joining.begin_again()
            for node_id in links:
                self._awaited[node_id] = int(now_ms)
                self._peers.send(node_id, KeyMessage(KEY_COPY, 0, ASK, []))
        if links == self._links and leaving == self._leaving:
            return
        if self._leaving and not leaving:
            self._asks.update(links)  # they have looked after keys without this node
            for node_id in links:
                self._awaited[node_id] = int(now_ms)
        self._leaving = leaving
        for node_id, link in links.items():
            if self._links.get(node_id) is not link:
                self._awaited[node_id] = int(now_ms)
                self._asks.add(node_id)
                self._not_passed(node_id)
        for node_id in self._links:
            if node_id not in links:
                self._lost_ms[node_id] = int(now_ms)
        for node_id in list(self._awaited):
            if node_id not in links:
                del self._awaited[node_id]
        if links and not self._links:
            joining.begin_again()
        self._links = links
        mine = membership.myself.id
        # A leaving node keeps keys only while no other node can.
        self.nodes = list(links) if leaving and links else [mine, *links]
        self.changes += 1
        self._pass_on()

    def _keeping(self) -> list[tuple[NodeEntry, Link]]:
        """The other nodes that keep keys, and the links to them."""
        membership = self._membership
        if not membership.features & CAN_KEYS:
            return []
        return [
            (entry, entry.link)
            for entry in membership.reachable
            if entry.link is not None and entry.link.features & CAN_KEYS
        ]

    def _as_before(self) -> bool:
        """Whether they are the same as at the last look: this is asked for every job."""
        membership = self._membership
        count: i64 = 0
        if membership.features & CAN_KEYS:
            for entry in membership.reachable:
                link = entry.link
                if link is not None and link.features & CAN_KEYS:
                    if self._links.get(entry.id) is not link:
                        return False
                    count += 1
        return count == len(self._links)

    def _not_passed(self, node_id: bytes) -> None:
        self._passed = [node for node in self._passed if node != node_id]

    def _pass_on(self) -> None:
        if self._passing is not None:
            self._passing.stop()
        before = self._passed
        new = [node for node in self.nodes if node in self._links and node not in before]
        self._passing = _Passing(self._turn, self, self._peers, self._reservations, before, new)
        self._slices.add(self._passing)

    def passed_on(self, new: list[bytes]) -> None:
        """All keys that concern the nodes of the view were sent to them."""
        for node_id in new:
            status = LAST | ASK if node_id in self._asks else LAST
            self._asks.discard(node_id)
            self._peers.send(node_id, KeyMessage(KEY_COPY, 0, status, []))
        self._passed = self.nodes
        self._passing = None

    def done_since_lost(self, node_id: bytes) -> list[bytes]:
        """IDs of jobs that are done, which the node may not know."""
        lost_ms = self._lost_ms.get(node_id, 0)
        return self._done_jobs.since(lost_ms - _UNNOTICED_MS) if self._done_jobs else []

    def received_all(self, sender: bytes, status: i64) -> None:
        """``LAST``, ``ASK``: flags of a KEY COPY."""
        if status & LAST:
            self._awaited.pop(sender, 0)
        if status & ASK and sender in self._links:
            self._not_passed(sender)
            self._pass_on()

    def ready(self) -> bool:
        """Whether this node may answer for keys."""
        now_ms = self._turn.now_ms
        if self._joining.is_under_way():
            return False
        if self._awaited:
            for since_ms in self._awaited.values():
                if now_ms - since_ms < SYNC_MS:
                    return False
        return True

    def keepers(self, key: bytes) -> list[bytes]:
        """The keepers of the key, in the order in which they are asked."""
        if len(self.nodes) < 2:
            return self.nodes
        return self._owners.ranking(key, self.nodes)[:KEEPERS]

    def notified(self, key: bytes) -> list[bytes]:
        """The other nodes that are notified that a key is free."""
        mine = self._membership.myself.id
        if len(self.nodes) < 2:
            return []
        ranked = self._owners.ranking(key, self.nodes)[:NOTIFIED]
        return [node for node in ranked if node != mine]

    def missing(self) -> bool:
        """Whether there are members that cannot be asked about keys."""
        return self._membership.size > len(self._links) + 1

    def others(self) -> list[bytes]:
        """The other nodes of ours that can be reached."""
        return list(self._links)

    def has_maker(self, job_id: bytes) -> bool:
        """Whether the node that made the job can be reached."""
        if made_by(self._membership.myself.id, job_id):
            return True
        return any(made_by(node_id, job_id) for node_id in self._links)


class _Passing(SlicedTask):
    """Passes on what new keepers do not have. ``before``: the nodes that have what concerns them;
    ``new``: those that wait for ``LAST``, and get to know first which jobs are done."""

    __slots__ = (
        "_at",
        "_before",
        "_copies",
        "_done",
        "_keys",
        "_new",
        "_reservations",
        "_stopped",
        "_turn",
        "_view",
    )

    def __init__(
        self,
        turn: Turn,
        view: KeeperMap,
        peers: Peers,
        reservations: Reservations,
        before: list[bytes],
        new: list[bytes],
    ) -> None:
        self._turn: Turn = turn
        self._view: KeeperMap = view
        self._copies: KeyCopies = KeyCopies(peers)
        self._reservations: Reservations = reservations
        self._before: list[bytes] = before
        self._new: list[bytes] = new
        self._done: list[tuple[bytes, list[bytes]]] = [
            (node_id, view.done_since_lost(node_id)) for node_id in new
        ]
        self._keys: list[bytes] = list(reservations.by_key)
        self._at: i64 = 0
        self._stopped: bool = False

    def stop(self) -> None:
        """Stop sending these entries, because others must be sent now."""
        self._stopped = True

    def step(self, now_ms: i64) -> bool:
        """Look at some keys."""
        if self._stopped:
            return True
        if self._done:
            self._send_done()
            return False
        end = min(self._at + _KEYS_PER_PART, len(self._keys))
        while self._at < end:
            self._sort(self._keys[self._at])
            self._at += 1
        self._copies.send()
        if self._at < len(self._keys):
            return False
        self._view.passed_on(self._new)
        return True

    def _send_done(self) -> None:
        """Send some of the jobs that are done to one node."""
        node_id, job_ids = self._done[-1]
        part = job_ids[-ENTRIES_MAX:]
        del job_ids[-ENTRIES_MAX:]
        if not job_ids:
            self._done.pop()
        for job_id in part:
            self._copies.add(node_id, DONE, KeyEntry(b"", job_id, FREE, 0, 0, 0))
        self._copies.send()

    def _sort(self, key: bytes) -> None:
        now_ms = self._turn.now_ms
        found = self._reservations.get(key)
        if found is None:
            return
        view = self._view
        before = ranking(key, self._before)[:KEEPERS]
        for node_id in view.keepers(key):
            if node_id in before or node_id not in view.others():
                continue
            self._copies.add(node_id, 0, left(found, now_ms))
