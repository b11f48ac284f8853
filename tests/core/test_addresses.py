"""Addresses and ports, each in one spelling."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.addresses import normal_ip, plain_ip, ports_usable, short_bus_port


class AddressTests(SynchronousTestCase):
    """Only literal addresses, each in one spelling."""

    def test_one_spelling(self) -> None:
        """Two spellings of an address are the same peer, so they must compare equal."""
        self.assertEqual(b"127.0.0.1", normal_ip(b"127.0.0.1"))
        self.assertEqual(b"2001:db8::1", normal_ip(b"2001:DB8:0:0:0:0:0:1"))
        self.assertEqual(b"::ffff:1.2.3.4", normal_ip(b"::FFFF:102:304"))

    def test_not_literal(self) -> None:
        """Names are never looked up, and nothing strange gets into the table."""
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
        """A node that calls over an IPv6 socket is the one that is known by its IPv4 address."""
        self.assertEqual(b"1.2.3.4", plain_ip(b"::ffff:1.2.3.4"))
        for ip in (b"1.2.3.4", b"::1", b"::ffff:102", b""):
            self.assertEqual(ip, plain_ip(ip))


class PortTests(SynchronousTestCase):
    """The port for clients and the one of the bus."""

    def test_usable(self) -> None:
        """A bus port that is derived must exist, too; one that is given frees the other."""
        for port, bus_port in ((1, 0), (55_535, 0), (65_535, 1), (1, 65_535)):
            self.assertEqual(True, ports_usable(port, bus_port), (port, bus_port))
        for port, bus_port in ((0, 0), (-1, 0), (55_536, 0), (0, 7), (65_536, 7), (7, 65_536)):
            self.assertEqual(False, ports_usable(port, bus_port), (port, bus_port))

    def test_short(self) -> None:
        """However the usual bus port was said, it compares equal."""
        self.assertEqual((0, 0, 7), tuple(short_bus_port(7711, port) for port in (0, 17_711, 7)))
