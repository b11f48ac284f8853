"""Jobs received from other nodes (cluster protocol, section 5), accepted as originals do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from disque_tx.commands.base.values import ValueReplies
from disque_tx.commands.jobs.jobs import show_job
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.jobs.job import Job
from disque_tx.core.state.state import State
from disque_tx.messages.limits import SECONDS_MAX
from disque_tx.messages.nodes import Link
from disque_tx.messages.records import ACTIVE, BCAST_QUEUED, BCAST_WILLQUEUE
from disque_tx.wire.bus.parser import BusParser
from tests.core.bench import ME
from tests.core.peerbench import PEER, B, C, PeerCase, SentMessages, peer_job

VECTORS = Path(__file__).parents[2] / "vectors"
#: Fields of SHOW that depend on the moment.
VOLATILE = ("ttl", "next-requeue-within", "next-awake-within")


class ArrivalTests(PeerCase):
    """``Arrivals``."""

    def setUp(self) -> None:
        super().setUp()
        state = State(self.node.membership, lambda: self.chance)
        state.queues = self.node.queues
        state.turn = self.node.turn
        self.arrivals = Arrivals(state, self.node.delivery)

    def arrived(self, job: Job, life_s: int = 100) -> Job:
        """The job as this node stores it."""
        return self.arrivals.job(job, life_s, False)

    def test_life(self) -> None:
        """It lives as long as the message says, from its arrival, by both clocks."""
        job = self.arrived(peer_job(1, (B,)), 100)
        self.assertEqual(self.now_ms + 100_000, job.expire_ms)
        self.assertEqual(self.wall_us // 1_000_000 + 100, job.etime_s)
        self.assertEqual(SECONDS_MAX, self.arrived(peer_job(1, (B,)), SECONDS_MAX).etime_s)

    def test_requeue(self) -> None:
        """RETRY and DELAY start again on arrival; with RETRY 0 it is queued only on request."""
        job = self.arrived(peer_job(1, (B,), retry_s=7, delay_s=5))
        self.assertEqual(self.now_ms + 12_000, job.qtime_ms)
        self.assertEqual(BCAST_QUEUED | BCAST_WILLQUEUE, job.flags)
        once = self.arrived(peer_job(1, (B,), delay_s=5, once=True))
        self.assertEqual((0, BCAST_QUEUED), (once.qtime_ms, once.flags))

    def test_long_retry(self) -> None:
        """The longest RETRY and DELAY do not wrap around."""
        most = 4_294_967_295
        job = self.arrived(peer_job(1, (B,), retry_s=most, delay_s=most), most)
        self.assertEqual(self.now_ms + 2 * most * 1000, job.qtime_ms)

    def test_counters(self) -> None:
        """Counters, creation time and replication level come from the sender, the state does
        not."""
        sent = peer_job(1, (B, C))
        sent.nacks, sent.deliveries, sent.state = 7, 8, 3
        job = self.arrived(sent)
        self.assertEqual(
            (7, 8, ACTIVE, sent.ctime, 2),
            (job.nacks, job.deliveries, job.state, job.ctime, job.repl),
        )

    def test_regained(self) -> None:
        """A job that this node made itself, as its ID says, was lost here: so may its key be."""
        self.assertFalse(self.arrived(peer_job(1, (B, C))).regained)
        mine = peer_job(2, (B, ME))
        mine.id = b"D-" + ME[:8] + mine.id[10:]
        self.assertTrue(self.arrived(mine).regained)

    def test_shared(self) -> None:
        """Lists of holders and queue names are shared between jobs; unknown nodes stay in the
        list."""
        stranger = b"e" * 40
        jobs = [
            self.arrived(peer_job(number, (bytes(bytearray(B)), stranger))) for number in (1, 2)
        ]
        self.assertIs(jobs[0].nodes, jobs[1].nodes)
        self.assertEqual((B, stranger), jobs[0].nodes)
        self.assertIs(
            self.node.membership.only_me, self.arrived(peer_job(3, (bytes(bytearray(ME)),))).nodes
        )

    def test_many_lists(self) -> None:
        """Whatever lists a peer invents, the memory for them is bounded."""
        for number in range(10_000):
            self.arrivals.shared((b"%040d" % number,))
        self.assertTrue(len(self.arrivals._lists) <= 4_096)


class AcceptanceTests(PeerCase):
    """Messages that were sent to an original byte by byte, and what became of the jobs.

    One difference is intended: holders that are not in the node table are kept in the list, where
    the original drops them.
    """

    peers = (PEER,)

    def test_all(self) -> None:
        """The cases build on each other."""
        vectors = json.loads((VECTORS / "acceptance.json").read_text())
        my_id = vectors["my_id"].encode()
        names = []
        for case in vectors["cases"]:
            if case["kind"] == "job":
                names.append(case["name"])
                data = bytes.fromhex(case["send_hex"]).replace(my_id, ME)
                self.send(data)
                replies = [name for name in self.sent_names(PEER) if name != "PONG"]
                self.assertEqual(case["expect"]["replies"], replies, case["name"])
                for job_id, expected in case["expect"].get("show", {}).items():
                    actual = self.show(job_id.encode())
                    self.assertEqual(self.recorded_show(expected, my_id), actual, case["name"])
        self.assertEqual(14, len(names))

    def send(self, data: bytes) -> None:
        """Bytes arrive on a new connection."""
        parser = BusParser(1 << 20)
        parser.feed(data)
        link = Link(SentMessages(), None, b"10.0.0.9", b"10.0.0.1", self.now_ms, 99)
        while True:
            message = parser.next()
            if message is None:
                return
            self.node.receive(link, message)

    def show(self, job_id: bytes) -> Any:
        """SHOW without volatile fields; nodes in any order and without unknown ones."""
        job = self.node.jobs.get(job_id)
        if job is None:
            return None
        replies = ValueReplies()
        show_job(replies, job, self.now_ms, self.node.state.progress)
        (fields,) = replies.values
        assert isinstance(fields, list)
        return self.comparable(dict(zip(fields[::2], fields[1::2], strict=True)))

    def recorded_show(self, show: dict[str, Any] | None, my_id: bytes) -> Any:
        """The same for the recorded reply."""
        if show is None:
            return None
        nodes = [
            ME if node.encode() == my_id else node.encode() for node in show["nodes-delivered"]
        ]
        fields: dict[Any, Any] = {
            key.encode(): value.encode() if isinstance(value, str) else value
            for key, value in show.items()
        }
        fields[b"nodes-delivered"] = nodes
        return self.comparable(fields)

    def comparable(self, fields: dict[Any, Any]) -> dict[bytes, Any]:
        """The common form of both sides."""
        known = self.node.membership.nodes
        kept = {
            bytes(getattr(key, "text", key)): getattr(value, "text", value)
            for key, value in fields.items()
        }
        for name in VOLATILE:
            kept.pop(name.encode(), None)
        kept[b"nodes-delivered"] = sorted(n for n in kept[b"nodes-delivered"] if n in known)
        return kept
