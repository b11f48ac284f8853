"""Hot messages, with and without objects for them, one by one and in bulk: the same bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.bus import (
    NOREPLY,
    Bulk,
    Gossip,
    JobCopy,
    JobSignal,
    JobsMessage,
    Message,
    Sender,
)
from disque_tx.messages.bustypes import (
    BULK,
    CAN_BULK,
    DELJOB,
    GOTACK,
    GOTJOB,
    QUEUED,
    REPLJOB,
    SETACK,
)
from disque_tx.messages.records import JobRecord
from disque_tx.wire.bus.bulk import BODY_BYTES_MAX, MESSAGES_MAX, Values
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode
from disque_tx.wire.bus.writer import BusWriter
from tests import profiles  # noqa: F401
from tests.fuzz.checks import bus_seeds, cut, message_fields
from tests.wire.test_busfuzz import CUTS, U32, damaged, framed, jobs

ME = b"a" * 40
SENDER = Sender(ME, 7711, 4, b"", 0)
SIGNALS = (GOTJOB, SETACK, GOTACK, DELJOB)
#: A message: type, job ID or job, aux or seconds left, flags.
Call = tuple[int, bytes | JobRecord, int, int]


def job_id(number: int) -> bytes:
    """The ID of a job."""
    return b"D-aaaaaaaa-%024d-05a1" % number


def a_job(number: int = 1, body: bytes = b"body") -> JobRecord:
    """A job."""
    return JobRecord(job_id(number), b"q", body, (ME,), 1, 0, delay_s=0, retry_s=1, repl=1)


def write(sink: BusWriter, calls: Iterable[Call]) -> None:
    """Send messages without objects for them."""
    for kind, about, number, mflags in calls:
        if isinstance(about, JobRecord):
            sink.copy(SENDER, JobCopy(about, number), mflags)
        else:
            sink.signal(SENDER, kind, about, number)


def value(call: Call) -> Message:
    """The same message as a value."""
    kind, about, number, mflags = call
    message: Message
    if isinstance(about, JobRecord):
        message = JobsMessage(kind, [about], [number])
        message.mflags = mflags
    else:
        message = JobSignal(kind, about, number)
    SENDER.sign(message)
    return message


def written(calls: Iterable[Call], bulk: bool) -> bytes:
    """The bytes of messages that are sent without objects."""
    writer = BusWriter([])
    writer.bulk = bulk
    write(writer, calls)
    return writer.take()


def calls() -> st.SearchStrategy[list[Call]]:
    """Hot messages, in any order."""
    name = st.binary(min_size=40, max_size=40)
    signals: st.SearchStrategy[Call] = st.tuples(st.sampled_from(SIGNALS), name, U32, st.just(0))
    flags = st.sampled_from((0, NOREPLY))
    copies: st.SearchStrategy[Call] = st.tuples(st.just(REPLJOB), jobs(), U32, flags)
    return st.lists(st.one_of(signals, copies), max_size=12)


Outcome = tuple[list[tuple[object, ...]], str, int, int, int]


def outcome(chunks: list[bytes], hot: bool, bulk: bool = True) -> Outcome:
    """All messages in a stream as values, the error at its end, how many were received and
    ignored, bytes left. ``hot``: those that can be are read without objects; ``bulk``: the reader
    knows bulks."""
    parser = BusParser(PEER_BYTES_MAX)
    if not bulk:
        parser.features &= ~CAN_BULK
    values = Values()
    error = ""
    try:
        for chunk in chunks:
            parser.feed(chunk)
            while parser.advance():
                before = len(values.messages)
                if hot and parser.read_hot(ME, values):
                    for message in values.messages[before:]:
                        SENDER.sign(message)
                    continue
                found = parser.message()
                if isinstance(found, Bulk):
                    values.messages += found.messages
                elif found is not None:
                    values.messages.append(found)
    except PeerError as caught:
        error = str(caught)
    fields = [message_fields(message)[:1] + _about(message) for message in values.messages]
    rest = 0 if error else parser.pending_bytes()
    return fields, error, parser.received, parser.ignored, rest


def _about(message: Message) -> tuple[object, ...]:
    """What the node uses of a message. Of the hot ones it does not use the header, of jobs only
    those of a REPLJOB that is one."""
    fields = message_fields(message)
    if message.type in SIGNALS:
        return (message.sender, *fields[10:])
    if isinstance(message, JobsMessage) and message.type == REPLJOB:
        if message.announced != 1 or not message.jobs:
            return ()
        return (message.sender, message.mflags, *fields[10:])
    return fields[1:]


class SameBytesTests(SynchronousTestCase):
    """What is sent without objects is what is sent as values."""

    @given(calls())
    def test_one_by_one(self, sent: list[Call]) -> None:
        """A node that cannot take bulks gets the original's messages, byte for byte."""
        self.assertEqual(b"".join(encode(value(call)) for call in sent), written(sent, False))

    @given(calls())
    def test_bulk(self, sent: list[Call]) -> None:
        """A bulk holds the same messages in the same order; a single message is no bulk."""
        messages = [value(call) for call in sent]
        expected = b""
        if len(sent) == 1:
            expected = encode(messages[0])
        elif sent:
            bulk = Bulk(messages)
            SENDER.sign(bulk)
            expected = encode(bulk)
        self.assertEqual(expected, written(sent, True))

    @given(calls(), CUTS)
    def test_come_back(self, sent: list[Call], cuts: list[int]) -> None:
        """Whatever the network does to the pieces, the receiver has the messages that were sent,
        and counts each of them, in bulk or not."""
        single, bulk = written(sent, False), written(sent, True)
        expected = outcome([single], hot=False)
        self.assertEqual((len(sent), 0), expected[2:4])
        for hot in (False, True):
            self.assertEqual(expected, outcome(cut(single, cuts), hot))
            self.assertEqual(expected, outcome(cut(bulk, cuts), hot))

    def test_layout(self) -> None:
        """Other programs find the runs of a bulk where the documentation has them."""
        sent: list[Call] = [
            (GOTJOB, job_id(1), 0, 0),
            (GOTJOB, job_id(2), 0, 0),
            (SETACK, job_id(1), 3, 0),
            (REPLJOB, a_job(3), 60, NOREPLY),
        ]
        data = written(sent, True)
        record = written(sent[3:], False)[152:]
        body = (
            struct.pack(">HBBI", GOTJOB, 0, 0, 2)
            + (job_id(1) + bytes(4) + job_id(2) + bytes(4))
            + (struct.pack(">HBBI", SETACK, 0, 0, 1) + job_id(1) + struct.pack(">I", 3))
            + (struct.pack(">HBBI", REPLJOB, NOREPLY, 0, 1) + record)
        )
        start = struct.pack(">4sIHxxHH40s", b"DbuZ", 144 + len(body), 1, BULK, 4, ME)
        self.assertEqual(start, data[:56])
        self.assertEqual(bytes(80), data[56:136])
        self.assertEqual(struct.pack(">HHxB2x", 7711, 4, 0), data[136:144])
        self.assertEqual(body, data[144:])


class WriterTests(SynchronousTestCase):
    """Which messages become one bulk."""

    def setUp(self) -> None:
        self.writer = BusWriter([])
        self.writer.bulk = True

    def types(self) -> list[tuple[int, int]]:
        """Type, and number of messages, of everything that is to be sent."""
        data = self.writer.take()
        found = []
        while data:
            size, kind, count = struct.unpack_from(">4xI4xHH", data)
            found.append((kind, count))
            data = data[size:]
        return found

    def test_order_with_others(self) -> None:
        """A message that cannot be in a bulk ends it, so that all arrive in order."""
        gossip = Gossip(0, [])
        SENDER.sign(gossip)
        for number in (1, 2):
            write(self.writer, [(GOTJOB, job_id(number), 0, 0)])
        self.writer.send(gossip)
        write(self.writer, [(DELJOB, job_id(1), 0, 0)])
        self.assertEqual([(BULK, 2), (0, 0), (DELJOB, 0)], self.types())

    def test_bounds(self) -> None:
        """However much there is to send, no bulk is longer than its receiver accepts."""
        write(self.writer, [(GOTJOB, job_id(n), 0, 0) for n in range(MESSAGES_MAX + 2)])
        self.assertEqual([(BULK, MESSAGES_MAX), (BULK, 2)], self.types())
        body = bytes(BODY_BYTES_MAX // 5)
        write(self.writer, [(REPLJOB, a_job(n, body), 1, 0) for n in range(6)])
        self.assertEqual([(BULK, 4), (BULK, 2)], self.types())
        huge: Call = (REPLJOB, a_job(1, bytes(2 * BODY_BYTES_MAX)), 1, 0)
        write(self.writer, [huge, (GOTJOB, job_id(1), 0, 0), huge])
        self.assertEqual([(REPLJOB, 0), (GOTJOB, 0), (REPLJOB, 0)], self.types())

    def test_filled_to_the_last_byte(self) -> None:
        """What the writer sends as one bulk is one to the receiver, near its bound, too."""
        for size in range(BODY_BYTES_MAX - 280, BODY_BYTES_MAX + 20):
            sent: list[Call] = [(REPLJOB, a_job(1, bytes(size)), 1, 0), (GOTJOB, job_id(2), 0, 0)]
            write(self.writer, sent)
            _, error, received, ignored, rest = outcome([self.writer.take()], True)
            self.assertEqual(("", 2, 0, 0), (error, received, ignored, rest), size)

    def test_other_sender(self) -> None:
        """What a node reports about itself may change within a turn: each message has what was
        true when it was sent."""
        write(self.writer, [(GOTJOB, job_id(1), 0, 0), (GOTJOB, job_id(2), 0, 0)])
        self.writer.signal(Sender(ME, 7711, 132, b"", 0), GOTJOB, job_id(3), 0)
        self.assertEqual([(BULK, 2), (GOTJOB, 0)], self.types())

    def test_no_longer(self) -> None:
        """A node that no longer takes bulks gets single messages from the next one on."""
        write(self.writer, [(GOTJOB, job_id(1), 0, 0), (GOTJOB, job_id(2), 0, 0)])
        self.writer.bulk = False
        write(self.writer, [(GOTJOB, job_id(3), 0, 0)])
        self.writer.bulk = True
        write(self.writer, [(GOTJOB, job_id(4), 0, 0)])
        self.assertEqual([(BULK, 2), (GOTJOB, 0), (GOTJOB, 0)], self.types())

    def test_refused(self) -> None:
        """What does not fit its field is not sent at all, and does not damage what was."""
        write(self.writer, [(GOTJOB, job_id(1), 0, 0)])
        self.assertRaises(LocalError, self.writer.signal, SENDER, GOTJOB, b"short", 0)
        self.assertRaises(LocalError, self.writer.signal, SENDER, SETACK, job_id(1), 1 << 32)
        copy = JobCopy(a_job(), 1 << 32)
        self.assertRaises(LocalError, self.writer.copy, SENDER, copy, 0)
        self.assertEqual([(GOTJOB, 0)], self.types())

    def test_encoded_once(self) -> None:
        """All receivers of a copy get the same bytes object, however many they are."""
        copy = JobCopy(a_job(), 60)
        self.writer.copy(SENDER, copy, 0)
        record = copy.record
        self.writer.copy(SENDER, copy, NOREPLY)
        self.assertIs(record, copy.record)


def a_bulk(*sent: Call) -> bytes:
    """The bytes of a bulk."""
    bulk = Bulk([value(call) for call in sent])
    SENDER.sign(bulk)
    return encode(bulk)


def body_of(*runs: bytes, count: int) -> bytes:
    """A bulk with this body."""
    header = bytearray(a_bulk((GOTJOB, job_id(1), 0, 0))[:144])
    body = b"".join(runs)
    struct.pack_into(">I", header, 4, 144 + len(body))
    struct.pack_into(">H", header, 14, count)
    return bytes(header) + body


RUN = struct.Struct(">HBBI")


class DamageTests(SynchronousTestCase):
    """Bulks that no node of ours sends."""

    def assert_ignored(self, data: bytes, why: str) -> None:
        """It is received and ignored, both ways, and what follows is read."""
        good = written([(GOTACK, job_id(9), 1, 0)], False)
        for hot in (False, True):
            fields, error, received, ignored, rest = outcome([data + good], hot)
            self.assertEqual((1, "", 2, 1, 0), (len(fields), error, received, ignored, rest), why)

    def test_counts(self) -> None:
        """The number of messages must be that of the header, at least 1, and bounded; nothing of
        another bulk is processed, not even what is right in it."""
        signal = job_id(1) + bytes(4)
        one = RUN.pack(GOTJOB, 0, 0, 1) + signal
        for count in (0, 2, MESSAGES_MAX + 1):
            self.assert_ignored(body_of(one, count=count), f"count {count}")
        self.assert_ignored(body_of(RUN.pack(GOTJOB, 0, 0, 0), one, count=1), "empty run")
        self.assert_ignored(body_of(count=0), "nothing")
        self.assert_ignored(body_of(RUN.pack(GOTJOB, 0, 0, 2) + signal, count=2), "too short")
        self.assert_ignored(body_of(RUN.pack(GOTJOB, 0, 0, 0xFFFF_FFFF), count=1), "announced")
        self.assert_ignored(body_of(one, one[:-1], count=2), "cut")
        self.assert_ignored(body_of(one, b"\0", count=1), "more")
        run = RUN.pack(GOTJOB, 0, 0, MESSAGES_MAX + 1) + signal * (MESSAGES_MAX + 1)
        self.assert_ignored(body_of(run, count=MESSAGES_MAX + 1), "many")
        record = written([(REPLJOB, a_job(1, bytes(BODY_BYTES_MAX)), 1, 0)], False)[152:]
        self.assert_ignored(body_of(RUN.pack(REPLJOB, 0, 0, 1) + record, count=1), "long")

    def test_of_one(self) -> None:
        """A bulk of a single message counts, whoever made it so."""
        data = body_of(RUN.pack(GOTJOB, 0, 0, 1) + job_id(1) + bytes(4), count=1)
        for hot in (False, True):
            fields, error, received, ignored, _rest = outcome([data], hot)
            self.assertEqual((1, "", 1, 0), (len(fields), error, received, ignored))

    def test_types(self) -> None:
        """Messages of other types are never in a bulk, nor is another bulk."""
        signal = job_id(1) + bytes(4)
        for kind in (0, QUEUED, BULK, 0x8005, 32):
            run = RUN.pack(kind, 0, 0, 1) + signal
            self.assert_ignored(body_of(run, count=1), f"type {kind}")
        self.assert_ignored(body_of(RUN.pack(GOTJOB, 0, 1, 1) + signal, count=1), "zero")

    def test_damaged_job(self) -> None:
        """One damaged job is a damaged bulk."""
        good = written([(REPLJOB, a_job(), 1, 0)], False)[152:]
        for at in (0, 72, 77, 85):
            bad = good[:at] + b"\x7f" + good[at + 1 :]
            run = RUN.pack(REPLJOB, 0, 0, 2) + good + bad
            self.assert_ignored(body_of(run, count=2), f"byte {at}")

    def test_out_of_range(self) -> None:
        """As of any message, numbers out of range in the header are damage."""
        for offset in (8, 104, 112):
            data = bytearray(a_bulk((GOTJOB, job_id(1), 0, 0), (GOTJOB, job_id(2), 0, 0)))
            data[offset] = 0x80
            self.assert_ignored(bytes(data), f"offset {offset}")

    def test_not_known(self) -> None:
        """A node without the type ignores it, as a node of the original does."""
        data = written([(GOTJOB, job_id(1), 0, 0), (GOTJOB, job_id(2), 0, 0)], True)
        for hot in (False, True):
            self.assertEqual(([], "", 1, 1, 0), outcome([data], hot, bulk=False))

    def test_not_sent(self) -> None:
        """What no receiver would accept cannot be encoded."""
        queued = JobSignal(QUEUED, job_id(1))
        two = JobsMessage(REPLJOB, [a_job(), a_job()], [1, 1])
        alone: list[Message] = [queued, two, Message(35), JobSignal(GOTJOB, b"")]
        for bulk in (Bulk([]), *[Bulk([message]) for message in alone]):
            SENDER.sign(bulk)
            self.assertRaises(LocalError, encode, bulk)


def from_me(data: bytes) -> bytes:
    """The message with the sender of these tests."""
    return data[:16] + ME + data[56:] if len(data) >= 56 else data


def seeds() -> list[bytes]:
    """Messages of the original from this sender, and bulks."""
    some: list[Call] = [(kind, job_id(kind), 1, 0) for kind in SIGNALS]
    bulk = written([*some, (REPLJOB, a_job(1), 60, 0), (REPLJOB, a_job(2), 60, NOREPLY)], True)
    return [*map(from_me, bus_seeds()), bulk, written(some, True)]


class BothWaysTests(SynchronousTestCase):
    """Any bytes have the same outcome, read with or without objects."""

    def check(self, data: bytes, cuts: Iterable[int] = ()) -> None:
        """The same messages, errors and counts."""
        for bulk in (True, False):
            expected = outcome([data], False, bulk)
            self.assertEqual(expected, outcome([data], True, bulk))
            self.assertEqual(expected, outcome(cut(data, cuts), True, bulk))

    def test_vectors(self) -> None:
        """Every message that an original was recorded to send."""
        for data in (*bus_seeds(), *seeds()):
            self.check(data)
            for size in range(0, len(data), 7):
                self.check(data[:size])

    def test_every_number(self) -> None:
        """Each byte of each kind of hot message and of a bulk, at the ends of its range."""
        by_type = {data[12:14]: data for data in seeds() if len(data) < 1_500}
        for kind in (*SIGNALS, REPLJOB, BULK):
            data = by_type[struct.pack(">H", kind)]
            for at in range(len(data)):
                for byte in (0x00, 0x01, 0x7F, 0xFF):
                    self.check(data[:at] + bytes([byte]) + data[at + 1 :])

    @given(st.lists(damaged(seeds()), max_size=3), CUTS)
    def test_damaged(self, pieces: list[bytes], cuts: list[int]) -> None:
        """Messages with errors, including errors in lengths and counts."""
        self.check(b"".join(pieces), cuts)
        self.check(b"".join(map(framed, pieces)), cuts)
