"""Copies on several hosts."""

from __future__ import annotations

from disque_tx.sim.checkers.jobs import HostsDiffer
from disque_tx.sim.history import Added
from tests.sim.checkers.bench import HERE, THERE, CheckerCase


class HostTests(CheckerCase):
    """Copies on several hosts."""

    def setUp(self) -> None:
        super().setUp()
        for machine in self.run_.machines:
            machine.host = b"10.1.0.1"

    def accept(self, *holders: bytes, reached: tuple[bytes, ...] = (b"10.1.0.2",)) -> None:
        """A job with REPLICATE 2 is accepted; so many nodes have it, and these hosts could be
        reached."""
        added = Added(b"D", b"q", HERE, 1, 2, 1, 60, 0, False)
        added.job_id, added.accepted_us = b"D", 2
        self.history.added[b"D"] = added
        copies = self.run_.copies
        copies.seen[b"D"] = frozenset(holders)
        copies.down[b"D"] = frozenset()
        copies.reached[b"D"] = frozenset(reached)

    def test_one_host(self) -> None:
        """Copies on one host break the promise while another one can be reached."""
        self.accept(HERE, THERE)
        self.assertEqual(1, self.found(HostsDiffer()))

    def test_no_other(self) -> None:
        """Where there is no other host, they do not."""
        self.accept(HERE, THERE, reached=(b"10.1.0.1",))
        self.assertEqual(0, self.found(HostsDiffer()))

    def test_two_hosts(self) -> None:
        """Copies on two hosts keep it."""
        next(m for m in self.run_.machines if m.ip == THERE).host = b"10.1.0.2"
        self.accept(HERE, THERE)
        self.assertEqual(0, self.found(HostsDiffer()))

    def test_down(self) -> None:
        """A node that is down may have the copy that is not seen."""
        self.accept(HERE, THERE)
        self.run_.copies.down[b"D"] = frozenset([THERE])
        self.assertEqual(0, self.found(HostsDiffer()))
