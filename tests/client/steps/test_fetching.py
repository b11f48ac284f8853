"""Waiting for jobs."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.steps.fetching import WAIT_MS_MAX, Wait, whole_ms
from tests.client.blocking.test_session import SessionTestCase
from tests.client.scripted import JOB_ID, FakeTime, array, job


class CountTests(SessionTestCase):
    """How many jobs are fetched by who does not say it."""

    def test_one(self) -> None:
        """One job: others would wait for this program while it is busy."""
        node = self.node(GETJOB=array(job()))
        client = self.client(node)
        for taken in (
            client.take("a"),
            client.take("a", "b"),
            client.take_in_order("a"),
            client.take_in_order("a", "b"),
            [client.dequeue("a")],
        ):
            self.assertEqual([JOB_ID], [one.id for one in taken if one is not None])
        self.assertEqual(1, len(client.get_jobs("a")))
        counts = [words[words.index(b"COUNT") + 1] for words in node.requests]
        self.assertEqual(6 * [b"1"], counts)


class WaitTests(SynchronousTestCase):
    """A long wait that consists of shorter ones."""

    def test_limited(self) -> None:
        """The parts add up to the whole timeout, and then the wait ends."""
        time = FakeTime()
        wait, parts_ms = Wait(time.now_s, 25_000), []
        while part_ms := wait.next_ms():
            parts_ms.append(part_ms)
            time.s += part_ms / 1000
        self.assertEqual([WAIT_MS_MAX, WAIT_MS_MAX, 5000], parts_ms)

    def test_for_ever(self) -> None:
        """A wait without a timeout never ends."""
        time = FakeTime()
        wait = Wait(time.now_s, 0)
        time.s += 1e9
        self.assertEqual(WAIT_MS_MAX, wait.next_ms())

    def test_whole_ms(self) -> None:
        """A very short timeout is not rounded to 0, which would mean no timeout."""
        self.assertEqual([0, 1500, 1], [whole_ms(None), whole_ms(1.5), whole_ms(0.0001)])
