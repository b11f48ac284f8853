"""The encoding of replies (client protocol, section 4)."""

from __future__ import annotations

from typing import Any

import hiredis
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.records import JobRecord
from disque_tx.wire.resp.replies import Resp3Writer, RespWriter
from tests import profiles  # noqa: F401

ID = b"D-a267464b-WepcnCEsLGzTE3WERFhKyqDG-05a1"


def job(queue: bytes, body: bytes, nacks: int = 0, deliveries: int = 0) -> JobRecord:
    """A job as GETJOB delivers it."""
    record = JobRecord(ID, queue, body, (), 1, 2, delay_s=0, retry_s=300, repl=1)
    record.nacks = nacks
    record.deliveries = deliveries
    return record


def read(data: bytes) -> list[Any]:
    """All replies in the bytes, read by the library that most clients use."""
    reader = hiredis.Reader(notEnoughData=NotEnough)
    reader.feed(data)
    values = []
    while (value := reader.gets()) is not NotEnough:
        values.append(value)
    return values


class NotEnough:
    """What the reader returns at the end."""


class Resp2Tests(SynchronousTestCase):
    """The only protocol of the original."""

    def setUp(self) -> None:
        self.writer = RespWriter()

    def test_kinds(self) -> None:
        """Every kind of reply has its exact bytes."""
        writer = self.writer
        writer.status(b"OK")
        writer.error(b"ERR syntax error")
        writer.integer(-1)
        writer.integer(1023)
        writer.integer((1 << 63) - 1)
        writer.bulk(b"a\r\nb")
        writer.bulk(b"")
        writer.null()
        writer.null_array()
        writer.array(0)
        writer.mapping(0)
        self.assertEqual(
            b"+OK\r\n-ERR syntax error\r\n:-1\r\n:1023\r\n:9223372036854775807\r\n"
            b"$4\r\na\r\nb\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*0\r\n",
            writer.take(),
        )

    def test_large_numbers_of_elements(self) -> None:
        """Headers beyond the precomputed ones are correct, too."""
        for size in (63, 64, 4095, 4096, 1_000_000):
            self.writer.array(size)
            self.writer.bulk(b"x" * size)
            self.writer.integer(size)
            expected = b"*%d\r\n$%d\r\n%s\r\n:%d\r\n" % (size, size, b"x" * size, size)
            self.assertEqual(expected, self.writer.take())

    def test_job(self) -> None:
        """A delivered job has the same bytes as in the original (section 25)."""
        self.writer.jobs([job(b"x", b"j1")], False)
        expected = b"*1\r\n*3\r\n$1\r\nx\r\n$40\r\n%s\r\n$2\r\nj1\r\n" % ID
        self.assertEqual(expected, self.writer.take())

    def test_job_with_counters(self) -> None:
        """WITHCOUNTERS appends the counters by name."""
        self.writer.jobs([job(b"y", b"j2", 3, 65535)], True)
        self.assertEqual(
            b"*1\r\n*7\r\n$1\r\ny\r\n$40\r\n%s\r\n$2\r\nj2\r\n"
            b"$5\r\nnacks\r\n:3\r\n$21\r\nadditional-deliveries\r\n:65535\r\n" % ID,
            self.writer.take(),
        )

    def test_many_queue_names(self) -> None:
        """Cached and uncached names are written the same."""
        for name in [b"q%d" % number for number in range(5000)] + [b"n" * 300, b"q1", b""]:
            self.writer.jobs([job(name, b"")], False)
            expected = b"*1\r\n*3\r\n$%d\r\n%s\r\n$40\r\n%s\r\n$0\r\n\r\n" % (len(name), name, ID)
            self.assertEqual(expected, self.writer.take())

    def test_size_and_take(self) -> None:
        """``size`` is the size of what ``take`` returns, and nothing is returned twice."""
        self.assertEqual(b"", self.writer.take())
        self.writer.status(b"OK")
        self.writer.integer(1)
        self.assertEqual(9, self.writer.size)
        self.assertEqual(4, self.writer.pieces())
        self.assertEqual(b"+OK\r\n:1\r\n", self.writer.take())
        self.assertEqual(0, self.writer.size)
        self.assertEqual(b"", self.writer.take())

    def test_change_of_protocol(self) -> None:
        """A change of protocol keeps earlier replies, marks included, and no state of the old
        protocol."""
        self.writer.null()
        mark = self.writer.mark()
        self.writer.status(b"OK")
        later = self.writer.speaking(3)
        self.assertEqual((0, b""), (self.writer.size, self.writer.take()))
        later.rewind(mark)
        later.null()
        self.assertEqual(8, later.size)
        self.assertEqual(b"$-1\r\n_\r\n", later.take())

    def test_rewind(self) -> None:
        """CLIENT REPLY OFF discards the replies of one request, and only those."""
        self.writer.status(b"OK")
        mark = self.writer.mark()
        self.writer.array(2)
        self.writer.bulk(b"a")
        self.writer.jobs([job(b"q", b"b")], True)
        self.writer.rewind(mark)
        self.assertEqual(5, self.writer.size)
        self.writer.integer(7)
        self.assertEqual(b"+OK\r\n:7\r\n", self.writer.take())

    @given(
        st.lists(
            st.tuples(
                st.binary(max_size=300),
                st.binary(max_size=300),
                st.integers(0, 65535),
                st.integers(0, 65535),
            ),
            max_size=70,
        ),
        st.booleans(),
    )
    def test_jobs_are_read_back(
        self, fields: list[tuple[bytes, bytes, int, int]], counters: bool
    ) -> None:
        """A client library reads the jobs that were written."""
        writer = RespWriter()
        writer.jobs([job(*some) for some in fields], counters)
        expected: list[list[bytes | int]] = []
        for queue, body, nacks, deliveries in fields:
            item: list[bytes | int] = [queue, ID, body]
            if counters:
                item += [b"nacks", nacks, b"additional-deliveries", deliveries]
            expected.append(item)
        self.assertEqual([expected], read(writer.take()))

    @given(st.lists(st.one_of(st.binary(), st.integers(-(2**63), 2**63 - 1), st.none())))
    def test_values_are_read_back(self, values: list[bytes | int | None]) -> None:
        """A client library reads the values that were written."""
        writer = RespWriter()
        writer.array(len(values))
        for value in values:
            if value is None:
                writer.null()
            elif isinstance(value, bytes):
                writer.bulk(value)
            else:
                writer.integer(value)
        self.assertEqual([values], read(writer.take()))


class Resp3Tests(SynchronousTestCase):
    """What HELLO 3 changes."""

    def test_differences(self) -> None:
        """One null for all, and maps."""
        writer = Resp3Writer()
        writer.null()
        writer.null_array()
        writer.mapping(1)
        writer.bulk(b"proto")
        writer.integer(3)
        data = writer.take()
        self.assertEqual(b"_\r\n_\r\n%1\r\n$5\r\nproto\r\n:3\r\n", data)
        self.assertEqual([None, None, {b"proto": 3}], read(data))

    def test_changed(self) -> None:
        """A client that changes the protocol gets what was written before as it is, and the rest in
        the new one."""
        for version, null in ((3, b"_\r\n"), (2, b"$-1\r\n")):
            before = RespWriter()
            before.null()
            writer = before.speaking(version)
            writer.null()
            self.assertEqual(b"$-1\r\n" + null, writer.take())

    def test_jobs(self) -> None:
        """Jobs look the same in both protocols."""
        two, three = RespWriter(), Resp3Writer()
        for writer in (two, three):
            writer.jobs([job(b"q", b"b")], True)
        self.assertEqual(two.take(), three.take())
