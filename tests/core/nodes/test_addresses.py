"""Addresses and ports of nodes, and from where unknown nodes may introduce themselves."""

from __future__ import annotations

from ipaddress import ip_network

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.addresses import (
    Strangers,
    normal_ip,
    plain_ip,
    ports_usable,
    short_bus_port,
)


class AddressTests(SynchronousTestCase):
    """Only literal addresses, each in one canonical spelling."""

    def test_one_spelling(self) -> None:
        """Two spellings of an address mean the same peer, so they must compare equal."""
        self.assertEqual(b"127.0.0.1", normal_ip(b"127.0.0.1"))
        self.assertEqual(b"2001:db8::1", normal_ip(b"2001:DB8:0:0:0:0:0:1"))
        self.assertEqual(b"::ffff:1.2.3.4", normal_ip(b"::FFFF:102:304"))

    def test_not_literal(self) -> None:
        """Names are never resolved, and nothing malformed gets into the table."""
        for text in (
            b"",
            b"localhost",
            b"1.2.3",
            b"1.2.3.4.5",
            b"fe80::1%eth0",
            b"\xff",
            b"1.2.3.4\n",
        ):
            self.assertEqual(b"", normal_ip(text), text)

    def test_plain(self) -> None:
        """A node that connects over an IPv6 socket is the node that is known by its IPv4
        address."""
        self.assertEqual(b"1.2.3.4", plain_ip(b"::ffff:1.2.3.4"))
        for ip in (b"1.2.3.4", b"::1", b"::ffff:102", b""):
            self.assertEqual(ip, plain_ip(ip))


class PortTests(SynchronousTestCase):
    """The port for clients and the port of the bus."""

    def test_usable(self) -> None:
        """A derived bus port must be a valid port, too; an explicit one lifts that limit."""
        for port, bus_port in ((1, 0), (55_535, 0), (65_535, 1), (1, 65_535)):
            self.assertEqual(True, ports_usable(port, bus_port), (port, bus_port))
        for port, bus_port in ((0, 0), (-1, 0), (55_536, 0), (0, 7), (65_536, 7), (7, 65_536)):
            self.assertEqual(False, ports_usable(port, bus_port), (port, bus_port))

    def test_short(self) -> None:
        """However the usual bus port is given, it compares equal."""
        self.assertEqual((0, 0, 7), tuple(short_bus_port(7711, port) for port in (0, 17_711, 7)))


class StrangersTests(SynchronousTestCase):
    """The list of allowed networks and the rate limit."""

    def setUp(self) -> None:
        self.strangers = Strangers()

    def test_list(self) -> None:
        """Without a list every address is welcome, with one only those on it."""
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
        """One address cannot make this node open many connections, nor does it block others."""
        self.assertEqual(True, self.strangers.admits(b"10.0.0.1", 100))
        self.assertEqual(False, self.strangers.admits(b"10.0.0.1", 1_099))
        self.assertEqual(True, self.strangers.admits(b"10.0.0.2", 1_099))
        self.assertEqual(True, self.strangers.admits(b"10.0.0.1", 1_100))

    def test_loopback(self) -> None:
        """Nodes of one machine share an address, and may all start at once."""
        for ip in (b"127.0.0.1", b"::1"):
            self.assertEqual([True, True], [self.strangers.admits(ip, 5) for _ in range(2)])
