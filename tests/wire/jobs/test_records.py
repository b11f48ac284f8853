"""What does not fit into a job record, and what is said of it."""

from __future__ import annotations

import struct

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.records import JobRecord
from disque_tx.wire.jobs.codec import (
    RecordReader,
    decode_stored,
    encode_moving,
    encode_stored,
    record_end,
    stored_length,
)
from tests.wire.jobs.test_codec import NODE, fields, record

WORD, HALF = 2**32 - 1, 2**16 - 1


class WrittenTests(SynchronousTestCase):
    """Fields at their ends."""

    def test_greatest(self) -> None:
        """The greatest number of each field comes back, one more is refused, and so is one below
        zero."""
        for name, greatest in (
            ("etime_s", WORD),
            ("delay_s", WORD),
            ("retry_s", WORD),
            ("nacks", HALF),
            ("deliveries", HALF),
            ("repl", HALF),
        ):
            for number in (0, greatest // 2, greatest // 2 + 1, greatest):
                job = record()
                setattr(job, name, number)
                self.assertEqual(fields(job), fields(decode_stored(encode_stored(job))), name)
            if name not in ("etime_s", "retry_s", "repl"):
                continue  # the record itself has room for no more
            bits = 32 if greatest == WORD else 16
            for number in (-1, greatest + 1):
                job = record()
                setattr(job, name, number)
                error = self.assertRaises(LocalError, encode_stored, job)
                expected = f"{number} does not fit into {bits} bits of a job record"
                self.assertEqual(expected, str(error))

    def test_life(self) -> None:
        """A job that moves may have any life that there is."""
        self.assertEqual(WORD, decode_stored(encode_moving(record(), WORD)).etime_s)
        self.assertRaises(LocalError, encode_moving, record(), WORD + 1)

    def test_names(self) -> None:
        """The ID of a node of another length would be misread, and the error says its length."""
        job = record()
        job.nodes = (NODE, NODE + b"x")
        error = self.assertRaises(LocalError, encode_stored, job)
        self.assertEqual("node ID of 41 bytes in a job record", str(error))

    def test_flags(self) -> None:
        """Flags are one byte."""
        for flags, fits in ((0, True), (255, True), (256, False), (-1, False)):
            job = record()
            job.flags = flags
            if fits:
                self.assertEqual(flags, decode_stored(encode_stored(job)).flags)
            else:
                error = self.assertRaises(LocalError, encode_stored, job)
                self.assertEqual(f"job record with flags {flags}", str(error))


class ReadTests(SynchronousTestCase):
    """Damaged records."""

    def test_reasons(self) -> None:
        """The reason says which length is wrong, and by how much."""
        whole = encode_stored(record())
        size = len(whole)
        self.assertEqual((size, size), (stored_length(record()), record_end(whole, 0, size)))
        body_at = 76 + 5
        nodes_at = body_at + 4 + 4
        for at, wrong, why in (
            (0, size - 3, f"job record announces {size + 1} bytes, {size} are there"),
            (72, size, f"job record announces {size} bytes, {size - 76} are there"),
            (72, size - 76 - 3, "job record ends before the length of its body"),
            (body_at, size, f"job record announces {size} bytes, {size - body_at - 4} are there"),
            (body_at, size - body_at - 4 - 3, "job record ends before its node count"),
            (nodes_at, 1, "job record does not end after its 1 node IDs"),
        ):
            data = bytearray(whole)
            struct.pack_into("<I", data, at, wrong)
            error = self.assertRaises(PeerError, decode_stored, bytes(data))
            self.assertEqual(why, str(error))
        error = self.assertRaises(PeerError, decode_stored, whole[:83])
        self.assertEqual("job record of 83 bytes, at least 84 are needed", str(error))

    def test_creation_time(self) -> None:
        """The greatest creation time is the end of the year 2262."""
        whole = bytearray(encode_stored(record()))
        struct.pack_into("<Q", whole, 52, 2**63 - 1)
        self.assertEqual(2**63 - 1, decode_stored(bytes(whole)).ctime)
        struct.pack_into("<Q", whole, 52, 2**63)
        error = self.assertRaises(PeerError, decode_stored, bytes(whole))
        self.assertEqual("job record with a creation time after the year 2262", str(error))

    def test_shared(self) -> None:
        """Equal names and lists of holders of many jobs are one object; very long ones, and more
        than are remembered, are read as well."""
        reader = RecordReader()
        jobs = [reader.read(encode_stored(record(b"q", b"body", 16)), 0) for _ in range(2)]
        self.assertIs(jobs[0].queue, jobs[1].queue)
        self.assertIs(jobs[0].nodes, jobs[1].nodes)
        for number in range(2_000):
            sent = record(b"q%d" % number, b"", 0)
            sent.nodes = (b"%040d" % number,)
            self.assertEqual(fields(sent), fields(reader.read(encode_stored(sent), 0)))
        for queue, nodes in ((b"q" * 256, 16), (b"q" * 257, 17)):
            sent = record(queue, b"", nodes)
            first, second = [reader.read(encode_stored(sent), 0) for _ in range(2)]
            self.assertEqual(fields(sent), fields(first))
            self.assertEqual(nodes == 16, first.nodes is second.nodes)
            self.assertEqual(len(queue) == 256, first.queue is second.queue)

    def test_changing(self) -> None:
        """Jobs whose names and holders change from one to the next are read as they are, and what
        comes again is the object that came first."""
        reader = RecordReader()
        jobs: list[JobRecord] = []
        for queue, holders in ((b"a", 2), (b"a", 3), (b"b", 3), (b"a", 2), (b"b", 0), (b"b", 3)):
            sent = record(queue, b"body", holders)
            jobs.append(reader.read(encode_stored(sent), 0))
            self.assertEqual(fields(sent), fields(jobs[-1]))
        self.assertIs(jobs[0].queue, jobs[3].queue)
        self.assertIs(jobs[0].nodes, jobs[3].nodes)
        self.assertIs(jobs[1].nodes, jobs[5].nodes)
