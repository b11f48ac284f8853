"""The encoding of the cluster bus, compared with messages that the original sent and accepted."""

from __future__ import annotations

import json
import struct
import tracemalloc
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.bus import (
    INCR_NACKS,
    NOREPLY,
    Gossip,
    GossipEntry,
    JobSignal,
    JobsMessage,
    Message,
    NodeFailed,
    QueueSignal,
)
from disque_tx.messages.bustypes import (
    ENQUEUE,
    GOTACK,
    GOTJOB,
    MEET,
    NEEDJOBS,
    PING,
    REPLJOB,
    TYPE_NAMES,
    YOURJOBS,
)
from disque_tx.messages.records import DELIVERED, JobRecord
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, STRANGER_BYTES_MAX, BusParser, encode
from disque_tx.wire.bus.writer import BusWriter
from tests.fuzz.checks import VECTORS, message_fields

ME = b"a" * 40
JOB_ID = b"D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"


def rows() -> list[Any]:
    """Every message that the original was recorded to send."""
    files = sorted((VECTORS / "bus").glob("*.json"))
    return [row for file in files for row in json.loads(file.read_bytes())]


def cases(kind: str) -> list[Any]:
    """What the original was sent, and how it reacted."""
    found = json.loads((VECTORS / "acceptance.json").read_bytes())["cases"]
    return [case for case in found if case["kind"] == kind]


def from_me(message: Message, port: int = 7711, flags: int = 4) -> Message:
    """The message with a sender."""
    message.sender, message.port, message.flags = ME, port, flags
    return message


def job(body: bytes = b"body") -> JobRecord:
    """A job that was delivered."""
    made = JobRecord(
        JOB_ID,
        b"queue",
        body,
        (ME, b"b" * 40),
        1_795_176_613_496_000_000,
        9,
        delay_s=1,
        retry_s=2,
        repl=3,
    )
    made.flags = DELIVERED | 1
    return made


def fed(data: bytes, limit_bytes: int = STRANGER_BYTES_MAX) -> BusParser:
    """A parser that has received this."""
    parser = BusParser(limit_bytes)
    parser.feed(data)
    return parser


def only(data: bytes) -> Message:
    """The single message in these bytes."""
    parser = fed(data)
    message = parser.next()
    assert message is not None
    assert parser.next() is None
    assert parser.pending_bytes() == 0
    return message


def everything(parser: BusParser) -> list[Message]:
    """All complete messages."""
    found: list[Message] = []
    while (message := parser.next()) is not None:
        found.append(message)
    return found


def edited(message: Message, offset: int, data: bytes) -> bytes:
    """The message with other bytes at an offset."""
    whole = bytearray(encode(message))
    whole[offset : offset + len(data)] = data
    return bytes(whole)


def lengthened(message: Message, change: int) -> bytes:
    """The message with bytes added or removed, and a matching length."""
    whole = encode(message)
    whole = whole + b"x" * change if change > 0 else whole[: len(whole) + change]
    return whole[:4] + struct.pack(">I", len(whole)) + whole[8:]


def shortened(data: bytes, missing: int) -> bytes:
    """A message about one job without its last bytes, with all three lengths adjusted."""
    data = data[: len(data) - missing]
    size, rest = struct.pack(">I", len(data) - 152), struct.pack("<I", len(data) - 156)
    return data[:4] + struct.pack(">I", len(data)) + data[8:148] + size + rest + data[156:]


def described(message: Message) -> dict[str, Any]:
    """The message in the form of the vectors."""
    words: dict[str, Any] = {
        "type": message.type,
        "sender": message.sender.decode(),
        "port": message.port,
        "flags": message.flags,
        "mflags": [message.mflags, 0, 0],
    }
    if isinstance(message, Gossip):
        words["gossip"] = [entry_described(entry) for entry in message.entries]
    elif isinstance(message, JobsMessage):
        words["numjobs"] = message.announced
        pairs = zip(message.jobs, message.lives_s, strict=True)
        words["jobs"] = [job_described(*pair) for pair in pairs]
    elif isinstance(message, JobSignal):
        words |= {"id": message.job_id.decode(), "aux": message.aux}
    elif isinstance(message, QueueSignal):
        words |= {"qname_hex": message.queue.hex(), "aux": message.aux}
    elif isinstance(message, NodeFailed):
        words["about"] = message.about.decode()
    return words


def entry_described(entry: GossipEntry) -> dict[str, Any]:
    """The gossip entry in the form of the vectors."""
    return {
        "nodename": entry.id.decode(),
        "ping_sent": entry.ping_sent_ms,
        "pong_received": entry.pong_received_ms,
        "ip": entry.ip.decode(),
        "port": entry.port,
        "flags": entry.flags,
        "notused1": entry.bus_port,
        "notused2": 0,
    }


def job_described(record: JobRecord, life_s: int) -> dict[str, Any]:
    """The job in the form of the vectors."""
    return {
        "id": record.id.decode(),
        "state": record.state,
        "flags": record.flags,
        "repl": record.repl,
        "etime": life_s,
        "ctime": record.ctime,
        "delay": record.delay_s,
        "retry": record.retry_s,
        "num_nacks": record.nacks,
        "num_deliv": record.deliveries,
        "queue_hex": record.queue.hex(),
        "body_hex": record.body.hex(),
        "nodes": [node.decode() for node in record.nodes],
    }


class VectorTests(SynchronousTestCase):
    """Messages of the original."""

    def test_understood(self) -> None:
        """Every field of every message that an original sent has its meaning."""
        self.maxDiff = None
        for row in rows():
            got, wanted = described(only(bytes.fromhex(row["hex"]))), dict(row["decoded"])
            for words in wanted.get("jobs", ()):
                for implied in ("len", "gc_retry", "queue", "body"):
                    del words[implied]
            self.assertEqual({name: wanted[name] for name in got}, got, row["name"])

    def test_written(self) -> None:
        """Our messages are byte for byte those of an original."""
        for row in rows():
            message = only(bytes.fromhex(row["hex"]))
            self.assertEqual(row["hex"], encode(message).hex(), row["name"])

    def test_complete(self) -> None:
        """All 16 types are covered."""
        self.assertEqual(set(TYPE_NAMES), {row["type"] for row in rows()})


class AcceptanceTests(SynchronousTestCase):
    """How an original reacted to the same bytes."""

    def test_connections(self) -> None:
        """The connection is closed, or the rest is read, exactly as with an original."""
        for case in cases("connection"):
            if case["name"] == "totlen_8_then_ping":
                continue  # the one case that the original gets wrong
            parser = fed(bytes.fromhex(case["send_hex"]))
            if case["expect"]["closed"]:
                self.assertRaises(PeerError, parser.next)
                continue
            found = everything(parser)
            self.assertEqual([PING] * len(case["expect"]["replies"]), [m.type for m in found])
            self.assertEqual(parser.received, len(found) + parser.ignored)
            self.assertEqual(0, parser.pending_bytes(), case["name"])

    def test_bytes_that_others_use_in_their_way(self) -> None:
        """Values in our additions to the header that do not have our form are ignored."""
        (case,) = [c for c in cases("connection") if c["name"] == "notused_bytes_set"]
        ping = only(bytes.fromhex(case["send_hex"]))
        self.assertEqual((b"", 0, 0, 0), (ping.ip, ping.bus_port, ping.epoch, ping.serial))

    def test_jobs(self) -> None:
        """Complete jobs before a damaged one are returned, and the damage is reported."""
        seen = {}
        for case in cases("job"):
            for message in everything(fed(bytes.fromhex(case["send_hex"]))):
                assert isinstance(message, JobsMessage)
                seen[case["name"]] = (message.announced, len(message.jobs), bool(message.damage))
        self.assertEqual((2, 2, False), seen["repljob_two_jobs"])
        self.assertEqual((1, 0, True), seen["repljob_bad_joblen"])
        self.assertEqual((1, 0, True), seen["repljob_joblen_too_small"])
        self.assertEqual((1, 1, False), seen["repljob_trailing_bytes"])
        self.assertEqual((2, 1, True), seen["yourjobs_second_corrupt"])
        self.assertEqual((0, 0, False), seen["yourjobs_zero"])


class HeaderTests(SynchronousTestCase):
    """Our additions to the header, in bytes that the original ignores."""

    def numbered(self) -> Message:
        message = from_me(JobSignal(ENQUEUE, JOB_ID, 5))
        message.ip, message.bus_port = b"192.0.2.7", 17_000
        message.epoch, message.serial, message.features = 2**63 - 1, 258, 2**32 - 2
        message.cluster = 0xA1B2_C3D4_E5F6
        return message

    def test_places(self) -> None:
        """Address, bus port, epoch, serial, features and the marks of the cluster are where other
        nodes of this implementation expect them."""
        data = encode(self.numbered())
        self.assertEqual(b"192.0.2.7" + bytes(37), data[56:102])
        self.assertEqual(struct.pack(">HQQI8x", 17_000, 2**63 - 1, 258, 2**32 - 2), data[102:132])
        self.assertEqual((b"\xa1\xb2\xc3\xd4", b"\xe5\xf6"), (data[132:136], data[142:144]))

    def test_come_back(self) -> None:
        """Another node of this implementation gets all of them."""
        message = self.numbered()
        self.assertEqual(message_fields(message), message_fields(only(encode(message))))

    def test_gossip_bus_port(self) -> None:
        """A node with a non-default bus port can be found through other nodes."""
        entry = GossipEntry(b"b" * 40, b"::1", 7712, 128)
        entry.bus_port = 17_001
        message = from_me(Gossip(MEET, [entry]))
        self.assertEqual(struct.pack(">H4x", 17_001), encode(message)[-6:])
        self.assertEqual(message_fields(message), message_fields(only(encode(message))))

    def test_number_out_of_range(self) -> None:
        """A number that would make repeated messages undetectable is ignored."""
        for offset in (104, 112):
            parser = fed(edited(self.numbered(), offset, b"\x80"))
            self.assertIsNone(parser.next())
            self.assertEqual((1, 1), (parser.received, parser.ignored))

    def test_hostile_address(self) -> None:
        """An invalid address never reaches logs, files or other nodes."""
        for hostile in (b"1.2.3.4\r\n", b"\x01", b"a b", b"%s", b"1" * 46):
            message = only(edited(from_me(Gossip(PING, [])), 56, hostile))
            self.assertEqual(b"", message.ip)

    def test_sender_changes(self) -> None:
        """What a node sends about itself is current in every message, even if messages of other
        nodes are encoded in between."""
        for port, flags, ip, mflags in (
            (1, 4, b"", 0),
            (2, 4, b"", 0),
            (2, 132, b"", 0),
            (2, 132, b"::1", 0),
            (2, 132, b"::1", INCR_NACKS),
            (1, 4, b"", 0),
        ):
            for sender in (ME, b"b" * 40):
                message = from_me(JobSignal(GOTACK, JOB_ID, 1), port, flags)
                message.sender, message.ip, message.mflags = sender, ip, mflags
                self.assertEqual(message_fields(message), message_fields(only(encode(message))))

    def test_more_senders_than_remembered(self) -> None:
        """However many nodes send from one process, each message has its own sender."""
        for number in range(600):
            message = from_me(JobSignal(GOTJOB, JOB_ID))
            message.sender = b"%040d" % number
            self.assertEqual(message.sender, only(encode(message)).sender)


class RefusedTests(SynchronousTestCase):
    """Messages that this program must not send."""

    def test_sizes(self) -> None:
        """Names that do not fill their field, or overflow it, would be misread."""
        nobody = JobSignal(GOTJOB, JOB_ID)
        unbodied = from_me(Message(PING))
        two_lives = from_me(JobsMessage(REPLJOB, [job()], [1, 2]))
        for message in (
            *(nobody, unbodied, two_lives),
            from_me(JobSignal(GOTJOB, JOB_ID[1:])),
            from_me(NodeFailed(b"b" * 41)),
            from_me(Gossip(PING, [GossipEntry(b"b" * 39, b"", 1, 0)])),
        ):
            self.assertRaises(LocalError, encode, message)

    def test_address_without_end(self) -> None:
        """An original reads an address up to the next zero byte, so there always is one."""
        entry = GossipEntry(b"b" * 40, b"1" * 45, 1, 0)
        self.assertEqual(0, encode(from_me(Gossip(PING, [entry])))[144 + 93])
        for ip in (b"1" * 46, b"1" * 47):
            entry.ip = ip
            self.assertRaises(LocalError, encode, from_me(Gossip(PING, [entry])))
            message = from_me(JobSignal(GOTJOB, JOB_ID))
            message.ip = ip
            self.assertRaises(LocalError, encode, message)

    def test_numbers(self) -> None:
        """A number that does not fit raises an error here instead of becoming another number
        there."""
        for message in (
            from_me(JobSignal(ENQUEUE, JOB_ID, 2**32)),
            from_me(JobSignal(ENQUEUE, JOB_ID, -1)),
            from_me(QueueSignal(NEEDJOBS, b"q", 2**32)),
            from_me(JobsMessage(REPLJOB, [job()], [2**32])),
            from_me(Gossip(PING, []), port=65_536),
        ):
            self.assertRaises(LocalError, encode, message)

    def test_delivered_stays_here(self) -> None:
        """The flag of a local delivery is not sent to other nodes; all other fields are."""
        message = only(encode(from_me(JobsMessage(REPLJOB, [job()], [77]))))
        assert isinstance(message, JobsMessage)
        self.assertEqual(1, message.jobs[0].flags)
        self.assertEqual(([77], 0), (message.lives_s, message.jobs[0].etime_s))


class FramingTests(SynchronousTestCase):
    """Where one message ends and the next begins."""

    def setUp(self) -> None:
        self.ping = encode(from_me(Gossip(PING, [])))

    def test_end_of_connection(self) -> None:
        """Malformed input closes the connection, also on a second read."""
        for data in (
            *(b"XXXX" + self.ping[4:], b"XXXX" + struct.pack(">I", 8)),
            *(b"DbuZ" + struct.pack(">I", size) for size in (0, 7, 8, 9, 143, 2**32 - 1)),
            b"DbuZ" + struct.pack(">I", STRANGER_BYTES_MAX + 1),
        ):
            parser = fed(data)
            self.assertRaises(PeerError, parser.next)
            self.assertRaises(PeerError, parser.next)

    def test_before_the_end_of_connection(self) -> None:
        """Messages before malformed input are processed."""
        parser = fed(self.ping + b"GET / HTTP/1.1\r\n")
        self.assertIsNotNone(parser.next())
        self.assertRaises(PeerError, parser.next)

    def test_limit_grows(self) -> None:
        """Once a node is known it may send longer messages than a stranger, even in the same
        read."""
        large = encode(from_me(JobsMessage(REPLJOB, [job(b"x" * STRANGER_BYTES_MAX)], [5])))
        self.assertRaises(PeerError, fed(large).next)
        parser = fed(self.ping + large)
        self.assertIsNotNone(parser.next())
        parser.limit_bytes = PEER_BYTES_MAX
        message = parser.next()
        assert isinstance(message, JobsMessage)
        self.assertEqual(STRANGER_BYTES_MAX, len(message.jobs[0].body))

    def test_ignored(self) -> None:
        """Another version, an unknown type or a wrong length costs only that message."""
        messages = [only(bytes.fromhex(row["hex"])) for row in rows()]
        wrong = [lengthened(message, change) for message in messages for change in (1, -1)]
        wrong = [data for data in wrong if len(data) >= 144]
        ping = from_me(Gossip(PING, []))
        wrong += [edited(ping, 8, bytes(2)), edited(ping, 8, b"\0\2"), edited(ping, 12, b"\0\x10")]
        wrong += [edited(ping, 12, b"\xff\xff"), edited(ping, 14, b"\0\1")]
        for data in wrong:
            parser = fed(data + self.ping)
            self.assertEqual([PING], [message.type for message in everything(parser)])
            self.assertEqual((2, 1), (parser.received, parser.ignored))

    def test_announced_is_not_allocated(self) -> None:
        """A header is 144 bytes, whatever length it announces."""
        header = b"DbuZ" + struct.pack(">I", PEER_BYTES_MAX) + self.ping[8:]
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        parser = fed(header, PEER_BYTES_MAX)
        self.assertIsNone(parser.next())
        self.assertEqual(144, parser.pending_bytes())
        self.assertLess(tracemalloc.get_traced_memory()[1], 100_000)

    def test_large_message_in_small_reads(self) -> None:
        """A large job arrives whole, followed by the next message, and leaves no buffer behind."""
        data = encode(from_me(JobsMessage(YOURJOBS, [job(b"x" * 5_000_000)], [5]))) + self.ping
        parser = BusParser(PEER_BYTES_MAX)
        found = []
        for start in range(0, len(data), 1_000):
            parser.feed(data[start : start + 1_000])
            found += everything(parser)
        self.assertEqual([YOURJOBS, PING], [message.type for message in found])
        self.assertEqual(data[: -len(self.ping)], encode(found[0]))
        self.assertEqual(0, parser.pending_bytes())


class KillerTests(SynchronousTestCase):
    """Messages that make the original read or write out of bounds, or crash."""

    def test_wrapping_sums(self) -> None:
        """A size that gives the right sum modulo 2^32 or 2^16 is still the wrong size."""
        for message in (
            from_me(JobsMessage(REPLJOB, [], [])),
            from_me(QueueSignal(NEEDJOBS, b"", 1)),
        ):
            for missing in range(1, 9):
                # What the original read as the size is then the start of the next message.
                self.assert_ignored(lengthened(message, -missing))
            for size in (1, 2**31, 2**32 - 152, 2**32 - 8, 2**32 - 1):
                self.assert_ignored(edited(message, 148, struct.pack(">I", size)))

    def test_gossip_count(self) -> None:
        """Entries that are announced but missing are not read."""
        for count in (1, 631, 65_535):
            self.assert_ignored(edited(from_me(Gossip(MEET, [])), 14, struct.pack(">H", count)))

    def test_gossip_address_without_end(self) -> None:
        """An unterminated address is not read beyond its field."""
        message = from_me(Gossip(PING, [GossipEntry(b"b" * 40, b"", 1, 0)] * 2))
        self.assert_ignored(edited(message, 144 + 104 + 48, b"1" * 46))

    def test_node_count_that_wraps(self) -> None:
        """0x06666667 node IDs are 24 bytes modulo 2^32, but really 4 GiB."""
        message = from_me(JobsMessage(REPLJOB, [job()], [5]))
        data = edited(message, len(encode(message)) - 84, struct.pack("<I", 0x06666667))
        self.assert_damaged(data)
        self.assert_damaged(shortened(data, 80 - 24))

    def test_truncated_jobs(self) -> None:
        """A truncated job is not read beyond the message."""
        whole = encode(from_me(JobsMessage(REPLJOB, [job()], [5])))
        for size in range(len(whole) - 152):
            data = whole[: 152 + size]
            data = data[:4] + struct.pack(">I", len(data)) + data[8:148] + struct.pack(">I", size)
            self.assert_damaged(data + whole[152 : 152 + size])
        for missing in range(1, len(whole) - 156):
            self.assert_damaged(shortened(whole, missing))

    def test_creation_time(self) -> None:
        """A creation time beyond 63 bits is refused as damaged."""
        message = from_me(JobsMessage(REPLJOB, [job()], [5]))
        self.assert_damaged(edited(message, 152 + 52, b"\xff" * 8))

    def test_many_announced(self) -> None:
        """If fewer jobs follow than announced, the complete ones are returned and the rest is
        damage."""
        message = from_me(JobsMessage(YOURJOBS, [job()] * 3, [1, 2, 3]))
        found = only(edited(message, 144, b"\xff" * 4))
        assert isinstance(found, JobsMessage)
        self.assertEqual((2**32 - 1, [1, 2, 3]), (found.announced, found.lives_s))
        self.assertNotEqual("", found.damage)

    def assert_ignored(self, data: bytes) -> None:
        parser = fed(data + encode(from_me(Gossip(PING, []))))
        self.assertEqual([PING], [message.type for message in everything(parser)])
        self.assertEqual((2, 1), (parser.received, parser.ignored))

    def assert_damaged(self, data: bytes) -> None:
        message = only(data)
        assert isinstance(message, JobsMessage)
        self.assertEqual([], message.jobs)
        self.assertNotEqual("", message.damage)


class WriterTests(SynchronousTestCase):
    """What is written to a link."""

    def setUp(self) -> None:
        self.written: list[BusWriter] = []
        self.writer = BusWriter(self.written)
        self.first, self.second = from_me(JobSignal(GOTJOB, JOB_ID)), from_me(Gossip(PING, []))

    def test_one_write(self) -> None:
        """Messages of one turn are sent in one piece, in order, and the link is listed once."""
        self.writer.send(self.first)
        self.writer.send(self.second)
        self.assertEqual([self.writer], self.written)
        self.assertEqual(188 + 144, self.writer.pending_bytes)
        self.assertEqual(encode(self.first) + encode(self.second), self.writer.take())
        self.assertEqual((0, b""), (self.writer.pending_bytes, self.writer.take()))

    def test_next_turn(self) -> None:
        """After its output was taken, a link is listed again when it has something new."""
        for message in (self.first, self.second):
            self.writer.send(message)
            self.assertEqual([self.writer], self.written)
            self.assertEqual(encode(message), self.writer.take())
            self.written.clear()

    def test_refused(self) -> None:
        """A message that cannot be encoded leaves nothing on the link."""
        self.assertRaises(LocalError, self.writer.send, from_me(JobSignal(GOTJOB, b"")))
        self.assertEqual(([], 0), (self.written, self.writer.pending_bytes))

    def test_shared(self) -> None:
        """A message to many nodes is encoded once."""
        other = BusWriter(self.written)
        message = from_me(JobsMessage(REPLJOB, [job()], [5]))
        message.mflags = NOREPLY
        self.writer.send(message)
        other.send(message)
        self.assertIs(self.writer.take(), other.take())
        self.assertEqual([self.writer, other], self.written)
