"""A node with peers: what it sends is collected, and the test sends messages in their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from disque_tx.core.base.client import Client
from disque_tx.core.jobs.job import Job
from disque_tx.messages.bus import BusSink, JobSignal, JobsMessage, Message, QueueSignal
from disque_tx.messages.bustypes import GOTJOB, TYPE_NAMES
from disque_tx.messages.nodes import LEAVING, MYSELF, Link, NodeEntry
from disque_tx.messages.records import DELIVERED, JobRecord
from disque_tx.wire.bus.parser import encode
from tests.core.bench import ME, UNIX_S, NodeCase, add_request, copied

#: The other nodes.
B = b"b" * 40
C = b"c" * 40
D = b"d" * 40


class SentMessages(BusSink):
    """The messages sent on one link since the last look. Every message must be encodable."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []

    def send(self, message: Message) -> None:
        encode(message)
        self.messages.append(sent(message) if isinstance(message, JobsMessage) else message)


def sent(message: JobsMessage) -> JobsMessage:
    """A snapshot of the message; its jobs continue to change."""
    records = [copied(job) for job in message.jobs]
    for record in records:
        record.flags &= ~DELIVERED
    result = JobsMessage(message.type, records, list(message.lives_s))
    result.flags = message.flags
    result.mflags = message.mflags
    result.epoch = message.epoch
    result.serial = message.serial
    return result


class PeerCase(NodeCase):
    """Tests on a node that has links to and from each of ``peers``."""

    peers: tuple[bytes, ...] = (B, C)

    def setUp(self) -> None:
        super().setUp()
        self.sinks: dict[bytes, SentMessages] = {}
        self.accepted: dict[bytes, Link] = {}
        for peer in self.peers:
            self.join(peer)

    def join(self, peer: bytes) -> NodeEntry:
        """Add another node, with links in both directions."""
        number = peer[0]
        entry = NodeEntry(peer, b"10.0.0.%d" % number, 7711, 0, self.now_ms)
        entry.numbers = True
        entry.newest_link = 1
        self.node.membership.add(entry)
        self.sinks[peer] = SentMessages()
        self.link(peer)
        link = Link(SentMessages(), None, entry.ip, b"10.0.0.1", self.now_ms, number)
        link.peer_id = peer
        self.accepted[peer] = link
        self.node.membership.refresh()
        return entry

    def link(self, peer: bytes) -> None:
        """Our own link to a node comes up."""
        entry = self.node.membership.nodes[peer]
        entry.link = Link(self.sinks[peer], entry, entry.ip, b"10.0.0.1", self.now_ms, 1)

    def unlink(self, peer: bytes) -> None:
        """Our own link to a node goes down."""
        self.node.membership.nodes[peer].link = None

    def receive(self, peer: bytes, message: Message) -> None:
        """The node receives a message from ``peer``."""
        message.sender = peer
        message.flags = MYSELF
        self.node.receive(self.accepted[peer], message)

    def receive_signal(
        self, peer: bytes, kind: int, job_id: bytes, aux: int = 0, mflags: int = 0
    ) -> None:
        """The node receives a message about one job from ``peer``."""
        message = JobSignal(kind, job_id, aux)
        message.mflags = mflags
        self.receive(peer, message)

    def receive_jobs(
        self,
        peer: bytes,
        kind: int,
        *jobs: JobRecord,
        life_s: int = 3_600,
        mflags: int = 0,
        serial: int = 0,
    ) -> None:
        """The node receives jobs from ``peer``."""
        message = JobsMessage(kind, list(jobs), [life_s] * len(jobs))
        message.mflags = mflags
        message.epoch, message.serial = (7, serial) if serial else (0, 0)
        self.receive(peer, message)

    def sent_to(self, peer: bytes) -> list[Message]:
        """The messages sent to ``peer`` since the last call."""
        messages, self.sinks[peer].messages = self.sinks[peer].messages, []
        return messages

    def sent_signal(self, peer: bytes) -> JobSignal:
        """The single message about a job that was sent to ``peer``."""
        (message,) = self.sent_to(peer)
        assert isinstance(message, JobSignal)
        return message

    def sent_jobs(self, peer: bytes) -> JobsMessage:
        """The single message with jobs that was sent to ``peer``."""
        (message,) = self.sent_to(peer)
        assert isinstance(message, JobsMessage)
        return message

    def sent_names(self, peer: bytes) -> list[str]:
        """The names of the types of the messages sent to ``peer`` since the last call."""
        return [TYPE_NAMES[message.type] for message in self.sent_to(peer)]

    def clear_sent(self) -> None:
        """Discard all messages sent so far."""
        for sink in self.sinks.values():
            sink.messages = []

    # -- clients -----------------------------------------------------------------------------

    def pass_ms(self, ms: int) -> None:
        """Let time pass, and run what became due in the node and its federation."""
        super().pass_ms(ms)
        self.node.federation.run_due()

    def pass_slowly(self, ms: int) -> None:
        """Let time pass in steps of the schedule's resolution."""
        for _ in range(ms // 20):
            self.pass_ms(20)

    def begin_add(
        self,
        replicate: int = 2,
        queue: bytes = b"q",
        body: bytes = b"body",
        ttl_s: int = 3_600,
        retry_s: int = 60,
        **options: int,
    ) -> Client:
        """ADDJOB of a new client, which may block until copies are confirmed."""
        client = self.connect()
        request = add_request(
            queue, body, replicate=replicate, ttl_s=ttl_s, retry_s=retry_s, **options
        )
        self.node.add_job(client, request)
        self.node.serve()
        return client

    def replicated(self, *confirm: bytes, **options: int) -> Job:
        """A job of this node with copies on the nodes that ``confirm``."""
        membership = self.node.membership
        membership.reachable = [membership.nodes[peer] for peer in confirm]
        client = self.begin_add(len(confirm) + 1, **options)  # type: ignore[arg-type]
        membership.refresh()
        (wait,) = self.node.waiters.copies.values()
        for peer in confirm:
            self.receive_signal(peer, GOTJOB, wait.job.id)
        self.assertEqual(wait.job.id, self.status(client))
        self.clear_sent()
        return wait.job

    def leave(self) -> None:
        """The node starts to leave the cluster."""
        self.node.membership.set_leaving(True)

    def assert_nothing_left(self) -> None:
        """There are no jobs, no blocked clients, no deadlines and no memory in use."""
        node = self.node
        self.assertEqual((0, 0), (len(node.jobs), node.blocked_clients))
        self.assertEqual(({}, {}), (node.waiters.copies, node.replication.asynchronous))
        queues = node.queues.table.values()
        empty = sum(600 + len(queue.name) for queue in queues)
        self.assertEqual((0, empty), (node.jobs.acked, node.used_memory()))


def peer_job(
    number: int,
    nodes: tuple[bytes, ...],
    retry_s: int = 60,
    delay_s: int = 0,
    queue: bytes = b"q",
    once: bool = False,
) -> Job:
    """A job of another node, as it arrives at this one."""
    job_id = b"D-bbbbbbbb-%024d-%s" % (number, b"003c" if once else b"003d")
    ctime = UNIX_S * 1_000_000_000 + number
    return Job(
        job_id,
        queue,
        b"body",
        nodes,
        ctime,
        0,
        delay_s=delay_s,
        retry_s=0 if once else retry_s,
        repl=len(nodes),
    )


# -- recorded conversations ------------------------------------------------------------------

_VECTORS = Path(__file__).parents[1] / "vectors"
#: The nodes of the recorded conversations.
ORIGINAL = b"dadcaeb81c854feedd2d0389cce4ce5f18b09928"
PEER = b"1d628e45eeafab4d7d52e545593727fbc0cb3a1d"
_SIGNALS = {name: number for number, name in enumerate(TYPE_NAMES)}


class FlowCase(PeerCase):
    """This node takes the place of the original in a recorded conversation with one peer."""

    peers = (PEER,)

    def flow(self, name: str) -> list[dict[str, Any]]:
        """The recorded messages, in order."""
        flows = json.loads((_VECTORS / "flows.json").read_text())
        (events,) = [flow["events"] for flow in flows if flow["name"] == name]
        return [dict(event) for event in events]

    def replay(
        self, name: str, my_job: bytes = b"", until_ms: int = 0, tolerance_ms: int = 1
    ) -> None:
        """Send the peer's messages at the recorded times, and compare what the node sends.

        ``my_job``: the ID of this node's job, which replaces the recorded one. ``tolerance_ms``:
        the original checks its deadlines every 100 ms and adds jitter.
        """
        self._my_job = my_job
        begun_ms = self.now_ms
        actual: list[tuple[int, dict[str, Any]]] = self._collect(begun_ms)
        expected: list[tuple[int, dict[str, Any]]] = []
        for event in self.flow(name):
            while self.now_ms < begun_ms + event["t_ms"]:
                self.pass_ms(min(10, begun_ms + event["t_ms"] - self.now_ms))
                actual += self._collect(begun_ms)
            if event["direction"].startswith("peer"):
                self.receive(PEER, self._message(event))
                actual += self._collect(begun_ms)
                self.after(event)
                actual += self._collect(begun_ms)
            else:
                expected.append((event["t_ms"], self._recorded_fields(event)))
        while self.now_ms < begun_ms + until_ms:
            self.pass_ms(10)
            actual += self._collect(begun_ms)
        self.assertEqual([fields for _, fields in expected], [fields for _, fields in actual])
        for (recorded_ms, fields), (at_ms, _) in zip(expected, actual, strict=True):
            self.assertTrue(abs(recorded_ms - at_ms) <= tolerance_ms, (recorded_ms, at_ms, fields))

    def after(self, event: dict[str, Any]) -> None:
        """Called after each message of the peer: the place for client commands."""

    def _collect(self, begun_ms: int) -> list[tuple[int, dict[str, Any]]]:
        return [(self.now_ms - begun_ms, self._fields(message)) for message in self.sent_to(PEER)]

    def _message(self, event: dict[str, Any]) -> Message:
        """The recorded message as an object."""
        kind = _SIGNALS[event["type"]]
        if "jobs" in event:
            jobs = [self._job(job) for job in event["jobs"]]
            return JobsMessage(kind, list(jobs), [job["etime"] for job in event["jobs"]])
        return JobSignal(kind, self._job_id(event["id"]), event["aux"])

    def _job(self, recorded: dict[str, Any]) -> Job:
        job = Job(
            self._job_id(recorded["id"]),
            b"empty q",
            b"body",
            tuple(self._node_id(node) for node in recorded["nodes"]),
            1,
            0,
            delay_s=recorded["delay"],
            retry_s=recorded["retry"],
            repl=len(recorded["nodes"]),
        )
        job.flags = recorded["flags"]
        return job

    def _job_id(self, text: str) -> bytes:
        job_id = text.encode()
        return self._my_job if job_id[2:10] == ORIGINAL[:8] else job_id

    def _node_id(self, text: str) -> bytes:
        return ME if text.encode() == ORIGINAL else text.encode()

    def _recorded_fields(self, event: dict[str, Any]) -> dict[str, Any]:
        """The fields of a recorded message, in the form of :meth:`_fields`."""
        fields: dict[str, Any] = {"type": event["type"], "flags": event["flags"]}
        fields["mflags"] = event.get("mflags", [0])[0]
        if "jobs" in event:
            (job,) = event["jobs"]
            numbers = [job[name] for name in ("state", "flags", "delay", "retry")]
            nodes = sorted(self._node_id(node) for node in job["nodes"])
            fields["job"] = (self._job_id(job["id"]), *numbers, nodes)
        elif "qname" in event:
            fields["queue"] = (event["qname"].encode(), event["aux"])
        else:
            fields["signal"] = (self._job_id(event["id"]), event["aux"])
        return fields

    def _fields(self, message: Message) -> dict[str, Any]:
        flags = message.flags & (MYSELF | LEAVING)
        fields: dict[str, Any] = {"type": TYPE_NAMES[message.type], "flags": flags}
        fields["mflags"] = message.mflags
        if isinstance(message, JobsMessage):
            (job,) = message.jobs
            numbers = [int(job.state), int(job.flags), job.delay_s, job.retry_s]
            fields["job"] = (job.id, *numbers, sorted(job.nodes))
        elif isinstance(message, JobSignal):
            fields["signal"] = (message.job_id, message.aux)
        elif isinstance(message, QueueSignal):
            fields["queue"] = (message.queue, message.aux)
        return fields
