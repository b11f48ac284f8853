"""The time of a turn."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.base.part import STILL_MS, Turn


class TurnTests(SynchronousTestCase):
    """Turns begin one after the other."""

    def test_stood_still(self) -> None:
        """A node that had no turn for a while is known to have stood still, until it does so again;
        it did not before its first turn."""
        turn = Turn()
        woken = []
        now_ms = 50_000
        for pause_ms in (0, STILL_MS - 1, STILL_MS, 100, 10 * STILL_MS, 1):
            now_ms += pause_ms
            turn.begin(now_ms, 0)
            woken.append(int(turn.woken_ms) - 50_000)
        first = 2 * STILL_MS - 1
        second = first + 100 + 10 * STILL_MS
        self.assertEqual([-50_000, -50_000, first, first, second, second], woken)
