"""The encoding of job records, compared with records that the original stored."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import PeerError
from disque_tx.messages.records import DELIVERED, JobRecord
from disque_tx.wire.files.aof import LogDecoder
from disque_tx.wire.jobs.codec import (
    RecordReader,
    decode_moving,
    decode_stored,
    encode_moving,
    encode_stored,
    stored_length,
)
from tests.wire.logvectors import NAMES, log, rows
from tests.wire.nearjobs import REFUSALS, near, verdict

U16 = st.integers(0, 2**16 - 1)
U32 = st.integers(0, 2**32 - 1)
NODE = b"n" * 40


def record(queue: bytes = b"queue", body: bytes = b"body", nodes: int = 2) -> JobRecord:
    """A job with a different value in each field."""
    made = JobRecord(
        b"D" * 40, queue, body, (NODE,) * nodes, 2**62 + 5, 2**32 - 1, delay_s=7, retry_s=8, repl=3
    )
    made.state, made.flags, made.nacks, made.deliveries = 2, 5, 11, 12
    return made


def fields(job: JobRecord) -> tuple[object, ...]:
    """All fields of a record."""
    return (
        *(job.id, job.queue, job.body, job.nodes),
        *(job.ctime, job.etime_s, job.delay_s, job.retry_s),
        *(job.repl, job.state, job.flags, job.nacks, job.deliveries),
    )


class NearlyValidCase(SynchronousTestCase):
    """Nearly valid records, many of which turn out to be valid."""

    def records(self, seed: str, count: int) -> Iterator[tuple[bytes, str, tuple[object, ...]]]:
        """``count`` records, why each must be refused, and the fields of a valid one. Finally it is
        checked that every reason occurred often."""
        seen: Counter[str] = Counter()
        random = Random(seed)
        for _ in range(count):
            data = near(random)
            refusal, wanted = verdict(data)
            seen[refusal] += 1
            yield data, refusal, wanted
        self.assertEqual({"", *REFUSALS}, set(seen))
        self.assertGreater(min(seen.values()), count / 100, seen)


class StoredTests(NearlyValidCase):
    """Storage form."""

    def test_vectors(self) -> None:
        """Every job that the original stored is decoded correctly, and encoded to the same
        bytes."""
        seen = 0
        for name in NAMES:
            decoder = LogDecoder()
            decoder.feed(log(name))
            for row in rows(name):
                words = decoder.next()
                assert words is not None
                if row["command"] != "LOADJOB":
                    continue
                seen += 1
                job, wanted = decode_stored(words[1]), row["job"]
                self.assertEqual(
                    (
                        wanted["id"].encode(),
                        bytes.fromhex(wanted["queue_hex"]),
                        bytes.fromhex(wanted["body_hex"]),
                        tuple(node.encode() for node in wanted["nodes"]),
                        wanted["ctime"],
                        wanted["etime"],
                        wanted["delay"],
                        wanted["retry"],
                        wanted["repl"],
                        wanted["state"],
                        wanted["flags"],
                        wanted["num_nacks"],
                        wanted["num_deliv"],
                    ),
                    fields(job),
                )
                self.assertEqual(words[1], encode_stored(job))
        self.assertGreater(seen, 40)

    def test_gc_retry_is_not_state(self) -> None:
        """The high half of the state byte is a different field."""
        data = bytearray(encode_stored(record()))
        data[44] |= 0xA0
        self.assertEqual(2, decode_stored(bytes(data)).state)

    def test_more_behind(self) -> None:
        """Bytes after the job are not part of it."""
        self.assertEqual(fields(record()), fields(decode_stored(encode_stored(record()) + b"x")))

    def test_every_cut(self) -> None:
        """However short it is, it is refused without reading beyond its end."""
        whole = encode_stored(record())
        for size in range(len(whole)):
            self.assertRaises(PeerError, decode_stored, whole[:size])

    def test_lengths_disagree(self) -> None:
        """Each length is checked against the actual size, even if it is enormous."""
        whole = encode_stored(record())
        for offset in (0, 72, 76 + 5, 80 + 5 + 4):
            for wrong in (0, 1, 50, 2**31, 2**32 - 1):
                data = bytearray(whole)
                struct.pack_into("<I", data, offset, wrong)
                self.assertRaises(PeerError, decode_stored, bytes(data))

    @given(st.binary(max_size=50), st.binary(max_size=200), st.integers(0, 5), U16, U32)
    def test_round_trip(self, queue: bytes, body: bytes, nodes: int, low: int, high: int) -> None:
        """Any job is decoded unchanged."""
        job = record(queue, body, nodes)
        job.nacks, job.deliveries, job.repl = low, 65535 - low, low
        job.etime_s, job.delay_s, job.retry_s = high, high, 2**32 - 1 - high
        self.assertEqual(fields(job), fields(decode_stored(encode_stored(job))))

    def test_anything(self) -> None:
        """Whatever a stranger sends is exactly the job that it encodes, or refused: nearly valid
        records reach every check."""
        for data, refusal, wanted in self.records("near", 4_000):
            if refusal:
                self.assertRaises(PeerError, decode_stored, data)
            else:
                self.assertEqual(wanted, fields(decode_stored(data)), data)

    @given(st.randoms(use_true_random=False))
    def test_near(self, random: Random) -> None:
        """The same, for records chosen by Hypothesis."""
        data = near(random)
        refusal, wanted = verdict(data)
        if refusal:
            self.assertRaises(PeerError, decode_stored, data)
        else:
            self.assertEqual(wanted, fields(decode_stored(data)))

    def test_creation_time_out_of_range(self) -> None:
        """An impossible creation time is refused as damaged, and does not crash the reader."""
        stored = bytearray(encode_stored(record()))
        stored[52:60] = b"\xff" * 8
        self.assertRaises(PeerError, decode_stored, bytes(stored))


class MovingTests(NearlyValidCase):
    """Message form."""

    def moving(self, life_s: int = 7, nodes: int = 2) -> bytes:
        return encode_moving(record(nodes=nodes), life_s)

    def test_difference(self) -> None:
        """Only the expiry and the flag of a local delivery differ from the storage form."""
        for nodes in (0, 1, 2):
            stored = bytearray(encode_stored(record(nodes=nodes)))
            stored[45] ^= DELIVERED
            stored[48:52] = struct.pack("<I", 7)
            self.assertEqual(bytes(stored), self.moving(nodes=nodes))
            self.assertEqual(len(stored), stored_length(record(nodes=nodes)))

    def test_one_after_the_other(self) -> None:
        """Jobs are packed back to back anywhere in a message, each with its remaining TTL in
        seconds."""
        data = b"before" + self.moving(1) + self.moving(2**32 - 1, nodes=1) + b"behind"
        end = len(data) - 6
        first, first_life_s, at = decode_moving(data, 6, end, RecordReader())
        second, second_life_s, behind = decode_moving(data, at, end, RecordReader())
        self.assertEqual((1, 2**32 - 1, end), (first_life_s, second_life_s, behind))
        self.assertEqual((2, 1), (len(first.nodes), len(second.nodes)))
        wanted = record()
        wanted.flags, wanted.etime_s = wanted.flags - DELIVERED, 0
        self.assertEqual(fields(wanted), fields(first))

    def test_every_cut(self) -> None:
        """Bytes after the jobs are never read as a part of the last one."""
        data = self.moving()
        for end in range(len(data)):
            self.assertRaises(PeerError, decode_moving, data, 0, end, RecordReader())

    def test_anything(self) -> None:
        """The same holds in the middle of a message, and the next job starts where this one
        ends."""
        for data, refusal, wanted in self.records("moving", 2_000):
            whole, end = b"before" + data + b"behind", 6 + len(data)
            if refusal:
                self.assertRaises(PeerError, decode_moving, whole, 6, end, RecordReader())
                continue
            job, life_s, behind = decode_moving(whole, 6, end, RecordReader())
            job.etime_s = life_s
            self.assertEqual(wanted, fields(job), data)
            self.assertEqual(6 + 4 + int.from_bytes(data[:4], "little"), behind)
