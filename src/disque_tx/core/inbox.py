"""What arrives on the bus, on its way to the part of the node it is for (cluster protocol, 7).

1. Senders are checked: a link stands for one node, and never for this one.
2. PING, PONG and MEET may come from strangers; everything else only from nodes in the table.
3. What arrives most comes by :meth:`Inbox.signal` and :meth:`Inbox.copy`, without an object for
   each message, once :meth:`Inbox.speaker` said whose it is.
4. A job that was under way when its sender made a new link may be done and forgotten by now: if it
   still matters, its sender sends it again.
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.adding.replication import Replication
from disque_tx.core.cluster import Cluster
from disque_tx.core.counting.requests import QueueQueries
from disque_tx.core.delivery.holders import Holders
from disque_tx.core.getting.patterndemand import PatternDemand
from disque_tx.core.nodes.duplicateids import is_replaced
from disque_tx.core.queues.pausing import Pause
from disque_tx.core.queues.queues import PAUSE_ALL
from disque_tx.core.state.state import State
from disque_tx.core.unique.keys import Keys
from disque_tx.messages.bus import (
    DELJOB,
    GOTACK,
    GOTJOB,
    NEEDJOBS,
    NEEDMATCH,
    REPLJOB,
    SETACK,
    Gossip,
    JobSignal,
    JobsMessage,
    Message,
    NodeFailed,
    QueryMessage,
    QueueSignal,
)
from disque_tx.messages.keys import KeyMessage
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.messages.records import JobRecord
from disque_tx.messages.tables import TableChange, TableDigest, TablePull


class Inbox:
    """Hands messages out."""

    def __init__(
        self,
        state: State,
        cluster: Cluster,
        replication: Replication,
        holders: Holders,
        pattern_demand: PatternDemand,
        overview: QueueQueries,
        *,
        keys: Keys,
    ) -> None:
        self._turn = state.turn
        self._membership = state.membership
        self._cluster = cluster
        self._replication = replication
        self._holders = holders
        self._acks = holders.acks
        self._federation = pattern_demand.federation
        self._exchanges = state.exchanges
        self._overview = overview
        self._pattern_demand = pattern_demand
        self._keys = keys
        self._pausing = state.pausing

    def receive(self, link: Link, message: Message) -> None:
        """Take one message that came on ``link``."""
        wall_us = self._turn.wall_us
        usual = link.entry is None and message.sender == link.speaker
        if not usual and not self._cluster.bind(link, message):
            self._cluster.refused(link, message)
            return
        if isinstance(message, Gossip):
            self._cluster.receive(link, message)
            return
        sender = self._membership.nodes.get(message.sender)
        if sender is None or not link.speaker or link.muted:
            return
        if isinstance(message, JobSignal):
            if not self.signal(sender, message.type, message.job_id, message.aux):
                self._holders.receive(sender, message)
        elif isinstance(message, JobsMessage):
            if message.type != REPLJOB:
                late = is_replaced(sender, link)
                self._federation.take(sender, message, late)
            elif message.announced == 1 and message.jobs:
                record, life_s = message.jobs[0], message.lives_s[0]
                mflags = message.mflags
                self.copy(sender, link, record, life_s, mflags)
        elif isinstance(message, QueueSignal):
            if message.type == NEEDJOBS:
                self._federation.give(sender, message)
            else:
                pause = Pause(message.aux & PAUSE_ALL, b"node " + sender.id, wall_us // 1_000_000)
                self._pausing.command(message.queue, pause)
                if self._pausing.unsaved:
                    self._membership.changed = True
        elif isinstance(message, TableChange | TableDigest | TablePull):
            self._exchanges.receive(sender, message, wall_us // 1_000_000)
        elif isinstance(message, QueryMessage):
            if message.type == NEEDMATCH:
                self._pattern_demand.give(sender, message)
            else:
                self._overview.receive(sender, message)
        elif isinstance(message, KeyMessage):
            self._keys.receive(sender, message)
        elif isinstance(message, NodeFailed):
            self._cluster.failed(message)

    def speaker(self, link: Link) -> NodeEntry | None:
        """The node in the table whose messages about jobs are taken on a link that it made, and on
        which it has sent something before; ``None`` if there is none."""
        if link.entry is not None or not link.speaker or link.muted:
            return None
        return self._membership.nodes.get(link.speaker)

    def signal(self, sender: NodeEntry, kind: i64, job_id: bytes, aux: i64) -> bool:
        """Take GOTJOB, SETACK, GOTACK or DELJOB of a node that may send it; ``False`` for any other
        message."""
        if kind == GOTJOB:
            self._replication.confirmed(sender, job_id)
        elif kind == SETACK:
            self._acks.set(sender, job_id, aux)
        elif kind == GOTACK:
            self._acks.confirmed(sender, job_id, aux)
        elif kind == DELJOB:
            self._acks.deleted(sender, job_id)
        else:
            return False
        return True

    def copy(
        self,
        sender: NodeEntry,
        link: Link,
        record: JobRecord,
        life_s: i64,
        mflags: i64,
    ) -> None:
        """Take REPLJOB of a node that may send it."""
        if not is_replaced(sender, link):
            self._replication.keep(sender, record, life_s, mflags)
