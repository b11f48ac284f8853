"""The messages of the cluster bus as values, and the sink they leave through.

Cluster protocol, sections 3, 4 and 7. There are 16 types with five kinds of body, a class each;
``type`` tells which of the types it is. ``wire.bus`` turns them into bytes and back. Types from 32
on are ours: the original ignores them, and is never sent one (cluster protocol, section 21).

Five types are most of the traffic: REPLJOB, GOTJOB, SETACK, GOTACK, DELJOB. Where many are sent and
received, calls with their fields take the place of objects.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.messages.bustypes import (
    BULK,
    FAIL,
    FORGET,
    REPLJOB,
)
from disque_tx.messages.records import JobRecord

# Message flags, ``mflags`` (section 3).
NOREPLY: Final = 1
INCR_NACKS: Final = 2
INCR_DELIV: Final = 4

#: Why a job is queued, in the aux of QUEUED: its RETRY was over. Originals send and see 0.
BY_RETRY: Final = 1
#: Added to the aux of SETACK: the sender and the receiver are the only ones that may hold the job,
#: as far as the sender knows, and both know ``CAN_SETTLE`` (section 21.13).
ONLY_US: Final = 0x8000_0000
#: The aux of GOTACK in answer to that: the sender knew the job, and has forgotten it.
FORGOTTEN: Final = 2


@mypyc_attr(acyclic=True)
class Message:
    """The fields that every message has about its sender.

    ``sender``: node ID. ``port``: for clients. ``flags``: node flags of the sender. ``ip`` and
    ``bus_port``: where others should connect to the sender, empty and 0 when that is the address it
    connects from and ``port`` + 10000. ``epoch`` and ``serial``: the number of the sender's
    connection, and the sequence number, on that connection, of a message that must not be processed
    twice; 0 when it is not numbered. ``features``: in PING, PONG and MEET, what the sender can do;
    ``cluster``: the marks of its cluster (see ``core.admission.clustername``). The original leaves
    ``ip`` to ``cluster`` zero, and ignores them. ``signer``: the sender who signed it, if one did.
    ``encoded``: its bytes, once they were needed; a message that was sent does not change.
    """

    __slots__ = (
        "type",
        "sender",
        "port",
        "flags",
        "mflags",
        "ip",
        "bus_port",
        "epoch",
        "serial",
        "features",
        "cluster",
        "clock_ms",
        "signer",
        "encoded",
    )

    def __init__(self, kind: i64) -> None:
        self.type: i64 = kind
        self.sender: bytes = b""
        self.port: i64 = 0
        self.flags: i64 = 0
        self.mflags: i64 = 0
        self.ip: bytes = b""
        self.bus_port: i64 = 0
        self.epoch: i64 = 0
        self.serial: i64 = 0
        self.features: i64 = 0
        self.cluster: i64 = 0
        self.clock_ms: i64 = 0
        self.signer: Sender | None = None
        self.encoded: bytes = b""


@mypyc_attr(acyclic=True)
class GossipEntry:
    """What one node reports about another (section 4.1).

    ``ping_sent_ms``, ``pong_received_ms``: low 32 bits of unix milliseconds; no program reads them.
    ``bus_port``: 0 when it is ``port`` + 10000.
    """

    __slots__ = ("id", "ping_sent_ms", "pong_received_ms", "ip", "port", "flags", "bus_port")

    def __init__(self, node_id: bytes, ip: bytes, port: i64, flags: i64) -> None:
        self.id: bytes = node_id
        self.ip: bytes = ip
        self.port: i64 = port
        self.flags: i64 = flags
        self.ping_sent_ms: i64 = 0
        self.pong_received_ms: i64 = 0
        self.bus_port: i64 = 0


@mypyc_attr(acyclic=True)
class Gossip(Message):
    """PING, PONG, MEET."""

    __slots__ = ("entries",)

    def __init__(self, kind: i64, entries: list[GossipEntry]) -> None:
        super().__init__(kind)
        self.entries: list[GossipEntry] = entries


@mypyc_attr(acyclic=True)
class NodeFailed(Message):
    """FAIL. ``about``: ID of the failed node."""

    __slots__ = ("about",)

    def __init__(self, about: bytes) -> None:
        super().__init__(FAIL)
        self.about: bytes = about


@mypyc_attr(acyclic=True)
class NodeForgotten(Message):
    """FORGET. ``about``: ID of a node that had failed for long."""

    __slots__ = ("about",)

    def __init__(self, about: bytes) -> None:
        super().__init__(FORGET)
        self.about: bytes = about


@mypyc_attr(acyclic=True)
class JobsMessage(Message):
    """REPLJOB, YOURJOBS.

    ``lives_s``: for every job the seconds it has left; ``etime_s`` of a received job means nothing.
    ``announced``: how many jobs a received message claims to hold. ``damage``: why the parser could
    not read further than ``jobs``, empty when it could.
    """

    __slots__ = ("jobs", "lives_s", "announced", "damage")

    def __init__(self, kind: i64, jobs: list[JobRecord], lives_s: list[int]) -> None:
        super().__init__(kind)
        self.jobs: list[JobRecord] = jobs
        self.lives_s: list[int] = lives_s
        self.announced: i64 = len(jobs)
        self.damage: str = ""


@mypyc_attr(acyclic=True)
class JobSignal(Message):
    """GOTJOB, ENQUEUE, QUEUED, SETACK, WILLQUEUE, GOTACK, DELJOB, WORKING.

    ``aux``: ENQUEUE: delay in seconds; SETACK: how many nodes the sender knows to hold the job, 0
    for a dummy acknowledgement, perhaps with ``ONLY_US``; GOTACK: 1 when the sender knows the job,
    or ``FORGOTTEN``; QUEUED: ``BY_RETRY`` when its RETRY was over; WILLQUEUE and WORKING: how many
    nodes the sender knows to hold the job, 0 if that is not said. Of the last two lines originals
    send and see 0.
    """

    __slots__ = ("aux", "job_id")

    def __init__(self, kind: i64, job_id: bytes, aux: i64 = 0) -> None:
        super().__init__(kind)
        self.job_id: bytes = job_id
        self.aux: i64 = aux


@mypyc_attr(acyclic=True)
class QueueSignal(Message):
    """NEEDJOBS, PAUSE. ``aux``: how many jobs are wanted; the pause flags."""

    __slots__ = ("aux", "queue")

    def __init__(self, kind: i64, queue: bytes, aux: i64) -> None:
        super().__init__(kind)
        self.queue: bytes = queue
        self.aux: i64 = aux


@mypyc_attr(acyclic=True)
class QueryMessage(Message):
    """QUERY, REPORT: ``number``: of the question, chosen by the node that asks. ``words``: what is
    asked, or the answer (see :mod:`disque_tx.core.counting.requests`).

    NEEDMATCH. ``number``: how many jobs are wanted. ``words``: globs, each behind ``+`` if names
    must match one of them, behind ``-`` if they must not.
    """

    __slots__ = ("number", "words")

    def __init__(self, kind: i64, number: i64, words: list[bytes]) -> None:
        super().__init__(kind)
        self.number: i64 = number
        self.words: list[bytes] = words


@mypyc_attr(acyclic=True)
class Bulk(Message):
    """BULK: messages about jobs of one turn, in order; each has the header of the bulk, but for
    type and message flags. Of REPLJOB, GOTJOB, SETACK, GOTACK and DELJOB only."""

    __slots__ = ("messages",)

    def __init__(self, messages: list[Message]) -> None:
        super().__init__(BULK)
        self.messages: list[Message] = messages


@mypyc_attr(acyclic=True)
class Sender:
    """What every message reports about the node that sends it; see ``Message``. A sender never
    changes: when the node does, there is another one. ``headers``: finished headers, for whoever
    encodes messages."""

    __slots__ = ("bus_port", "flags", "headers", "id", "ip", "port")

    def __init__(self, node_id: bytes, port: i64, flags: i64, ip: bytes, bus_port: i64) -> None:
        self.id: bytes = node_id
        self.port: i64 = port
        self.flags: i64 = flags
        self.ip: bytes = ip
        self.bus_port: i64 = bus_port
        self.headers: dict[int, bytes] = {}

    def sign(self, message: Message) -> None:
        """Make the message one of this sender."""
        message.signer = self
        message.sender = self.id
        message.port = self.port
        message.flags = self.flags
        message.ip = self.ip
        message.bus_port = self.bus_port


@mypyc_attr(acyclic=True)
class JobCopy:
    """A job on its way to several nodes, by REPLJOB. ``life_s``: seconds it has left. ``record``:
    its bytes, once they were needed; it must not change while it is sent."""

    __slots__ = ("job", "life_s", "record")

    def __init__(self, job: JobRecord, life_s: i64) -> None:
        self.job: JobRecord = job
        self.life_s: i64 = life_s
        self.record: bytes = b""


@mypyc_attr(allow_interpreted_subclasses=True)
class BusSink:
    """Where messages to one node go, in order; they leave at the end of the turn, or never: the bus
    promises nothing.

    ``bulk``: the node at the other end can take many of them as one (``CAN_BULK``).
    """

    def __init__(self) -> None:
        self.bulk: bool = False

    def send(self, message: Message) -> None:
        """Say it to the node at the other end."""
        raise NotImplementedError

    def signal(self, sender: Sender, kind: i64, job_id: bytes, aux: i64) -> None:
        """Send a message about one job; ``aux`` as in ``JobSignal``."""
        message = JobSignal(kind, job_id, aux)
        sender.sign(message)
        self.send(message)

    def copy(self, sender: Sender, copy: JobCopy, mflags: i64) -> None:
        """Send REPLJOB with one job."""
        message = JobsMessage(REPLJOB, [copy.job], [int(copy.life_s)])
        message.mflags = mflags
        sender.sign(message)
        self.send(message)
