"""Times of leases of the work queue on Disque."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue.disque import DisqueWorkQueue
from disque_tx.workqueue.errors import NotOnDisque


class EmptyNode:
    """A client of a node that has no jobs. ``taken``: the options of each GETJOB."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []

    async def take(self, queue: str, **options: Any) -> list[Any]:
        """No job."""
        self.taken.append({"queue": queue, **options})
        return []


class LeaseTests(SynchronousTestCase):
    """``DisqueWorkQueue.lease``."""

    def setUp(self) -> None:
        self.node = EmptyNode()

    def queue(self, retry_s: int) -> DisqueWorkQueue:
        """A work queue whose items are added with this RETRY."""
        client: Any = self.node
        return DisqueWorkQueue(client, "q", retry_s)

    def test_longer_than_retry(self) -> None:
        """A worker that wants more time than the node gives it is told so, before it works on an
        item that another one will get as well; with RETRY 0 there is no other one."""
        for retry_s, expiry_s in ((1, 1.5), (300, 301)):
            refused = self.queue(retry_s).lease(expiry_s)
            why = str(self.failureResultOf(refused, NotOnDisque).value)
            self.assertIn(f"longer than the RETRY of {retry_s} s", why)
        self.assertEqual([], self.node.taken)
        for retry_s, expiry_s in ((1, 1), (300, 300), (0, 3600)):
            self.assertIsNone(self.successResultOf(self.queue(retry_s).lease(expiry_s)))

    def test_wait(self) -> None:
        """A worker waits forever, for a time, or not at all."""
        queue = self.queue(300)
        for how, timeout_s, no_hang in (
            ({}, None, False), ({"timeout_s": 2.5}, 2.5, False), ({"block": False}, None, True),
        ):  # fmt: skip
            self.successResultOf(queue.lease(**how))
            expected = {"queue": "q", "timeout_s": timeout_s, "no_hang": no_hang}
            self.assertEqual(expected, self.node.taken.pop())

    def test_refused(self) -> None:
        """Times that are none are errors of the program."""
        for expiry_s in (0, -1, float("inf"), float("nan")):
            self.failureResultOf(self.queue(300).lease(expiry_s), ValueError)
        for timeout_s in (-1, float("inf"), float("nan")):
            self.failureResultOf(self.queue(300).lease(timeout_s=timeout_s), ValueError)
