"""Arbitrary bytes from strangers, however the network cuts them."""

from __future__ import annotations

import random
import struct

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.bus import (
    Gossip,
    GossipEntry,
    JobSignal,
    JobsMessage,
    Message,
    NodeFailed,
    QueueSignal,
)
from disque_tx.messages.bustypes import (
    GOTJOB,
    MEET,
    NEEDJOBS,
    PAUSE,
    PING,
    PONG,
    REPLJOB,
    WORKING,
    YOURJOBS,
)
from disque_tx.messages.records import JobRecord
from disque_tx.wire.bus.parser import encode
from tests.fuzz.checks import (
    bus_seeds,
    check_bus,
    check_job,
    check_nodesfile,
    check_policiesfile,
    job_seeds,
    message_fields,
    nodesfile_seeds,
    own_seeds,
    parsed,
    policiesfile_seeds,
)

U8 = st.integers(0, 2**8 - 1)
U16 = st.integers(0, 2**16 - 1)
U32 = st.integers(0, 2**32 - 1)
U63 = st.integers(0, 2**63 - 1)
NAME = st.binary(min_size=40, max_size=40)
IP = st.text("0123456789abcdefABCDEF:.", max_size=45).map(str.encode)
CUTS = st.lists(st.integers(0, 2**16), max_size=8)


@st.composite
def entries(draw: st.DrawFn) -> GossipEntry:
    """What a node gossips about another."""
    entry = GossipEntry(draw(NAME), draw(IP), draw(U16), draw(U16))
    entry.ping_sent_ms, entry.pong_received_ms = draw(U32), draw(U32)
    entry.bus_port = draw(U16)
    return entry


@st.composite
def jobs(draw: st.DrawFn) -> JobRecord:
    """A job with arbitrary values."""
    queue, body = draw(st.binary(max_size=20)), draw(st.binary(max_size=40))
    nodes = tuple(draw(st.lists(NAME, max_size=3)))
    made = JobRecord(
        draw(NAME),
        queue,
        body,
        nodes,
        draw(U63),
        0,
        delay_s=draw(U32),
        retry_s=draw(U32),
        repl=draw(U16),
    )
    made.state, made.flags = draw(st.integers(0, 15)), draw(U8)
    made.nacks, made.deliveries = draw(U16), draw(U16)
    return made


@st.composite
def jobs_messages(draw: st.DrawFn) -> Message:
    """Jobs and their remaining TTLs."""
    moving = draw(st.lists(jobs(), max_size=4))
    lives_s = [draw(st.integers(1, 2**32 - 1)) for _ in moving]
    return JobsMessage(draw(st.sampled_from((REPLJOB, YOURJOBS))), moving, lives_s)


BODIES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Gossip, st.sampled_from((PING, PONG, MEET)), st.lists(entries(), max_size=4)),
    st.builds(NodeFailed, NAME),
    jobs_messages(),
    st.builds(JobSignal, st.sampled_from((*range(GOTJOB, NEEDJOBS), WORKING)), NAME, U32),
    st.builds(QueueSignal, st.sampled_from((NEEDJOBS, PAUSE)), st.binary(max_size=50), U32),
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message that can be sent."""
    message = draw(BODIES)
    message.sender, message.port, message.flags = draw(NAME), draw(U16), draw(U16)
    message.mflags, message.ip, message.bus_port = draw(U8), draw(IP), draw(U16)
    if draw(st.booleans()):
        message.epoch, message.serial, message.features = draw(U63), draw(U63), draw(U32)
    return message


def damaged(seeds: list[bytes]) -> st.SearchStrategy[bytes]:
    """Real input with bytes overwritten, removed or inserted."""
    place = st.integers(0, 2**16)
    edit = st.tuples(place, st.integers(0, 8), st.binary(max_size=8))

    def apply(seed: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
        for at, gone, new in edits:
            at %= len(seed) + 1
            seed = seed[:at] + new + seed[at + gone :]
        return seed

    return st.builds(apply, st.sampled_from(seeds), st.lists(edit, max_size=4))


def framed(data: bytes) -> bytes:
    """``data`` with correct signature, length and version, so that its body is parsed."""
    data = data.ljust(144, b"\0")
    return b"DbuZ" + struct.pack(">IH", len(data), 1) + data[10:]


class RoundTripTests(SynchronousTestCase):
    """What is sent is what is received."""

    @given(st.lists(messages(), max_size=4), CUTS)
    def test_messages(self, sent: list[Message], cuts: list[int]) -> None:
        """Any messages are decoded unchanged and in order, however the network cuts them."""
        stream = b"".join(map(encode, sent))
        received, end = parsed([stream])
        self.assertEqual([*map(message_fields, sent)], [*map(message_fields, received)])
        self.assertEqual(("", len(sent), 0, 0), end)
        check_bus(stream, cuts)


class BusTests(SynchronousTestCase):
    """Any bytes are messages or refused, independent of how they are cut."""

    @given(st.binary(max_size=400), CUTS)
    def test_anything(self, data: bytes, cuts: list[int]) -> None:
        """Completely arbitrary bytes."""
        check_bus(data, cuts)
        check_bus(framed(data), cuts)

    @given(st.lists(damaged(own_seeds()), max_size=3), CUTS)
    def test_damaged(self, pieces: list[bytes], cuts: list[int]) -> None:
        """Messages with errors, including errors in lengths and counts."""
        check_bus(b"".join(pieces), cuts)
        check_bus(b"".join(map(framed, pieces)), cuts)

    def test_every_number(self) -> None:
        """Each byte of each kind of message, at both ends of its range and in the middle."""
        by_type = {data[12:14]: data for data in bus_seeds() if len(data) < 500}
        self.assertEqual(16, len(by_type))
        chance = random.Random(3)
        for data in by_type.values():
            for at in range(len(data)):
                if 16 < at < 56:
                    continue  # inside the sender's ID
                for value in (0x00, 0x7F, 0xFF, chance.randrange(256)):
                    check_bus(data[:at] + bytes([value]) + data[at + 1 :])


class OtherInputTests(SynchronousTestCase):
    """Job records and files from elsewhere."""

    @given(damaged(job_seeds()))
    def test_job(self, data: bytes) -> None:
        """A job record with errors, with and without the right length before it."""
        check_job(data)
        check_job(struct.pack("<I", max(0, len(data) - 4)) + data[4:])

    @given(damaged(nodesfile_seeds()))
    def test_nodesfile(self, data: bytes) -> None:
        """A nodes file with errors."""
        check_nodesfile(data)

    @given(damaged(policiesfile_seeds()))
    def test_policiesfile(self, data: bytes) -> None:
        """Any file at all is read as a table of policies, or refused."""
        check_policiesfile(data)
