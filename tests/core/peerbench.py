"""A node among others: what it says to them is collected, what they say is put into its hands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from disque_tx.busmessages import (
    GOTJOB,
    TYPE_NAMES,
    BusSink,
    JobSignal,
    JobsMessage,
    Message,
    QueueSignal,
)
from disque_tx.core.client import Client
from disque_tx.core.job import Job
from disque_tx.messages import DELIVERED, JobRecord
from disque_tx.nodetable import LEAVING, MYSELF, Link, NodeEntry
from disque_tx.wire.bus import encode
from tests.core.bench import ME, UNIX_S, NodeCase, add_request, copied

#: The other nodes.
B = b"b" * 40
C = b"c" * 40
D = b"d" * 40


class SaidList(BusSink):
    """What was said on one link and not looked at yet. Everything said must fit into bytes."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def send(self, message: Message) -> None:
        encode(message)
        self.messages.append(sent(message) if isinstance(message, JobsMessage) else message)


def sent(message: JobsMessage) -> JobsMessage:
    """The message as it is at this moment; its jobs go on changing."""
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
    """Tests on a node that is linked with ``peers``, both ways."""

    peers: tuple[bytes, ...] = (B, C)

    def setUp(self) -> None:
        super().setUp()
        self.sinks: dict[bytes, SaidList] = {}
        self.accepted: dict[bytes, Link] = {}
        for peer in self.peers:
            self.join(peer)

    def join(self, peer: bytes) -> NodeEntry:
        """One more node, with links both ways."""
        number = peer[0]
        entry = NodeEntry(peer, b"10.0.0.%d" % number, 7711, 0, self.now_ms)
        entry.numbers = True
        self.node.membership.add(entry)
        self.sinks[peer] = SaidList()
        self.link(peer)
        link = Link(SaidList(), None, entry.ip, b"10.0.0.1", self.now_ms, number)
        link.speaker = peer
        self.accepted[peer] = link
        self.node.membership.refresh()
        return entry

    def link(self, peer: bytes) -> None:
        """Our own link to a node is up."""
        entry = self.node.membership.nodes[peer]
        entry.link = Link(self.sinks[peer], entry, entry.ip, b"10.0.0.1", self.now_ms, 1)

    def unlink(self, peer: bytes) -> None:
        """Our own link to a node is lost."""
        self.node.membership.nodes[peer].link = None

    def receive(self, peer: bytes, message: Message) -> None:
        """``peer`` says something."""
        message.sender = peer
        message.flags = MYSELF
        self.node.receive(self.accepted[peer], message)

    def receive_signal(
        self, peer: bytes, kind: int, job_id: bytes, aux: int = 0, mflags: int = 0
    ) -> None:
        """``peer`` says something about a job."""
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
        """``peer`` sends jobs."""
        message = JobsMessage(kind, list(jobs), [life_s] * len(jobs))
        message.mflags = mflags
        message.epoch, message.serial = (7, serial) if serial else (0, 0)
        self.receive(peer, message)

    def sent(self, peer: bytes) -> list[Message]:
        """What was said to ``peer`` since this was last asked."""
        messages, self.sinks[peer].messages = self.sinks[peer].messages, []
        return messages

    def sent_signal(self, peer: bytes) -> JobSignal:
        """The one thing that was said to ``peer`` about a job."""
        (message,) = self.sent(peer)
        assert isinstance(message, JobSignal)
        return message

    def told_jobs(self, peer: bytes) -> JobsMessage:
        """The one message with jobs that was sent to ``peer``."""
        (message,) = self.sent(peer)
        assert isinstance(message, JobsMessage)
        return message

    def sent_names(self, peer: bytes) -> list[str]:
        """The same, the names of the types."""
        return [TYPE_NAMES[message.type] for message in self.sent(peer)]

    def forget_sent(self) -> None:
        """Nobody looks at what was said up to now."""
        for sink in self.sinks.values():
            sink.messages = []

    # -- clients -----------------------------------------------------------------------------

    def pass_ms(self, ms: int) -> None:
        """Let time pass, and the node and its federation do what became due."""
        super().pass_ms(ms)
        self.node.federation.run_due(self.now_ms)

    def pass_slowly(self, ms: int) -> None:
        """The same, in steps of the schedule."""
        for _ in range(ms // 20):
            self.pass_ms(20)

    def ask(
        self,
        replicate: int = 2,
        queue: bytes = b"q",
        body: bytes = b"body",
        ttl_s: int = 3_600,
        retry_s: int = 60,
        **options: int,
    ) -> Client:
        """ADDJOB of a new client, which may have to wait."""
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
        client = self.ask(len(confirm) + 1, **options)  # type: ignore[arg-type]
        membership.refresh()
        (wait,) = self.node.waiters.copies.values()
        for peer in confirm:
            self.receive_signal(peer, GOTJOB, wait.job.id)
        self.assertEqual(wait.job.id, self.status(client))
        self.forget_sent()
        return wait.job

    def leave(self) -> None:
        """This node is leaving."""
        self.node.membership.set_leaving(True)

    def assert_nothing_left(self) -> None:
        """No job, no client, nothing to do, nothing counted."""
        node = self.node
        self.assertEqual((0, 0), (len(node.jobs), node.blocked_clients))
        self.assertEqual(({}, {}), (node.waiters.copies, node.replication.asynchronous))
        queues = node.queues.table.values()
        empty = sum(600 + len(queue.name) for queue in queues)
        self.assertEqual((0, empty), (node.jobs.acked, node.used_memory()))


def theirs(
    number: int,
    nodes: tuple[bytes, ...],
    retry_s: int = 60,
    delay_s: int = 0,
    queue: bytes = b"q",
    once: bool = False,
) -> Job:
    """A job of another node, as it arrives here."""
    job_id = b"D-bbbbbbbb-%024d-%s" % (number, b"003c" if once else b"003d")
    ctime = UNIX_S * 1_000_000_000 + number
    return Job(job_id, queue, b"body", nodes, ctime, 0, delay_s, 0 if once else retry_s, len(nodes))


# -- recorded conversations ------------------------------------------------------------------

_VECTORS = Path(__file__).parents[1] / "vectors"
#: The nodes of the recorded conversations.
ORIGINAL = b"dadcaeb81c854feedd2d0389cce4ce5f18b09928"
PEER = b"1d628e45eeafab4d7d52e545593727fbc0cb3a1d"
_SIGNALS = {name: number for number, name in enumerate(TYPE_NAMES)}


class FlowCase(PeerCase):
    """This node in the place of the original of a recorded conversation with one peer."""

    peers = (PEER,)

    def flow(self, name: str) -> list[dict[str, Any]]:
        """What was said, in order."""
        flows = json.loads((_VECTORS / "flows.json").read_text())
        (events,) = [flow["events"] for flow in flows if flow["name"] == name]
        return [dict(event) for event in events]

    def replay(
        self, name: str, my_job: bytes = b"", until_ms: int = 0, tolerance_ms: int = 1
    ) -> None:
        """Let the peer say what it said when it said it, and compare what it hears.

        ``my_job``: the ID that this node's job has here. ``tolerance_ms``: the original looks at
        the time in steps of 100 ms, and has jitter.
        """
        self._my_job = my_job
        begun_ms = self.now_ms
        heard: list[tuple[int, dict[str, Any]]] = self._collect(begun_ms)
        expected: list[tuple[int, dict[str, Any]]] = []
        for event in self.flow(name):
            while self.now_ms < begun_ms + event["t_ms"]:
                self.pass_ms(min(10, begun_ms + event["t_ms"] - self.now_ms))
                heard += self._collect(begun_ms)
            if event["direction"].startswith("peer"):
                self.receive(PEER, self._message(event))
                heard += self._collect(begun_ms)
                self.after(event)
                heard += self._collect(begun_ms)
            else:
                expected.append((event["t_ms"], self._words(event)))
        while self.now_ms < begun_ms + until_ms:
            self.pass_ms(10)
            heard += self._collect(begun_ms)
        self.assertEqual([words for _, words in expected], [words for _, words in heard])
        for (recorded_ms, words), (at_ms, _) in zip(expected, heard, strict=True):
            self.assertTrue(abs(recorded_ms - at_ms) <= tolerance_ms, (recorded_ms, at_ms, words))

    def after(self, event: dict[str, Any]) -> None:
        """The peer said this: what clients of this node do next."""

    def _collect(self, begun_ms: int) -> list[tuple[int, dict[str, Any]]]:
        return [(self.now_ms - begun_ms, self._described(message)) for message in self.sent(PEER)]

    def _message(self, event: dict[str, Any]) -> Message:
        """What the peer said."""
        kind = _SIGNALS[event["type"]]
        if "jobs" in event:
            jobs = [self._job(job) for job in event["jobs"]]
            return JobsMessage(kind, list(jobs), [job["etime"] for job in event["jobs"]])
        return JobSignal(kind, self._job_id(event["id"]), event["aux"])

    def _job(self, told: dict[str, Any]) -> Job:
        job = Job(
            self._job_id(told["id"]),
            b"empty q",
            b"body",
            tuple(self._node_id(node) for node in told["nodes"]),
            1,
            0,
            told["delay"],
            told["retry"],
            len(told["nodes"]),
        )
        job.flags = told["flags"]
        return job

    def _job_id(self, text: str) -> bytes:
        job_id = text.encode()
        return self._my_job if job_id[2:10] == ORIGINAL[:8] else job_id

    def _node_id(self, text: str) -> bytes:
        return ME if text.encode() == ORIGINAL else text.encode()

    def _words(self, event: dict[str, Any]) -> dict[str, Any]:
        """A recorded message in the words of :meth:`_described`."""
        words: dict[str, Any] = {"type": event["type"], "flags": event["flags"]}
        words["mflags"] = event.get("mflags", [0])[0]
        if "jobs" in event:
            (job,) = event["jobs"]
            numbers = [job[name] for name in ("state", "flags", "delay", "retry")]
            nodes = sorted(self._node_id(node) for node in job["nodes"])
            words["job"] = (self._job_id(job["id"]), *numbers, nodes)
        elif "qname" in event:
            words["queue"] = (event["qname"].encode(), event["aux"])
        else:
            words["signal"] = (self._job_id(event["id"]), event["aux"])
        return words

    def _described(self, message: Message) -> dict[str, Any]:
        flags = message.flags & (MYSELF | LEAVING)
        words: dict[str, Any] = {"type": TYPE_NAMES[message.type], "flags": flags}
        words["mflags"] = message.mflags
        if isinstance(message, JobsMessage):
            (job,) = message.jobs
            numbers = [int(job.state), int(job.flags), job.delay_s, job.retry_s]
            words["job"] = (job.id, *numbers, sorted(job.nodes))
        elif isinstance(message, JobSignal):
            words["signal"] = (message.job_id, message.aux)
        elif isinstance(message, QueueSignal):
            words["queue"] = (message.queue, message.aux)
        return words
