"""Event records, and the lines that are made of them."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import PeerError
from disque_tx.messages import events
from disque_tx.messages.records import JobRecord
from disque_tx.wire.events.lines import Segment
from disque_tx.wire.events.records import (
    BODY,
    BODY_HASH,
    HEADER,
    MAGIC,
    NO_BODY,
    EventRecorder,
    QueueFilter,
)

NODE = b"3c0f1d52" * 5
PEER = b"b" * 40
BOOT_MS = 1_795_202_588_193
NOW_US = 1_795_202_590_007_170
JOB_ID = b"D-3c0f1d52-h1Py8rZLS8EpKdeg4Nd6eoOF-05a1"


def job(queue: bytes = b"mail", body: bytes = b"hello", job_id: bytes = JOB_ID) -> JobRecord:
    """A job as ADDJOB makes it."""
    ctime = BOOT_MS * 1_000_000
    return JobRecord(
        job_id, queue, body, (), ctime, BOOT_MS // 1000 + 60, delay_s=2, retry_s=5, repl=3
    )


def recorder(bodies: bool = False) -> EventRecorder:
    """A recorder at a fixed time."""
    made = EventRecorder()
    made.wall_us = NOW_US
    made.bodies = bodies
    return made


def header(bodies: int = NO_BODY, first: int = 0) -> bytes:
    """The header of a segment."""
    return HEADER.pack(MAGIC, NODE, BOOT_MS, first, bodies)


def lines(data: bytes) -> list[dict[str, Any]]:
    """The events of a segment."""
    return [json.loads(line) for line in Segment(data).lines(1 << 30).splitlines()]


class LineTests(SynchronousTestCase):
    """Every kind of event as a line."""

    maxDiff = None

    def one(self, made: EventRecorder, bodies: int = NO_BODY) -> dict[str, Any]:
        (line,) = lines(header(bodies, 41) + made.take())
        return line

    def test_delivered(self) -> None:
        """All field names are those of the documentation."""
        made = recorder()
        given_job = job()
        given_job.nacks, given_job.deliveries = 3, 65_535
        made.job(events.DELIVERED, given_job, 0, 12, 25)
        expected = {
            "specversion": "1.0",
            "id": "1795202588193.41",
            "source": "disque:" + NODE.decode(),
            "time": "2026-11-20T19:23:10.007170Z",
            "type": "disque.job.delivered",
            "subject": JOB_ID.decode(),
            "messaging.system": "disque",
            "messaging.operation.type": "receive",
            "messaging.destination.name": "mail",
            "messaging.message.body.size": 5,
            "messaging.client.id": "12",
            "nacks": 3,
            "additional_deliveries": 65_535,
            "wait_ms": 25,
        }
        self.assertEqual(expected, self.one(made))

    def test_counters(self) -> None:
        """Counters of two bytes are the same in the record, to the greatest one, each by itself."""
        counts = (0, 1, 32_767, 32_768, 65_534, 65_535)
        for nacks, deliveries in product(counts, counts):
            made = recorder()
            given_job = job()
            given_job.nacks, given_job.deliveries = nacks, deliveries
            made.job(events.DELIVERED, given_job, 0, 12, 25)
            line = self.one(made)
            found = line["nacks"], line["additional_deliveries"]
            self.assertEqual((nacks, deliveries), found)

    def test_added(self) -> None:
        """The options that the job was added with are included."""
        made = recorder()
        made.added(job(), 60, events.ASYNC, 7, False)
        line = self.one(made)
        self.assertEqual(
            (5, 60, 2, 3, "async", "7", "send"),
            (
                *(line[name] for name in ("retry_s", "ttl_s", "delay_s", "replicate", "reason")),
                *(line[name] for name in ("messaging.client.id", "messaging.operation.type")),
            ),
        )
        self.assertNotIn("body", line)

    def test_queued_at_once(self) -> None:
        """A job that is queued as soon as it is added has two events, with two numbers."""
        made = recorder()
        made.added(job(), 60, 0, 7, True)
        made.job(events.DELIVERED, job(), 0, 12, 25)
        found = lines(header() + made.take())
        self.assertEqual(["added", "queued", "delivered"], [line["type"][11:] for line in found])
        self.assertEqual([f"{BOOT_MS}.{n}" for n in range(3)], [line["id"] for line in found])
        self.assertEqual(3, made.events)
        self.assertNotIn("retry_s", found[1])

    def test_strings(self) -> None:
        """Whatever bytes a name or an ID consists of, a line is JSON that has them: with control
        characters, quotes, backslashes and bytes that are no text at any place."""
        for special in (b'"', b"\\", b"\x00", b"\x1f", b"\x7f", b"\x80", b"\xff", "é".encode()):
            for place in range(8, 24):
                name = b"a" * place + special + b"b" * (40 - place - len(special))
                made = recorder()
                made.job(events.ACKED, job(name, job_id=name), 0, 0, -1)
                text = name.decode("utf-8", "backslashreplace")
                line = self.one(made)
                self.assertEqual(text, line["subject"])
                self.assertEqual(text, line["messaging.destination.name"])

    def test_numbers(self) -> None:
        """Events are counted through thousands, and times have all their digits."""
        for first in (0, 9, 997, 999_998, 123_456_789):
            made = recorder()
            times = [0, 9, 999, 1_000, 1_001, 2_147_483_647]
            for elapsed_ms in times:
                made.job(events.ACKED, job(), 0, 0, elapsed_ms)
            found = lines(header(NO_BODY, first) + made.take())
            numbers = [f"{BOOT_MS}.{number}" for number in range(first, first + len(times))]
            self.assertEqual(numbers, [line["id"] for line in found])
            self.assertEqual(times, [line["run_ms"] for line in found])

    def test_texts(self) -> None:
        """The reasons that consumers gave, and what took the place of a job, are in the lines."""
        made = recorder()
        made.noted(events.NACKED, job(), 0, 0, 700, b'no "route"')
        made.noted(events.DELAYED, job(), events.BY_NACK, 1_500, -1, b"\xff")
        made.noted(events.DELAYED, job(), events.BY_RETRY, 20, -1, b"")
        made.noted(events.DEAD, job(), 0, 0, -1, b"delivered 3 times")
        made.noted(events.MOVED, job(), events.BY_MOVE, 0, -1, JOB_ID)
        found = lines(header() + made.take())
        self.assertEqual((700, 'no "route"'), (found[0]["run_ms"], found[0]["note"]))
        self.assertEqual((1_500, "nack"), (found[1]["backoff_ms"], found[1]["reason"]))
        self.assertEqual("\\xff", found[1]["note"])
        self.assertEqual((20, False), (found[2]["backoff_ms"], "note" in found[2]))
        self.assertEqual(("disque.job.dead", False), (found[3]["type"], "backoff_ms" in found[3]))
        self.assertEqual("delivered 3 times", found[3]["note"])
        self.assertEqual(("move", JOB_ID.decode()), (found[4]["reason"], found[4]["successor"]))

    def test_schedule(self) -> None:
        """The line of an occurrence names its schedule and its time."""
        made = recorder()
        made.noted(events.SCHEDULED, job(), 0, 1_790_000_000, -1, b"night")
        line = self.one(made)
        found = (line["type"], line["schedule"], line["occurrence_s"])
        self.assertEqual(("disque.job.scheduled", "night", 1_790_000_000), found)

    def test_long_wait(self) -> None:
        """A wait that does not fit into its field is written as the largest value."""
        made = recorder()
        made.job(events.DELIVERED, job(), 0, 12, 1 << 40)
        self.assertEqual(2**31 - 1, self.one(made)["wait_ms"])

    def test_bodies(self) -> None:
        """Bodies are included as configured, and only for new jobs."""
        made = recorder(bodies=True)
        made.added(job(body=b"\xff\0"), 60, 0, 7, False)
        data = made.take()
        self.assertEqual("/wA=", lines(header(BODY) + data)[0]["body"])
        hashed = lines(header(BODY_HASH) + data)[0]["body_sha256"]
        self.assertEqual("ea5dbf9596d187e9", hashed[:16])
        made.job(events.QUEUED, job(), 0, 0, -1)
        self.assertNotIn("body", self.one(made, BODY))

    def test_others(self) -> None:
        """Fields that only some kinds of events have."""
        made = recorder()
        made.job(events.REPLICATED, job(), 0, 3, -1)
        made.job(events.WORKING, job(), 0, 60, 700)
        made.job(events.REQUEUED, job(), events.BY_RETRY, 0, -1)
        made.moved(events.EXPORTED, job(), PEER)
        made.paused(b"q", 2)
        made.flushed(9)
        found = lines(header() + made.take())
        self.assertEqual(3, found[0]["copies"])
        self.assertEqual((60, 700), (found[1]["retry_s"], found[1]["run_ms"]))
        self.assertEqual(("disque.job.requeued", "retry"), (found[2]["type"], found[2]["reason"]))
        self.assertEqual(PEER.decode(), found[3]["peer"])
        self.assertEqual(("disque.queue.paused", "out"), (found[4]["type"], found[4]["paused"]))
        self.assertEqual(("disque.node.flushed", 9), (found[5]["type"], found[5]["jobs"]))
        self.assertEqual([f"{BOOT_MS}.{n}" for n in range(6)], [line["id"] for line in found])

    @given(st.binary(max_size=60), st.binary(max_size=40))
    def test_any_name(self, queue: bytes, job_id: bytes) -> None:
        """Names come from strangers: each event is one line of valid JSON, whatever they
        contain."""
        made = recorder()
        made.job(events.QUEUED, job(queue, b"", job_id), 0, 0, -1)
        text = Segment(header() + made.take()).lines(1 << 20)
        self.assertEqual(1, text.count(b"\n"))
        line = json.loads(text)
        self.assertEqual(
            queue.decode("utf-8", "backslashreplace"), line["messaging.destination.name"]
        )
        self.assertEqual(job_id.decode("utf-8", "backslashreplace"), line["subject"])


class SegmentTests(SynchronousTestCase):
    """Segments as a killed process, or a bad disk, leaves them."""

    def test_torn_anywhere(self) -> None:
        """However much is missing at the end, all complete events before it are read."""
        made = recorder(bodies=True)
        ends = []
        for number in range(3):
            made.added(job(), 60, 0, number, False)
            ends.append(made.size())
        data = made.take()
        for size in range(len(data) + 1):
            segment = Segment(header(BODY) + data[:size])
            whole = sum(end <= size for end in ends)
            self.assertEqual(whole, segment.lines(1 << 20).count(b"\n"))
            self.assertEqual(size - ([0, *ends])[whole], segment.torn_bytes)

    @given(st.binary(max_size=300))
    def test_any_bytes(self, data: bytes) -> None:
        """A damaged segment never makes the reader fail, or read out of bounds."""
        segment = Segment(header() + data)
        text = segment.lines(1 << 20)
        self.assertEqual(segment.count, text.count(b"\n"))
        self.assertGreaterEqual(segment.torn_bytes, 0)
        for line in text.splitlines():
            json.loads(line)

    def test_no_segment(self) -> None:
        """A file that is no segment is refused."""
        for data in (b"", MAGIC, b"x" * 200):
            self.assertRaises(PeerError, Segment, data)

    def test_pieces(self) -> None:
        """Lines come in pieces of about the requested size, without repetition or gap."""
        made = recorder()
        for _ in range(50):
            made.job(events.QUEUED, job(), 0, 0, -1)
        data = header() + made.take()
        segment = Segment(data)
        pieces = []
        while piece := segment.lines(1_000):
            pieces.append(piece)
        self.assertGreater(len(pieces), 5)
        self.assertEqual(Segment(data).lines(1 << 20), b"".join(pieces))
        self.assertEqual((NODE.decode(), NOW_US), (segment.node, segment.begun_us))


class FilterTests(SynchronousTestCase):
    """Only the events of selected queues."""

    def test_others_are_not_recorded(self) -> None:
        """Events of other queues, jobs and pauses alike, are left out; a flush of the node is
        included."""
        made = recorder()
        made.wanted = QueueFilter(lambda name: name.startswith(b"m"))
        for queue in (b"mail", b"images", b"mail"):
            made.job(events.QUEUED, job(queue), 0, 0, -1)
            made.moved(events.EXPORTED, job(queue), PEER)
            made.paused(queue, 1)
        made.flushed(1)
        names = [line.get("messaging.destination.name") for line in lines(header() + made.take())]
        self.assertEqual(["mail"] * 6 + [None], names)
        self.assertEqual(7, made.events)

    def test_asked_once(self) -> None:
        """Matching a pattern is slow, so it is done once per name."""
        asked: list[bytes] = []
        wanted = QueueFilter(lambda name: not asked.append(name))  # type: ignore[func-returns-value]
        self.assertEqual([True, True], [wanted.wants(b"q"), wanted.wants(b"q")])
        self.assertEqual([b"q"], asked)
