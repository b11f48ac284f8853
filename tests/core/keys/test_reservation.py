"""What a node knows of a key, as it tells others."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.keys.keysbyjob import Reservation
from disque_tx.core.keys.reservation import left
from disque_tx.messages.keys import HELD


class LeftTests(SynchronousTestCase):
    """Clocks of nodes differ, so times travel as what is left of them."""

    def test_times(self) -> None:
        """A key is kept at another node for as long as here, and not at all once that is over."""
        found = Reservation(b"key", b"D-1", HELD, False)
        for expire_ms, keep_ms, expected in (
            (5_000, 7_000, (4_000, 6_000)),
            (5_000, 0, (4_000, 0)),
            (500, 700, (0, 0)),
        ):
            found.expire_ms, found.keep_ms = expire_ms, keep_ms
            entry = left(found, 1_000)
            self.assertEqual(expected, (entry.life_ms, entry.keep_ms))
