"""Who may introduce itself."""

from __future__ import annotations

from ipaddress import ip_network

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.strangers import Strangers


class StrangersTests(SynchronousTestCase):
    """The list and the rate."""

    def setUp(self) -> None:
        self.strangers = Strangers()

    def test_list(self) -> None:
        """Without a list everybody is welcome, with one only those on it."""
        self.assertEqual(True, self.strangers.welcome(b"203.0.113.9"))
        self.strangers.networks = [ip_network("10.0.0.0/8"), ip_network("2001:db8::/32")]
        for ip, expected in (
            (b"10.9.9.9", True),
            (b"2001:db8::7", True),
            (b"11.0.0.1", False),
            (b"::1", False),
            (b"", False),
            (b"\xff", False),
        ):
            self.assertEqual(expected, self.strangers.welcome(ip), ip)

    def test_rate(self) -> None:
        """One address cannot make this node open many connections, and hinders no other."""
        self.assertEqual(True, self.strangers.admits(b"10.0.0.1", 100))
        self.assertEqual(False, self.strangers.admits(b"10.0.0.1", 1_099))
        self.assertEqual(True, self.strangers.admits(b"10.0.0.2", 1_099))
        self.assertEqual(True, self.strangers.admits(b"10.0.0.1", 1_100))

    def test_loopback(self) -> None:
        """Nodes of one machine share an address, and may all start at once."""
        for ip in (b"127.0.0.1", b"::1"):
            self.assertEqual([True, True], [self.strangers.admits(ip, 5) for _ in range(2)])
