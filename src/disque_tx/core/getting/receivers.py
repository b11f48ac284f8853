"""The nodes that are told what this node can use, and what each of them is to be told at the end of
the turn (cluster protocol, section 21.8).
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.nodes.links import LinkWatcher
from disque_tx.core.queues.standing import Grant, StandingDemand
from disque_tx.core.state.state import State
from disque_tx.messages.bustypes import CAN_DEMAND
from disque_tx.messages.demands import (
    ENTRIES_MAX,
    RESET,
    WORDS_BYTES_MAX,
    DemandEntry,
    DemandMessage,
)
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.nodes import HANDSHAKE, MYSELF, Link, NodeEntry


class Receiver:
    """A node that is told. ``era``: another one with each connection in either direction, for what
    was sent before may be lost. ``entries``: what is to be sent. ``reset``: all that the node was
    told is void; ``told``: it may know of something."""

    __slots__ = ("entries", "entry", "era", "link", "newest_link", "reset", "told")

    def __init__(self, entry: NodeEntry, link: Link, era: i64) -> None:
        self.entry: NodeEntry = entry
        self.link: Link = link
        self.newest_link: i64 = entry.newest_link
        self.era: i64 = era
        self.entries: list[DemandEntry] = []
        self.reset: bool = True
        self.told: bool = False


class Receivers(LinkWatcher):
    """``by_id``: the nodes that are told. ``stopped``: this node can use nothing, because it
    leaves, is full, or another process has its ID. ``renewed``: nodes have to be told
    everything, until this is read. ``unsent``: there is something to send."""

    def __init__(self, state: State) -> None:
        self.by_id: dict[bytes, Receiver] = {}
        self.stopped: bool = False
        self.renewed: bool = False
        self.unsent: bool = False
        self._turn = state.turn
        self._membership = state.membership
        self._memory = state.memory
        self._peers = state.peers
        self._waiters = state.waiters
        self._eras: i64 = 0

    def links_changed(self) -> None:
        """Notice nodes that came or went, and whether this node may have jobs."""
        membership = self._membership
        stopped = membership.leaving or membership.identity.suspended or self._memory.is_full()
        found: dict[bytes, Receiver] = {}
        new = self.stopped and not stopped
        if membership.features & CAN_DEMAND:
            for entry in membership.nodes.values():
                receiver = self._receiver(entry)
                if receiver is not None:
                    found[entry.id] = receiver
                    if self.by_id.get(entry.id) is not receiver:
                        new = True
        self.by_id = found
        self._waiters.demanding = bool(found)
        if stopped and not self.stopped:
            self.void_all()
        self.stopped = stopped
        if new and found and not stopped:
            self.renewed = True

    def is_closed(self) -> bool:
        """Whether this node can use nothing now."""
        return self.stopped or self._memory.is_full()

    def _receiver(self, entry: NodeEntry) -> Receiver | None:
        """The node as one that is told, if it can be: it knows DEMAND, and has a link to this
        node, on which jobs come."""
        link = entry.link
        if link is None or entry.flags & (MYSELF | HANDSHAKE) or entry.newest_link == 0:
            return None
        if not link.features & CAN_DEMAND:
            return None
        known = self.by_id.get(entry.id)
        if known is not None and known.link is link and known.newest_link == entry.newest_link:
            return known
        self._eras += 1
        receiver = Receiver(entry, link, self._eras)
        receiver.told = known is not None and known.told and known.link is link
        return receiver

    def void_all(self) -> None:
        """All that other nodes were told is void."""
        for receiver in self.by_id.values():
            self._eras += 1
            receiver.era = self._eras
            receiver.entries = []
            receiver.reset = True
        self.unsent = bool(self.by_id)

    # -- what to tell ------------------------------------------------------------------------

    def grant(
        self,
        standing: StandingDemand,
        receiver: Receiver,
        words: list[bytes],
        credit: i64,
        waiting: i64,
        since_ms: i64,
    ) -> None:
        """Tell a node, if it knows of no more than half of this. ``since_ms``: since when the first
        client has waited."""
        node_id = receiver.entry.id
        grant = standing.grants.get(node_id)
        if grant is None or grant.era != receiver.era:
            grant = standing.grants[node_id] = Grant(receiver.era)
        waiting = min(waiting, credit)
        if credit > 0 and (grant.credit * 2 <= credit or grant.waiting * 2 < waiting):
            grant.credit = credit
            grant.waiting = waiting
            age_ms = min(max(self._turn.now_ms - since_ms, 0), U32_MAX)
            receiver.entries.append(DemandEntry(words, credit, waiting, age_ms))
            self.unsent = True

    def withdraw(self, standing: StandingDemand, words: list[bytes]) -> None:
        """End a demand at all nodes that know it, those among them that gave all that they were
        asked for: a job that was under way when more was demanded counts at one of both only, and
        they remember each queue until its demand ends."""
        for node_id, grant in standing.grants.items():
            receiver = self.by_id.get(node_id)
            if receiver is not None and grant.era == receiver.era:
                receiver.entries.append(DemandEntry(words, 0, 0, 0))
                self.unsent = True
        standing.grants.clear()

    def send(self) -> None:
        """One message for each node that has to be told; what is too much follows in the next
        turns."""
        self.unsent = False
        for receiver in self.by_id.values():
            entries = receiver.entries
            if not entries and not (receiver.reset and receiver.told):
                continue
            if receiver.entry.link is not receiver.link:
                continue
            number = 0
            size: i64 = 0
            while number < len(entries) and number < ENTRIES_MAX and size < WORDS_BYTES_MAX:
                for word in entries[number].words:
                    size += len(word)
                number += 1
            message = DemandMessage(entries[:number])
            if receiver.reset:
                message.mflags = RESET
                receiver.reset = receiver.told = False
            if number > 0:
                receiver.told = True
            receiver.entries = entries[number:]
            if receiver.entries:
                self.unsent = True
            self._peers.answer(receiver.link, message)
