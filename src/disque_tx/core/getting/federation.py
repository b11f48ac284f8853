"""Jobs move to where they are wanted (cluster protocol, sections 11.3 to 11.5).

1. A client finds a queue empty: all nodes are asked for one job of it, at once and then at growing
   intervals for as long as a client waits.
2. Nodes that gave lately are asked for more, often, and as many as would last about a second.
3. Who is asked gives from the head of the queue, half of it at the most, unless it is importing
   itself. It keeps its copy as one of the holders, and the receiver becomes one.
4. A node above 95 % of its memory asks for nothing.
5. A job with RETRY 0 is not kept: it moves.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.replication import life_s
from disque_tx.core.base.part import Part
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.getting.demanding import Demanding
from disque_tx.core.getting.taking import Taking
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.demand import QueueDemand
from disque_tx.core.queues.endings import MOVED
from disque_tx.core.queues.queues import PAUSE_OUT, Queue
from disque_tx.core.state.state import State
from disque_tx.messages import events
from disque_tx.messages.bus import JobsMessage, QueueSignal
from disque_tx.messages.bustypes import NEEDJOBS, YOURJOBS
from disque_tx.messages.nodes import HANDSHAKE, NodeEntry
from disque_tx.messages.records import JobRecord

#: Jobs per message; the original crashes when it is asked for more.
JOBS_MAX: Final = 100
#: Bytes of bodies after which a message takes no further job.
BYTES_MAX: Final = 8 * 1024 * 1024
_QUEUES_PER_RUN: Final = 1_000
#: How long a queue that may not import now is left alone.
_LATER_MS: Final = 2_000


class Parcel:
    """Jobs for one node. ``size``: bytes of bodies. ``moved``: those that are not kept here.
    ``mflags``: flags of the message. ``holders``: of the last job before it was given;
    ``holders_then``: with the receiver, which most jobs share."""

    __slots__ = (
        "holders",
        "holders_then",
        "jobs",
        "lives_s",
        "mflags",
        "moved",
        "receiver",
        "size",
    )

    def __init__(self, receiver: NodeEntry) -> None:
        self.receiver: NodeEntry = receiver
        self.jobs: list[JobRecord] = []
        self.lives_s: list[int] = []
        self.moved: list[Job] = []
        self.holders: tuple[bytes, ...] = ()
        self.holders_then: tuple[bytes, ...] = (receiver.id,)
        self.size: i64 = 0
        self.mflags: i64 = 0


class Federation(Part):
    """Asks for jobs and gives them. ``wanting``: queues at which clients wait, by when nodes are
    asked again. ``handovers``: jobs that other nodes got lately. ``taking``: queues what comes."""

    def __init__(
        self, state: State, delivery: Delivery, demanding: Demanding, taking: Taking
    ) -> None:
        self._turn = state.turn
        self.wanting: Schedule[Queue] = Schedule()
        self.handovers = state.handovers
        self.taking = taking
        self._jobs = state.jobs
        self._endings = state.endings
        self._queues = state.queues
        self._delivery = delivery
        self._demanding = demanding
        self._membership = state.membership
        self._outbox = state.outbox
        self._peers = state.peers
        self._limits = state.limits
        self._memory = state.memory

    # -- asking ------------------------------------------------------------------------------

    def want(self, queue: Queue) -> None:
        """A client found nothing in the queue, and perhaps waits."""
        self._ask(queue, False)
        self._again(queue)

    def emptied(self, queue: Queue) -> None:
        """The last job of the queue was taken."""
        if queue.import_rate(self._turn.now_ms) > 0:
            self._ask(queue, True)
            self._again(queue)

    def _ask(self, queue: Queue, emptied: bool) -> None:
        now_ms = self._turn.now_ms
        if self._membership.leaving or self._memory.is_full() or queue.paused & PAUSE_OUT:
            return
        if self._limits.hold_back(queue.name, now_ms):
            return
        imports = queue.imports
        if imports is None:
            imports = queue.imports = QueueDemand(now_ms)
        givers = imports.recent_givers(now_ms)
        request = imports.request(len(givers), now_ms)
        if imports.may_ask_all(now_ms):
            imports.asked_all_ms = now_ms
            # Without any receiver, the intervals need not grow.
            if self._ask_all(queue):
                imports.all_attempts += 1
        if givers and (emptied or imports.may_ask_givers(now_ms)):
            imports.asked_givers_ms = now_ms
            imports.givers_attempts += 1
            message = QueueSignal(NEEDJOBS, queue.name, request)
            for giver in givers:
                if not self._demanding.tells(queue, giver):
                    self._peers.send(giver, message)

    def _ask_all(self, queue: Queue) -> bool:
        """Ask the nodes that are not told what clients wait for; ``False`` when there is no link to
        any node."""
        message = QueueSignal(NEEDJOBS, queue.name, 1)
        linked = False
        self._demanding.renew(queue)
        for entry in self._membership.nodes.values():
            link = entry.link
            if link is not None and not entry.flags & HANDSHAKE:
                linked = True
                if not self._demanding.tells(queue, entry.id):
                    self._peers.answer(link, message)
        return linked

    def _again(self, queue: Queue) -> None:
        """If a client waits at the queue, ask again when it is time."""
        now_ms = self._turn.now_ms
        self.wanting.remove(queue)
        if not queue.waiters:
            return
        imports = queue.imports
        idle = imports is None or self._membership.leaving or queue.paused & PAUSE_OUT != 0
        at_ms = now_ms + _LATER_MS if idle or imports is None else imports.next_ms(now_ms)
        self.wanting.add(queue, at_ms)

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        return self.wanting.next_ms()

    def forget_all(self) -> None:
        """Queues are asked for anew, and nothing is known of jobs that other nodes got."""
        self.wanting.clear()
        self.handovers.forget_all()

    def run_due(self) -> None:
        """Ask again for the queues at which clients still wait."""
        now_ms = self._turn.now_ms
        for queue in self.wanting.due(now_ms, _QUEUES_PER_RUN):
            if queue.waiters:
                self._ask(queue, False)
            self._again(queue)

    # -- giving ------------------------------------------------------------------------------

    def give(self, sender: NodeEntry, message: QueueSignal) -> None:
        """NEEDJOBS: give some, if there are any and the sender can be reached."""
        queue = self._queues.get(message.queue)
        if queue is None or queue.jobs.size == 0 or queue.paused & PAUSE_OUT:
            return
        if sender.link is None or queue.import_rate(self._turn.now_ms) > 0:
            return
        count = max(1, min(message.aux, JOBS_MAX))
        if queue.jobs.size < 2 * count:
            count = max(1, queue.jobs.size // 2)
        parcel = Parcel(sender)
        while len(parcel.jobs) < count and parcel.size < BYTES_MAX:
            if not self.pack(parcel, queue):
                break
        self.send(parcel)

    def pack(self, parcel: Parcel, queue: Queue) -> bool:
        """Put the next job of a queue into a parcel; ``False`` if there is none."""
        job = self._delivery.fetch(queue)
        if job is None:
            return False
        self.put(parcel, job)
        return True

    def put(self, parcel: Parcel, job: Job) -> None:
        """Put a job, which is in no queue any more, into a parcel."""
        now_ms = self._turn.now_ms
        receiver = parcel.receiver.id
        if job.retry_s == 0:
            parcel.moved.append(job)
        else:
            if job.nodes is not parcel.holders:
                parcel.holders = job.nodes
                self._jobs.merge_holders(job, (receiver,))
                parcel.holders_then = job.nodes
            else:
                self._jobs.set_holders(job, parcel.holders_then)
            self.handovers.note(job.id, receiver, now_ms)
        if self._outbox.events is not None:
            self._outbox.events.moved(events.EXPORTED, job, receiver)
        parcel.jobs.append(job)
        parcel.lives_s.append(life_s(job, now_ms))
        parcel.size += job.body_bytes

    def send(self, parcel: Parcel) -> None:
        """Send a parcel, if there is anything in it."""
        if parcel.jobs:
            message = JobsMessage(YOURJOBS, parcel.jobs, parcel.lives_s)
            message.mflags = parcel.mflags
            self._peers.send_once(parcel.receiver, message)
        for job in parcel.moved:
            self._endings.will_end(job, MOVED)
            self._delivery.remove(job)
