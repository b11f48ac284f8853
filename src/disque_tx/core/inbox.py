"""What arrives on the bus, on its way to the part of the node it is for (cluster protocol, 7).

1. Senders are checked: a link stands for one node, and never for this one.
2. PING, PONG and MEET may come from strangers; everything else only from nodes in the table.
3. A job that was under way when its sender made a new link may be done and forgotten by now: if it
   still matters, its sender sends it again.
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.busmessages import (
    DELJOB,
    GOTACK,
    GOTJOB,
    NEEDJOBS,
    REPLJOB,
    SETACK,
    Gossip,
    JobSignal,
    JobsMessage,
    Message,
    NodeFailed,
    QueueSignal,
)
from disque_tx.core.acks import Acks
from disque_tx.core.cluster import Cluster
from disque_tx.core.federation import Federation
from disque_tx.core.holders import Holders
from disque_tx.core.queues import PAUSE_ALL
from disque_tx.core.replication import Replication
from disque_tx.core.state import State
from disque_tx.core.twins import is_replaced
from disque_tx.nodetable import Link, NodeEntry


class Inbox:
    """Hands messages out."""

    def __init__(
        self,
        state: State,
        cluster: Cluster,
        replication: Replication,
        holders: Holders,
        acks: Acks,
        federation: Federation,
    ) -> None:
        self._membership = state.membership
        self._cluster = cluster
        self._replication = replication
        self._holders = holders
        self._acks = acks
        self._federation = federation
        self._outbox = state.outbox
        self._queues = state.queues
        self._waiters = state.waiters

    def receive(self, link: Link, message: Message, now_ms: i64, wall_us: i64) -> None:
        """Take one message that came on ``link``."""
        usual = link.entry is None and message.sender == link.speaker
        if not usual and not self._cluster.bind(link, message):
            self._cluster.refused(link, message, now_ms)
            return
        if isinstance(message, Gossip):
            self._cluster.receive(link, message, now_ms)
            return
        sender = self._membership.nodes.get(message.sender)
        if sender is None or not link.speaker or link.muted:
            return
        if isinstance(message, JobSignal):
            self._job(sender, message, now_ms)
        elif isinstance(message, JobsMessage):
            late = is_replaced(sender, link)
            if message.type != REPLJOB:
                self._federation.take(sender, message, late, now_ms, wall_us)
            elif not late:
                self._replication.keep(sender, message, now_ms, wall_us)
        elif isinstance(message, QueueSignal):
            if message.type == NEEDJOBS:
                self._federation.give(sender, message, now_ms)
            else:
                self.pause(message.queue, message.aux & PAUSE_ALL, now_ms)
        elif isinstance(message, NodeFailed):
            self._cluster.failed(message, now_ms)

    def _job(self, sender: NodeEntry, message: JobSignal, now_ms: i64) -> None:
        kind = message.type
        if kind == GOTJOB:
            self._replication.confirmed(sender, message, now_ms)
        elif kind == SETACK:
            self._acks.set(sender, message, now_ms)
        elif kind == GOTACK:
            self._acks.confirmed(sender, message)
        elif kind == DELJOB:
            self._acks.deleted(sender, message)
        else:
            self._holders.receive(sender, message, now_ms)

    def pause(self, name: bytes, flags: i64, now_ms: i64) -> None:
        """Set the pause flags of a queue, which is made if there are any (section 11.6)."""
        queue = self._queues.get(name)
        if queue is None:
            if flags == 0:
                return
            queue = self._queues.obtain(name, now_ms)
        queue.paused = flags
        if self._outbox.events is not None:
            self._outbox.events.paused(name, flags)
        self._waiters.note_ready(queue)
