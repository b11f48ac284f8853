"""Log lines about strangers."""

from __future__ import annotations

from disque_tx.services.bus.complaints import Complaints
from tests.services.nodebench import NodeCase


class ComplaintsTests(NodeCase):
    """How often they are written."""

    def test_rate(self) -> None:
        """One line about each address in ten seconds."""
        complaints = Complaints(self.log, "Cluster bus")
        for now_ms in (0, 1, 9_999, 10_000):
            complaints.warn("10.0.0.1", f"at {now_ms}", now_ms)
        complaints.warn("10.0.0.2", "at 1", 1)
        lines = [line.split(" # ")[1] for line in self.logged().splitlines()]
        about = "Cluster bus, 10.0.0."
        self.assertEqual([f"{about}1: at 0", f"{about}1: at 10000", f"{about}2: at 1"], lines)

    def test_many(self) -> None:
        """Strangers with many addresses take no memory without end."""
        complaints = Complaints(self.log, "Cluster bus")
        for number in range(1_001):
            complaints.warn(str(number), "x", 0)
        complaints.warn("0", "y", 1)
        self.assertIn("Cluster bus, 0: y", self.logged())
