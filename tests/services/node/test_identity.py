"""What tells the starts of a node apart."""

from __future__ import annotations

import secrets

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.node.identity import first_epoch


class EpochTests(SynchronousTestCase):
    """The number from which a start counts its connections."""

    def test_higher(self) -> None:
        """That of a later start is higher, whatever chance adds, and by more than the connections
        of the earlier one."""
        self.patch(secrets, "randbits", lambda bits: (1 << bits) - 1)
        before = first_epoch(1_000_000)
        self.patch(secrets, "randbits", lambda bits: 0)
        self.assertGreater(first_epoch(1_001_000), before + 1_000_000)
