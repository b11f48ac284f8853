"""Where failed jobs go."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.policies.settings import dead_queue
from disque_tx.worker.tasks.policy import Policy


class DeadQueueTests(SynchronousTestCase):
    """The queue for dead letters of a queue."""

    def test_as_nodes_do(self) -> None:
        """A job of a queue with the longest name becomes a dead letter of the queue in which nodes
        put theirs, instead of failing forever."""
        for queue in (
            "mail",
            "q" * 1_020,
            "\u20ac" * 341,
            "x" * 1_018 + "\u20ac",
            "\udcff" * 1_024,
        ):
            found = Policy().dead_queue_of(queue).encode("utf-8", "surrogateescape")
            self.assertEqual(dead_queue(queue.encode("utf-8", "surrogateescape")), found)
