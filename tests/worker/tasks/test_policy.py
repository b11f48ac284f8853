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


class DefaultTests(SynchronousTestCase):
    """A policy of which nothing is said."""

    def test_letters_and_results(self) -> None:
        """Dead letters are kept for thirty days and results for an hour, with as many copies as the
        node makes; a failing job is tried six times."""
        policy = Policy()
        letters, results = policy.letter_options, policy.result_options
        found = [(one.ttl_s, one.replicate) for one in (letters, results)]
        self.assertEqual([(30 * 86_400, None), (3_600, None)], found)
        self.assertEqual((5, 1_000), (policy.retries_max, policy.waiting_max))
        self.assertEqual("dead:mail", policy.dead_queue_of("mail"))
        copies = Policy(replicate=2)
        self.assertEqual((2, 2), (copies.letter_options.replicate, copies.result_options.replicate))
