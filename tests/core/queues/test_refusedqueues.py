"""Which selectors are looked at again when a queue may deliver more."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.queues.refusedqueues import RefusedQueues
from disque_tx.core.queues.selector import Selector


class RefusedTests(SynchronousTestCase):
    """Two selectors and two queues."""

    def setUp(self) -> None:
        self.refused = RefusedQueues()
        self.one, self.other = (Selector(number, (b"*",), ()) for number in (1, 2))

    def note(self, selector: Selector, *names: bytes) -> None:
        """Other nodes are told that no jobs of these queues are welcome."""
        for name in names:
            selector.refused[name] = None
            self.refused.note(name, selector)

    def test_taken(self) -> None:
        """A queue gives those that refused its jobs, once, in the order in which they did."""
        self.assertEqual([], self.refused.take(b"q"))
        self.note(self.one, b"q", b"r")
        self.note(self.other, b"q")
        self.refused.note(b"q", self.one)
        self.assertEqual([self.one, self.other], self.refused.take(b"q"))
        self.assertEqual([], self.refused.take(b"q"))
        self.assertEqual([], self.refused.take(b"other"))
        self.assertEqual([self.one], self.refused.take(b"r"))

    def test_all(self) -> None:
        """All queues give all of them, once."""
        self.note(self.one, b"q", b"r")
        self.note(self.other, b"r")
        self.assertEqual([self.one, self.one, self.other], self.refused.take_all())
        self.assertEqual([], self.refused.take_all())

    def test_forgotten(self) -> None:
        """A selector of which nothing is demanded any more is not looked at; others are."""
        self.note(self.one, b"q", b"r")
        self.note(self.other, b"r")
        self.refused.forget(self.one)
        self.refused.forget(self.one)
        self.assertEqual([], self.refused.take(b"q"))
        self.assertEqual([self.other], self.refused.take(b"r"))
