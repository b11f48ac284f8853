"""From where the bus can be reached."""

from __future__ import annotations

import socket

from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.protocol import Factory

from disque_tx.config.settings import Settings
from disque_tx.errors import ConfigError
from disque_tx.messages.nodes import NodeEntry
from disque_tx.services.bus.endpoints import BusConnector, bus_port, is_loopback, listen_bus
from tests.acceptance.daemon import free_port
from tests.services.bus.bench import OTHER, BusCase
from tests.services.nodebench import NodeCase


class SourceTests(BusCase):
    """From where a node connects to others."""

    def test_source(self) -> None:
        """A connection comes from the first address that the node listens on, for it is the one
        that others know it by; from any if it listens on all, or on another kind of address."""
        for bind, expected in (
            (["127.0.0.2", "127.0.0.3"], "127.0.0.2"),
            ([], "127.0.0.1"),
            (["::1"], "127.0.0.1"),
            (["localhost"], "127.0.0.1"),
        ):
            connector = BusConnector(self.runtime, bind, self.platform(self.look_up))
            with socket.create_server(("127.0.0.1", 0)) as server:
                entry = NodeEntry(OTHER, b"127.0.0.1", 7712, 0, 0)
                entry.bus_port = server.getsockname()[1]
                connector.connect(entry, Factory(), self)
                other, (host, _port) = server.accept()
            self.settle()
            other.close()
            self.assertEqual(expected, host, bind)

    def adopt(self, sock: socket.socket, factory: IProtocolFactory) -> bool:
        """Close the connection."""
        sock.close()
        return True


class AddressTests(NodeCase):
    """The addresses that are listened on."""

    def listening(self, *bind: str) -> list[str]:
        """The addresses on which the bus listens, with this ``bind``."""
        self.settings.bind = list(bind)
        self.settings.cluster_bus_port = free_port()
        sockets = listen_bus(self.settings, self.log)
        for sock in sockets:
            self.addCleanup(sock.close)
        self.assertEqual(
            {self.settings.cluster_bus_port}, {sock.getsockname()[1] for sock in sockets}
        )
        return [str(sock.getsockname()[0]) for sock in sockets]

    def test_closed(self) -> None:
        """By default only nodes on the same host can reach the bus."""
        self.assertEqual(["127.0.0.1", "::1"], self.listening())
        self.assertEqual(["127.0.0.1", "::1"], self.listening("0.0.0.0"))
        self.assertEqual(["127.0.0.2"], self.listening("127.0.0.2", "0.0.0.0"))

    def test_insecure(self) -> None:
        """With cluster-insecure it listens on the addresses for clients, and a warning is
        logged."""
        self.settings.cluster_insecure = True
        self.assertEqual(["::", "0.0.0.0"], self.listening())
        self.assertEqual(["127.0.0.2"], self.listening("127.0.0.2"))
        self.assertIn("# cluster-insecure is on: anyone who reaches port", self.logged())

    def test_tls(self) -> None:
        """With TLS it does, too, and there is nothing to warn about."""
        self.settings.cluster_bus_tls = self.settings.cluster_insecure = True
        self.assertEqual(["::", "0.0.0.0"], self.listening())
        self.assertNotIn("# ", self.logged())

    def test_how_to_open(self) -> None:
        """If clients on the network are served, the log explains why other nodes cannot connect."""
        self.listening("127.0.0.1", "::1")
        self.assertEqual("", self.logged())
        self.listening("0.0.0.0")
        self.assertIn("can be reached from this host only", self.logged())
        self.assertIn("'cluster-insecure yes'", self.logged())

    def test_missing(self) -> None:
        """Every configured address must be available; if one is not, none stays open."""
        self.settings.cluster_insecure = True
        with self.assertRaisesRegex(ConfigError, r"on 192\.0\.2\.1:\d+: "):
            self.listening("127.0.0.1", "192.0.2.1")
        port = self.settings.cluster_bus_port
        self.settings.bind = ["127.0.0.1"]
        for sock in listen_bus(self.settings, self.log):
            self.assertEqual(port, sock.getsockname()[1])
            sock.close()

    def test_ports(self) -> None:
        """The bus port is 10000 above the port for clients, or the configured one; a node without a
        port has none."""
        cases = ((7711, 0, 17711), (7711, 7000, 7000), (0, 7000, 7000), (0, 0, 0))
        for port, cluster_bus_port, expected in cases:
            settings = Settings(dir="/", port=port, cluster_bus_port=cluster_bus_port)
            self.assertEqual(expected, bus_port(settings))
        self.assertEqual([], listen_bus(settings, self.log))

    def test_loopback(self) -> None:
        """Loopback addresses and the local host name."""
        self.assertTrue(all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost"))))
        self.assertFalse(any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com"))))
