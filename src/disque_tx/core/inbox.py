"""What arrives on the bus, on its way to the part of the node it is for (cluster protocol, 7).

1. Senders are checked: a link stands for one node, and never for this one.
2. PING, PONG and MEET may come from strangers; everything else only from nodes in the table.
3. What arrives most comes by :meth:`Inbox.signal` and :meth:`Inbox.copy`, without an object for
   each message, once :meth:`Inbox.sender_of` said whose it is.
4. A job that was under way when its sender made a new link may be done and forgotten by now: if it
   still matters, its sender sends it again.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy_extensions import i64

from disque_tx.core.cluster import Cluster
from disque_tx.core.counting.requests import QueueQueries
from disque_tx.core.delivery.holders import Holders
from disque_tx.core.getting.patterndemand import PatternDemand
from disque_tx.core.getting.supplying import Supplying
from disque_tx.core.leaving.evacuation import Evacuation
from disque_tx.core.nodes.duplicateids import is_replaced
from disque_tx.core.queues.pausing import Pause
from disque_tx.core.queues.queues import PAUSE_ALL
from disque_tx.core.state.state import State
from disque_tx.core.unique.keys import Keys
from disque_tx.messages.bus import (
    Gossip,
    JobSignal,
    JobsMessage,
    Message,
    NodeFailed,
    NodeForgotten,
    QueryMessage,
    QueueSignal,
)
from disque_tx.messages.bustypes import (
    CAN_HEAL,
    DELJOB,
    DEMAND,
    ENQUEUE,
    FAIL,
    FORGET,
    GOTACK,
    GOTJOB,
    HANDOVER,
    HOLDERS,
    KEY_ANSWER,
    KEY_CHECK,
    KEY_COPY,
    KEY_RESERVE,
    NEEDJOBS,
    NEEDMATCH,
    PAUSE,
    QUERY,
    QUEUED,
    REPLJOB,
    REPORT,
    SETACK,
    TABLE_CHANGE,
    TABLE_DIGEST,
    TABLE_PULL,
    WILLQUEUE,
    WORKING,
    YOURJOBS,
)
from disque_tx.messages.demands import DemandMessage
from disque_tx.messages.handover import HandoverMessage
from disque_tx.messages.holders import HoldersMessage
from disque_tx.messages.keys import KeyMessage
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.messages.records import JobRecord

Handler = Callable[[NodeEntry, Link, Message], None]


class Inbox:
    """Hands messages out."""

    def __init__(
        self,
        state: State,
        cluster: Cluster,
        holders: Holders,
        pattern_demand: PatternDemand,
        overview: QueueQueries,
        supplying: Supplying,
        *,
        keys: Keys,
        evacuation: Evacuation,
    ) -> None:
        self._turn = state.turn
        self._membership = state.membership
        self._cluster = cluster
        healing = evacuation.healing
        self._replication = healing.replication
        self._holders = holders
        self._acks = holders.acks
        self._federation = pattern_demand.federation
        self._taking = self._federation.taking
        self._exchanges = state.exchanges
        self._overview = overview
        self._pattern_demand = pattern_demand
        self._keys = keys
        self._supplying = supplying
        self._healing = healing
        self._repairs = healing.repairs
        self._unconfirmed = state.unconfirmed
        self._evacuation = evacuation
        self._pausing = state.pausing
        #: Those of nodes in the table; PING, PONG and MEET may come from strangers.
        self._handlers: dict[int, Handler] = {
            **dict.fromkeys((GOTJOB, SETACK, GOTACK, DELJOB), self._signalled),
            **dict.fromkeys((QUEUED, WORKING, WILLQUEUE, ENQUEUE), self._of_holder),
            REPLJOB: self._copied,
            YOURJOBS: self._given,
            NEEDJOBS: self._needed,
            DEMAND: self._demanded,
            HOLDERS: self._holders_changed,
            HANDOVER: self._handed_over,
            PAUSE: self._paused,
            **dict.fromkeys((TABLE_CHANGE, TABLE_DIGEST, TABLE_PULL), self._about_tables),
            NEEDMATCH: self._matching_needed,
            **dict.fromkeys((QUERY, REPORT), self._questioned),
            **dict.fromkeys((KEY_RESERVE, KEY_ANSWER, KEY_COPY, KEY_CHECK), self._about_keys),
            FAIL: self._failed,
            FORGET: self._forgotten,
        }

    def receive(self, link: Link, message: Message) -> None:
        """Take one message that came on ``link``."""
        usual = link.entry is None and message.sender == link.peer_id
        if not usual and not self._cluster.bind(link, message):
            self._cluster.refused(link, message)
            return
        if isinstance(message, Gossip):
            self._cluster.receive(link, message)
            return
        sender = self._membership.nodes.get(message.sender)
        if sender is None or not link.peer_id or link.ignored:
            return
        handle = self._handlers.get(int(message.type))
        if handle is not None:
            handle(sender, link, message)

    # -- by type -----------------------------------------------------------------------------

    def _signalled(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """GOTJOB, SETACK, GOTACK, DELJOB."""
        assert isinstance(message, JobSignal)
        self.signal(sender, message.type, message.job_id, message.aux)

    def _of_holder(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """QUEUED, WORKING, WILLQUEUE, ENQUEUE."""
        assert isinstance(message, JobSignal)
        self._holders.receive(sender, message)

    def _copied(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """REPLJOB."""
        assert isinstance(message, JobsMessage)
        if message.announced == 1 and message.jobs:
            self.copy(sender, link, message.jobs[0], message.lives_s[0], message.mflags)

    def _given(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """YOURJOBS."""
        assert isinstance(message, JobsMessage)
        self._taking.take(sender, message, is_replaced(sender, link))
        if not link.features & CAN_HEAL:
            self._healing.check_soon()

    def _needed(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """NEEDJOBS."""
        assert isinstance(message, QueueSignal)
        self._federation.give(sender, message)

    def _demanded(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """DEMAND."""
        assert isinstance(message, DemandMessage)
        self._supplying.receive(sender, link, message)

    def _holders_changed(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """HOLDERS."""
        assert isinstance(message, HoldersMessage)
        self._healing.receive(sender, message)

    def _handed_over(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """HANDOVER."""
        assert isinstance(message, HandoverMessage)
        self._evacuation.receive(sender, message)

    def _paused(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """PAUSE."""
        assert isinstance(message, QueueSignal)
        time_s = self._turn.wall_us // 1_000_000
        pause = Pause(message.aux & PAUSE_ALL, b"node " + sender.id, time_s)
        self._pausing.command(message.queue, pause)
        if self._pausing.unsaved:
            self._membership.changed = True

    def _about_tables(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """TABLE CHANGE, TABLE DIGEST, TABLE PULL."""
        self._exchanges.receive(sender, message, self._turn.wall_us // 1_000_000)

    def _matching_needed(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """NEEDMATCH."""
        assert isinstance(message, QueryMessage)
        self._pattern_demand.give(sender, message)

    def _questioned(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """QUERY, REPORT."""
        assert isinstance(message, QueryMessage)
        self._overview.receive(sender, message)

    def _about_keys(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """KEY RESERVE, KEY ANSWER, KEY COPY, KEY CHECK."""
        assert isinstance(message, KeyMessage)
        self._keys.receive(sender, message)

    def _failed(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """FAIL."""
        assert isinstance(message, NodeFailed)
        self._cluster.failed(message)

    def _forgotten(self, sender: NodeEntry, link: Link, message: Message) -> None:
        """FORGET."""
        assert isinstance(message, NodeForgotten)
        self._cluster.forgotten(message)

    # -- without objects ---------------------------------------------------------------------

    def sender_of(self, link: Link) -> NodeEntry | None:
        """The node in the table whose messages about jobs are taken on a link that it made, and on
        which it has sent something before; ``None`` if there is none."""
        if link.entry is not None or not link.peer_id or link.ignored:
            return None
        return self._membership.nodes.get(link.peer_id)

    def signal(self, sender: NodeEntry, kind: i64, job_id: bytes, aux: i64) -> bool:
        """Take GOTJOB, SETACK, GOTACK or DELJOB of a node that may send it; ``False`` for any other
        message."""
        if kind == GOTJOB:
            self._replication.confirmed(sender, job_id)
            if self._repairs.by_job or self._unconfirmed.nodes:
                self._healing.confirmed(sender, job_id)
            if self._evacuation.active:
                self._evacuation.confirmations.confirmed(sender, job_id)
        elif kind == SETACK:
            self._acks.set(sender, job_id, aux)
        elif kind == GOTACK:
            self._acks.confirmed(sender, job_id, aux)
        elif kind == DELJOB:
            if self._repairs.by_job:
                self._repairs.withdraw(job_id)
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
