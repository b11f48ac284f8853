"""Leases must be renewed in time on a busy machine, too."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.heartbeats import renewal_s


class RenewalTests(SynchronousTestCase):
    """A job whose lease ran out is done twice."""

    def test_long(self) -> None:
        """With an ordinary RETRY there is one heartbeat per 80 % of it."""
        self.assertEqual([8, 240], [renewal_s(10), renewal_s(300)])

    def test_short(self) -> None:
        """Two seconds remain for a machine that is late, even if RETRY is a few seconds."""
        self.assertEqual([3, 2, 4], [renewal_s(5), renewal_s(4), renewal_s(6)])

    def test_shortest(self) -> None:
        """Of a RETRY that is too short for that, half remains."""
        self.assertEqual([0.5, 1, 1.5], [renewal_s(1), renewal_s(2), renewal_s(3)])
