"""How long requests may take."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import CannotConnect, ConnectionLost, Leaving
from disque_tx.client.commands import WAIT_MS_MAX, Wait, whole_ms
from disque_tx.client.nodes import Search
from tests.client.scripted import FakeTime


class SearchTests(SynchronousTestCase):
    """Patience."""

    def setUp(self) -> None:
        self.time = FakeTime()
        self.search = Search(self.time.now_s, 5)

    def test_patience(self) -> None:
        """It begins with the first failure, and the last reason of each node is told."""
        self.search.failed("a:1", ConnectionLost("a:1", "early", sent=False))
        self.time.s += 4.9
        self.search.failed("a:1", ConnectionLost("a:1", "late", sent=False))
        self.time.s += 0.1
        lost = ConnectionLost("b:1", "gone", sent=False)
        error = self.assertRaises(CannotConnect, self.search.failed, "b:1", lost)
        self.assertEqual({"a:1": "late", "b:1": "gone"}, error.tried)

    def test_refusal(self) -> None:
        """When the last node refused, that is what the caller gets."""
        self.search.failed("a:1", ConnectionLost("a:1", "early", sent=False))
        self.time.s += 5
        leaving = Leaving("GETJOB", "b:1", "LEAVING", "")
        self.assertRaises(Leaving, self.search.failed, "b:1", leaving)


class WaitTests(SynchronousTestCase):
    """Waits made of shorter ones."""

    def test_limited(self) -> None:
        """The parts add up to the whole, and then it is over."""
        time = FakeTime()
        wait, parts_ms = Wait(time.now_s, 25_000), []
        while part_ms := wait.next_ms():
            parts_ms.append(part_ms)
            time.s += part_ms / 1000
        self.assertEqual([WAIT_MS_MAX, WAIT_MS_MAX, 5000], parts_ms)

    def test_for_ever(self) -> None:
        """A wait without limit never ends."""
        time = FakeTime()
        wait = Wait(time.now_s, 0)
        time.s += 1e9
        self.assertEqual(WAIT_MS_MAX, wait.next_ms())

    def test_whole_ms(self) -> None:
        """However short a time-out is, it does not become none."""
        self.assertEqual([0, 1500, 1], [whole_ms(None), whole_ms(1.5), whole_ms(0.0001)])
