"""Requests about queues that only nodes of disque-tx have: their words, and their values."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.requests import counting
from disque_tx.client.requests.counting import CountedQueue, Flushed, QueueCounts, QueuePage
from disque_tx.client.requests.replies import MalformedReply

NODE = "a" * 40
COUNTS = QueueCounts("q", 1, 2, 3, 4, 5, 6, 7, 8.25, 0.5)
NUMBERS: list[Any] = [
    *(b"queued", 1, b"delayed", 2, b"backoff", 3, b"in-flight", 4, b"dead", 5),
    *(b"blocked-clients", 6, b"oldest-ms", 7, b"in-per-s", b"8.250", b"out-per-s", b"0.500"),
]
NODES: list[Any] = [b"nodes", 2, b"nodes-missing", [NODE.encode()]]


def mapped(flat: list[Any]) -> dict[Any, Any]:
    """The same reply in RESP3."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


class WordsTests(SynchronousTestCase):
    """What is sent."""

    def test_words(self) -> None:
        """Every option has its word, and nothing is sent that was not asked for."""
        for request, words in (
            (counting.queue_counts("ü"), ("QCOUNT", "ü".encode())),
            (counting.queue_counts("q", cluster=True), ("QCOUNT", b"q", "CLUSTER")),
            (counting.list_queues(), ("QLIST", "SORT", "queued", "COUNT", 100)),
            (
                counting.list_queues("m*", "name", 7, b"0:\xff", True),
                (
                    *("QLIST", "SORT", "name", "COUNT", 7, "MATCH", b"m*"),
                    *("CURSOR", b"0:\xff", "CLUSTER"),
                ),
            ),
            (counting.flush_queue("q"), ("QFLUSH", b"q", "WITHDETAILS")),
            (
                counting.flush_queue("q", ("delayed", "any"), True),
                ("QFLUSH", b"q", "WITHDETAILS", "CLUSTER", "STATE", "delayed", "STATE", "any"),
            ),
            (counting.wait_job("D-x"), ("WAITJOB", "D-x")),
            (counting.wait_job("D-x", 70), ("WAITJOB", "D-x", "TIMEOUT", 70)),
        ):
            self.assertEqual(words, request.words)

    def test_waiting(self) -> None:
        """A client waits as long as the node may take, and does not flush a queue twice."""
        self.assertEqual(
            [(0.0, True), (2.0, True), (0.07, True), (None, True), (None, False)],
            [
                (request.wait_s, request.repeatable)
                for request in (
                    counting.queue_counts("q"),
                    counting.queue_counts("q", cluster=True),
                    counting.wait_job("D-x", 70),
                    counting.wait_job("D-x"),
                    counting.flush_queue("q"),
                )
            ],
        )


class RepliesTests(SynchronousTestCase):
    """What is returned, with RESP2 and RESP3."""

    def test_counts(self) -> None:
        """The counts of one queue."""
        parse = counting.queue_counts("q").parse
        expected = CountedQueue(COUNTS, 2, (NODE,))
        for reply in (NUMBERS + NODES, mapped(NUMBERS + NODES)):
            self.assertEqual(expected, parse(reply))

    def test_page(self) -> None:
        """A page of queues, the last one without a cursor."""
        row: list[Any] = [b"name", b"q", *NUMBERS]
        for cursor, expected in ((b"0", None), (b"-1:q", b"-1:q")):
            flat: list[Any] = [b"cursor", cursor, b"queues", [row], *NODES]
            for reply in (flat, mapped([*flat[:3], [mapped(row)], *NODES])):
                self.assertEqual(
                    QueuePage((COUNTS,), expected, 2, (NODE,)), counting.list_queues().parse(reply)
                )

    def test_flushed(self) -> None:
        """How many jobs are gone, and which nodes did nothing."""
        flat = [b"flushed", 9, *NODES]
        for reply in (flat, mapped(flat)):
            self.assertEqual(Flushed(9, 2, (NODE,)), counting.flush_queue("q").parse(reply))

    def test_ending(self) -> None:
        """How a job ended, or that it did not yet."""
        parse = counting.wait_job("D-x").parse
        self.assertEqual(["acked", "dead", None], [parse(r) for r in (b"ACKED", b"DEAD", None)])

    def test_malformed(self) -> None:
        """A reply that is none is an error, not a wrong value."""
        bad_rate = [*NUMBERS[:-1], b"1.2.3", *NODES]
        for parse, reply in (
            (counting.queue_counts("q").parse, NUMBERS),
            (counting.queue_counts("q").parse, bad_rate),
            (counting.queue_counts("q").parse, b"x"),
            (counting.list_queues().parse, [b"cursor", b"0", b"queues", b"", *NODES]),
            (counting.flush_queue("q").parse, 7),
            (counting.wait_job("D-x").parse, 7),
        ):
            self.assertRaises(MalformedReply, parse, reply)
