"""Where failed jobs go, and when they are tried again."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.policies.settings import dead_queue
from disque_tx.worker.tasks.policy import Backoff, Policy


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

    def test_retries(self) -> None:
        """A dead letter or a result that its reader did not finish comes back after five minutes
        and after half a minute."""
        policy = Policy()
        self.assertEqual(300, policy.letter_options.retry_s)
        self.assertEqual(30, policy.result_options.retry_s)


class LimitTests(SynchronousTestCase):
    """Values that a program may give."""

    def test_ends(self) -> None:
        """The ends of each range can be used, and what lies beyond is refused when the program
        starts."""
        cases: tuple[tuple[type[Any], str, tuple[float, ...], tuple[float, ...]], ...] = (
            (Backoff, "first_s", (0,), (-1,)),
            (Backoff, "factor", (1,), (0.9,)),
            (Backoff, "max_s", (0,), (-1,)),
            (Backoff, "jitter", (0, 1), (-0.1, 1.1)),
            (Policy, "retries_max", (0,), (-1,)),
            (Policy, "letter_ttl_s", (1,), (0,)),
            (Policy, "result_ttl_s", (1,), (0,)),
            (Policy, "waiting_max", (0,), (-1,)),
        )
        for kind, name, good, bad in cases:
            for value in good:
                self.assertEqual(value, getattr(kind(**{name: value}), name))
            for value in bad:
                self.assertRaises(ValueError, kind, **{name: value})

    def test_backoff(self) -> None:
        """Without options the waits are 1, 2, 4 seconds and so on, up to five minutes, less a fifth
        at most."""

        class Highest(Random):
            """Takes off as much as possible, nearly."""

            def random(self) -> float:
                return 1.0

        backoff = Backoff()
        self.assertEqual((1, 2, 300, 0.2), attrs.astuple(backoff))
        waits = [backoff.wait_s(failures, Highest()) for failures in (0, 1, 2, 9, 10, 1_000)]
        for expected, wait_s in zip((0.8, 0.8, 1.6, 204.8, 240, 240), waits, strict=True):
            self.assertAlmostEqual(expected, wait_s)
