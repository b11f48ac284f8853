"""Queues of several nodes as one list."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.plugins.values import QueueFigures
from disque_tx.protocols.http.api.queues.queuelists import JoinedQueues, joined_queue


def row(name: bytes, *numbers: int, pause: bytes = b"none") -> list[Any]:
    """A row of QUEUES: jobs, wait in ms, age, idle, blocked, in, out, rate; four places."""
    return [name, *numbers[:8], pause, *numbers[8:]]


class JoinedQueuesTests(SynchronousTestCase):
    """Each queue once."""

    def test_figures(self) -> None:
        """Jobs, clients and rates are added up; of ages the greatest counts, of idle times the
        smallest; the queue is paused in every direction in which it is at some node."""
        first = row(b"q", 1, 2500, 60, 9, 1, 10, 9, 1, 1, 2, 3, 4, pause=b"in")
        second = row(b"q", 2, 1500, 70, 3, 4, 20, 18, 2, 10, 20, 30, 40, pause=b"out")
        self.assertEqual(
            QueueFigures(b"q", 3, 2.5, 70, 3, 5, 30, 27, 3, "all", 11, 22, 33, 44),
            joined_queue([first, second]),
        )
        self.assertEqual("in", joined_queue([first, row(b"q", *[0] * 12)]).pause)

    def test_seen_twice(self) -> None:
        """A queue that the scan of one node returns twice is not counted twice."""
        queues, seen = JoinedQueues(), set[bytes]()
        for name in (b"a", b"b", b"a"):
            queues.add(seen, row(name, *[1] * 12))
        queues.add(set(), row(b"b", *[1] * 12))
        (page,) = queues.pages()
        self.assertEqual([(b"a", 1), (b"b", 2)], [(one.name, one.queued) for one in page])

    def test_pages(self) -> None:
        """Many queues come some at a time, so that no turn of the node gets long."""
        queues = JoinedQueues()
        for number in range(600):
            queues.add(set(), row(b"%d" % number, *[0] * 12))
        pages = list(queues.pages())
        self.assertEqual(600, sum(map(len, pages)))
        self.assertLess(1, len(pages))
