"""The search for garbage waits while a batch is made."""

from __future__ import annotations

import gc

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.process.garbage import uncollected


class UncollectedTests(SynchronousTestCase):
    """In this process."""

    def test_again(self) -> None:
        """Garbage is searched for again afterwards, also after an error."""
        self.addCleanup(gc.enable)
        with self.assertRaises(KeyError), uncollected():
            self.assertFalse(gc.isenabled())
            raise KeyError
        self.assertTrue(gc.isenabled())

    def test_off(self) -> None:
        """Where a program has turned the search off, it stays off."""
        self.addCleanup(gc.enable)
        gc.disable()
        with uncollected():
            pass
        self.assertFalse(gc.isenabled())
