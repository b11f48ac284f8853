"""HOLDERS as bytes (cluster protocol, section 21.11)."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError
from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import CAN_HEAL
from disque_tx.messages.holders import ARRIVED, HOLDERS_MAX, JOBS_MAX, HoldersMessage
from disque_tx.messages.limits import U32_MAX
from disque_tx.wire.bus.holders import holders_parts, read_holders
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode

SENDER = b"a" * 40
JOB_ID = b"D-aaaaaaaa-" + b"1" * 24 + b"-05a1"


def parsed(data: bytes, known: bool = True) -> Message | None:
    """What a node reads."""
    parser = BusParser(PEER_BYTES_MAX)
    if not known:
        parser.features &= ~CAN_HEAL
    parser.feed(data)
    return parser.next()


class HoldersTests(SynchronousTestCase):
    """From a value to bytes and back."""

    def setUp(self) -> None:
        self.message = HoldersMessage([JOB_ID], (b"b" * 40, b"c" * 40), 1_500, U32_MAX)
        self.message.sender = SENDER

    def test_there_and_back(self) -> None:
        """A node that knows HOLDERS reads what another one wrote, flags included."""
        self.message.mflags = ARRIVED
        read = parsed(encode(self.message))
        assert isinstance(read, HoldersMessage)
        self.assertEqual(([JOB_ID], (b"b" * 40, b"c" * 40)), (read.job_ids, read.holders))
        self.assertEqual((1_500, U32_MAX), (int(read.delay_ms), int(read.priority)))
        self.assertEqual((SENDER, ARRIVED), (read.sender, int(read.mflags)))

    def test_of_several_jobs(self) -> None:
        """One list for as many jobs as a message may name, in their order."""
        for count in (2, JOBS_MAX):
            job_ids = [b"D-aaaaaaaa-%024d-05a1" % number for number in range(count)]
            self.message = HoldersMessage(job_ids, (b"b" * 40, b"c" * 40), 0, 0)
            self.message.sender = SENDER
            read = parsed(encode(self.message))
            assert isinstance(read, HoldersMessage)
            self.assertEqual((job_ids, (b"b" * 40, b"c" * 40)), (read.job_ids, read.holders))
        more = HoldersMessage([JOB_ID] * (JOBS_MAX + 1), (), 0, 0)
        more.sender = SENDER
        self.assertIsNone(parsed(encode(more)))

    def test_longest_delay(self) -> None:
        """A delay that does not fit into its field is the longest one: a copy is never early by
        more than that."""
        self.message.delay_ms = U32_MAX + 5
        read = parsed(encode(self.message))
        assert isinstance(read, HoldersMessage)
        self.assertEqual(U32_MAX, int(read.delay_ms))

    def test_not_known(self) -> None:
        """A node that does not know HOLDERS skips it, as originals do."""
        self.assertIsNone(parsed(encode(self.message), known=False))

    def test_damaged(self) -> None:
        """A body that is cut off anywhere, or too long, is no message."""
        body = b"".join(holders_parts(self.message))
        for end in range(len(body)):
            self.assertIsNone(read_holders(2, body, 0, end))
        self.assertIsNone(read_holders(2, body + b"x", 0, len(body) + 1))
        self.assertIsNotNone(read_holders(2, body, 0, len(body)))

    def test_too_many(self) -> None:
        """A list that no cluster needs is no message, however long the body is."""
        body = b"".join(holders_parts(self.message)) + b"d" * 40 * (HOLDERS_MAX - 1)
        self.assertIsNone(read_holders(HOLDERS_MAX + 1, body, 0, len(body)))

    def test_wrong_length(self) -> None:
        """What is no ID of a node is refused before it is sent."""
        self.message.holders = (b"b" * 39,)
        with self.assertRaises(LocalError):
            holders_parts(self.message)
