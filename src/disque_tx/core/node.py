"""The node: one method per input; everything it wants done goes to the outbox.

It knows no clock: :meth:`Node.begin` sets the time of a turn, and everything that happens in
the turn happens at that time. ``now_ms`` is a steady clock on which all deadlines lie; ``wall_us``
is the time of day that creation times and expiry times on disk are made of. They only meet where a
job comes from the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.adding import Adding
from disque_tx.core.adding.fanout import Fanout
from disque_tx.core.adding.replication import Replication
from disque_tx.core.awakening import Awakening
from disque_tx.core.base.client import Client
from disque_tx.core.base.part import Part
from disque_tx.core.base.parts import Parts
from disque_tx.core.cluster import Cluster
from disque_tx.core.counting.requests import QueueQueries
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.delivery.backoff import RetryBackoff
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.delivery.holders import Holders
from disque_tx.core.delivery.overflow import Overflow
from disque_tx.core.delivery.serving import Serving
from disque_tx.core.getting.demanding import Demanding
from disque_tx.core.getting.federation import Federation
from disque_tx.core.getting.getting import GetRequest, Getting
from disque_tx.core.getting.leases import ListenerLeases
from disque_tx.core.getting.supplying import Supplying
from disque_tx.core.getting.taking import Taking
from disque_tx.core.getting.unblocking import Unblocking, leaving
from disque_tx.core.healing.healing import Healing
from disque_tx.core.inbox import Inbox
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.leaving.evacuation import Evacuation
from disque_tx.core.leaving.takeovers import Takeovers
from disque_tx.core.nodes.duplicateids import identity_conflict_error
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.queues.pausing import Pause
from disque_tx.core.recurring.recurring import Recurring
from disque_tx.core.redelivery.deadletters import DeadLetterMaker
from disque_tx.core.redelivery.moves import MoveRequest, Moves
from disque_tx.core.redelivery.replacements import Replacements
from disque_tx.core.redelivery.retries import BY_POLICY, Retries
from disque_tx.core.state.state import State
from disque_tx.core.unique.keys import Keys
from disque_tx.errors import CommandError
from disque_tx.messages import bustypes
from disque_tx.messages.bus import Bulk, Message, QueueSignal
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.messages.records import IdSource, JobRecord

#: Jobs and clients handled per call, so that no turn grows with what is stored.
DUE_PER_TURN: Final = 2_000


class Node:
    """One node. ``random``: a number in [0, 1) per call. ``state``: what its parts share.
    ``receiving``: more messages follow that arrived together; clients are served after them."""

    def __init__(self, membership: Membership, ids: IdSource, random: Callable[[], float]) -> None:
        self.state = state = State(membership, random)
        self.turn = state.turn
        self.receiving: bool = False
        self.membership = membership
        self.random = random
        self.outbox = state.outbox
        self.memory = state.memory
        self.totals = state.totals
        self.policies = state.policies
        self.policy_table = state.policy_table
        self.exchange = state.exchanges.policies
        self.timetable = state.timetable
        self.queues = state.queues
        self.jobs = state.jobs
        self.waiters = state.waiters
        self.peers = state.peers
        shared = (state.turn, membership, state.peers, state.outbox, random)
        self.cluster = Cluster(*shared, tables=state.exchanges, keys=state.key_view)
        self.delivery = Delivery(state)
        arrivals = Arrivals(state, self.delivery)
        self.replication = Replication(state, self.delivery, arrivals)
        self.acks = Acks(state, self.delivery)
        self.demanding = Demanding(state)
        sharing = (arrivals, self.acks, self.demanding, self.replication)
        taking = Taking(state, self.delivery, *sharing)
        self.federation = Federation(state, self.delivery, self.demanding, taking)
        self.supplying = Supplying(state, self.delivery, self.federation, self.demanding)
        self.healing = Healing(state, self.delivery, arrivals, self.replication, self.acks)
        self.cluster.forgetting.copies_pending = self.healing.copies_pending
        self.cluster.watchers = [self.demanding.receivers, self.supplying, self.healing]
        self._adding = Adding(state, self.delivery, self.replication, ids)
        self.recurring = Recurring(state, self._adding)
        backoff = RetryBackoff(state, self.delivery)
        self._replacements = Replacements(state, self.delivery, backoff, self._adding, self.acks)
        letters = DeadLetterMaker(state, backoff, self._replacements, self.acks)
        self._fanout = Fanout(state, self.delivery, self._adding)
        self._retries = Retries(state, self.delivery, backoff, self._replacements, letters)
        self._moves = Moves(state, self.delivery, self._replacements)
        self.keys = Keys(state, self.delivery, self._adding)
        self._unblocking = Unblocking(state, self.delivery, self._moves, self.keys)
        self._serving = Serving(state, self.delivery)
        self._overflow = Overflow(state, self.delivery, self.acks)
        self.pausing = state.pausing
        holders = Holders(state, self.delivery, backoff, self.acks)
        takeovers = Takeovers(state, arrivals, backoff, self.acks)
        giving = (self.delivery, self.federation, self.healing, self._replacements)
        self.evacuation = Evacuation(state, takeovers, *giving)
        self.queue_queries = QueueQueries(state, self.acks)
        self.getting = Getting(state, self.delivery, self.federation, self.demanding)
        self.leases = ListenerLeases(state, self.delivery, self.getting, backoff)
        parts = (holders, self.getting.pattern_demand, self.queue_queries, self.supplying)
        self._inbox = Inbox(state, self.cluster, *parts, keys=self.keys, evacuation=self.evacuation)
        shares = (self.replication, self.delivery, self.acks, self._retries)
        self._awakening = Awakening(state, *shares)
        self._parts = Parts(self._in_order())

    def _in_order(self) -> list[Part]:
        """The parts of the node, in the order in which they have their turn."""
        return [
            self._awakening,
            self._unblocking,
            self.replication,
            self.queue_queries,
            self._fanout,
            self.getting,
            self.demanding,
            self.supplying,
            self.keys,
            self._moves,
            self.healing,
            self.evacuation,
            self.recurring,
            self._replacements,
            self._serving,
            self.jobs,
            self.queues,
            self.pausing,
            self.state.history,
        ]

    @property
    def now_ms(self) -> i64:
        """The time of this turn, or of the last one, by the steady clock."""
        return self.turn.now_ms

    @property
    def wall_us(self) -> i64:
        """The time of day of this turn, or of the last one, in microseconds since 1970."""
        return self.turn.wall_us

    @property
    def id(self) -> bytes:
        """This node's ID, 40 characters."""
        return self.membership.myself.id

    @property
    def blocked_clients(self) -> int:
        """How many clients wait for jobs or for copies."""
        return len(self.waiters.blocked)

    def used_memory(self) -> int:
        """Bytes that jobs and queues take (see :mod:`disque_tx.core.jobs.memory`)."""
        return self.memory.used

    @property
    def peak_memory(self) -> int:
        """The most :meth:`used_memory` ever was."""
        return self.memory.peak

    def begin(self, now_ms: i64, wall_us: i64) -> None:
        """A turn begins at this time."""
        self.turn.begin(now_ms, wall_us)
        self.membership.wall_ms = wall_us // 1000
        self.membership.unix_ms = self.membership.wall_ms - now_ms
        if self.outbox.events is not None:
            self.outbox.events.wall_us = wall_us

    # -- other nodes -------------------------------------------------------------------------

    def receive(self, link: Link, message: Message) -> None:
        """Take one message that came on ``link``, or those of a bulk one by one."""
        if isinstance(message, Bulk):
            for one in message.messages:
                self.receive(link, one)
            return
        self._inbox.receive(link, message)
        if not self.receiving:
            self.serve()

    def sender_of(self, link: Link) -> NodeEntry | None:
        """See :meth:`Inbox.sender_of`."""
        return self._inbox.sender_of(link)

    def receive_signal(self, sender: NodeEntry, kind: i64, job_id: bytes, aux: i64) -> None:
        """Take GOTJOB, SETACK, GOTACK or DELJOB of a node that may send it; serve clients later."""
        self._inbox.signal(sender, kind, job_id, aux)

    def receive_copy(
        self, sender: NodeEntry, link: Link, record: JobRecord, life_s: i64, mflags: i64
    ) -> None:
        """Take REPLJOB of a node that may send it; serve clients later."""
        self._inbox.copy(sender, link, record, life_s, mflags)

    # -- adding ------------------------------------------------------------------------------

    def add_job(self, client: Client, request: AddRequest) -> None:
        """ADDJOB (client protocol, section 14).

        Raises ``CommandError`` as section 14.2 lists it, in its order. The client is answered at
        once, or blocked until there are enough copies.
        """
        if self.membership.identity.suspended:
            raise identity_conflict_error()
        if self.policies.copying and self._fanout.add(client, request):
            return
        if request.unique is None:
            self._adding.add(client, request)
        else:
            self.keys.add_job(client, request, request.unique)

    # -- delivering --------------------------------------------------------------------------

    def get_jobs(
        self,
        client: Client,
        names: list[bytes],
        count: i64,
        timeout_ms: i64,
        no_hang: bool,
        counters: bool,
    ) -> None:
        """GETJOB (client protocol, section 15): answer with jobs, or block the client."""
        self.getting.get(client, names, count, timeout_ms, no_hang, counters)

    def get_matching(self, client: Client, request: GetRequest) -> None:
        """GETJOB with MATCH (client protocol, section 15.1)."""
        self.getting.get_matching(client, request)

    def acknowledge(self, ids: list[bytes]) -> int:
        """ACKJOB (client protocol, section 16): how many jobs were known and not acknowledged."""
        return self.acks.acknowledge(ids)

    def fast_acknowledge(self, ids: list[bytes]) -> int:
        """FASTACK: how many jobs were known and are gone now; others may know them for longer."""
        return self.acks.fast(ids)

    def delete(self, ids: list[bytes]) -> int:
        """DELJOB: how many jobs were known here and are gone now, here only."""
        return self.acks.delete(ids)

    def enqueue(
        self, ids: list[bytes], nack: bool, delay_ms: i64 = BY_POLICY, reason: bytes = b""
    ) -> int:
        """ENQUEUE, NACK (client protocol, section 17): how many jobs went from active to queued, or
        wait for that from now on. ``delay_ms``, ``reason``: see :meth:`Retries.nack`."""
        if nack:
            return self._retries.nack_all(ids, delay_ms, reason)
        return self._retries.enqueue_all(ids)

    def move(self, client: Client, request: MoveRequest) -> None:
        """QMOVE: answer how many jobs were moved, at once, or later to the client, then blocked."""
        self._moves.begin(client, request)

    def dequeue(self, ids: list[bytes]) -> int:
        """DEQUEUE (client protocol, section 17): how many jobs went from queued to active."""
        return self._retries.dequeue_all(ids)

    def working(self, job_id: bytes) -> int:
        """WORKING: postpone the next delivery by RETRY, which is returned in seconds.

        Client protocol, section 17. Raises ``CommandError`` NOJOB for an unknown job, ACKED for one
        that is done, TOOLATE once half of its TTL has passed.
        """
        return self._retries.working(job_id)

    def pause(self, name: bytes, flags: i64, who: bytes = b"") -> None:
        """PAUSE (client protocol, section 19): ``who`` sets the flags of a queue."""
        self.pausing.command(name, Pause(flags, who, self.wall_us // 1_000_000))
        if self.pausing.unsaved:
            self.membership.changed = True

    def pause_everywhere(self, name: bytes, flags: i64) -> None:
        """Ask all other nodes to set the pause flags of their queue."""
        self.peers.broadcast(QueueSignal(bustypes.PAUSE, name, flags))

    def pause_processes(self, name: bytes, flags: i64) -> None:
        """Ask the other processes of this daemon to do that."""
        for node_id in self.membership.siblings:
            self.peers.send(node_id, QueueSignal(bustypes.PAUSE, name, flags))

    # -- clients and time --------------------------------------------------------------------

    def client_gone(self, client: Client) -> None:
        """The connection is lost: nothing is held for it any more, nor sent to it."""
        self._unblocking.gone(client)

    def run_due(self) -> None:
        """Do what is due by now, a bounded part of it; the rest stays due."""
        self._parts.run_due()
        self.serve()

    def serve(self) -> None:
        """Serve the clients in line at queues that became ready."""
        if self.waiters.settled or self.state.keys_by_job.ended:
            self.waiters.notify_watchers()
            self.keys.process_ended()
        if self.waiters.ready:
            self._serving.run()
            if self.delivery.overfull:
                self._overflow.run()
        if self.delivery.emptied:
            self.getting.emptied()

    def finish(self) -> None:
        """The turn ends, and nothing more is executed in it: give jobs to other nodes, and send
        them what is wanted here."""
        self.keys.finish()
        self.supplying.finish()
        self.demanding.finish()

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        return self._parts.next_due_ms()

    def release_leaving(self) -> None:
        """Send the clients that wait for jobs elsewhere, once this node is leaving."""
        if self.membership.identity.suspended:
            self._unblocking.waiting_for_jobs(identity_conflict_error(), DUE_PER_TURN)
        elif self.membership.leaving:
            self.evacuation.resume()
            self._unblocking.waiting_for_jobs(leaving(), DUE_PER_TURN)

    def dismiss(self, error: CommandError) -> list[Client]:
        """Disconnect and return all clients that wait; jobs they wanted to add are given up."""
        return self._unblocking.all_clients(error)

    def flush_all(self) -> None:
        """Forget every job and queue; waiting clients get no jobs (DEBUG FLUSHALL, RESET)."""
        self._parts.forget_all()
        self.waiters.watch_nothing()
        if self.pausing.unsaved:
            self.membership.changed = True
