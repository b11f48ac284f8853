"""Nodes that did not confirm their copies in time, and do so late."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.unconfirmed import UnconfirmedCopies


class UnconfirmedTests(SynchronousTestCase):
    """What is remembered of copies."""

    def setUp(self) -> None:
        self.copies = UnconfirmedCopies()

    def test_late(self) -> None:
        """Each node is told once that the job is done, and no other node is."""
        self.copies.note(b"job", {b"a", b"b"})
        found = [self.copies.arrived(b"job", node) for node in (b"c", b"a", b"a", b"b", b"b")]
        self.assertEqual([False, True, False, True, False], found)
        self.assertFalse(self.copies.arrived(b"other", b"a"))
        self.assertEqual(0, len(self.copies.nodes))

    def test_left(self) -> None:
        """A job that lives on elsewhere is not taken for done; others are."""
        self.copies.left(b"job")
        self.copies.note(b"job", {b"a"})
        self.copies.note(b"other", {b"a"})
        self.copies.left(b"job")
        self.copies.left(b"unknown")
        found = [self.copies.arrived(job, b"a") for job in (b"job", b"other")]
        self.assertEqual([False, True], found)

    def test_bounded(self) -> None:
        """Ten thousand jobs are remembered, the latest ones."""
        for number in range(10_001):
            self.copies.note(b"%d" % number, {b"a"})
        self.assertEqual(10_000, len(self.copies.nodes))
        found = [self.copies.arrived(job, b"a") for job in (b"0", b"1", b"10000")]
        self.assertEqual([False, True, True], found)
