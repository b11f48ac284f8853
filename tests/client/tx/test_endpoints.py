"""How a client of Twisted reaches an address."""

from __future__ import annotations

from typing import Any

from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.client.options import TLS, ConnectionOptions
from disque_tx.client.tx.endpoints import endpoint


class EndpointTests(SynchronousTestCase):
    """Addresses of all kinds, with a timeout of 7 s."""

    def setUp(self) -> None:
        self.reactor: Any = MemoryReactorClock()

    def reached(self, address: Address, tls: TLS | None = None) -> Any:
        """Connect, as far as the reactor lets it."""
        options = ConnectionOptions(None, tls, timeout_s=7)
        found = endpoint(self.reactor, address, options).connect(Factory.forProtocol(Protocol))
        found.addErrback(lambda _: None)
        self.reactor.advance(0)

    def test_hosts(self) -> None:
        """IP addresses of both versions are connected to as they are."""
        for host in ("127.0.0.1", "::1"):
            self.reached(Address(host, 7711))
            host_, port, _, timeout_s, _ = self.reactor.tcpClients.pop()
            self.assertEqual((host, 7711, 7), (host_, port, timeout_s))

    def test_path(self) -> None:
        """A node on the same machine may listen at a file."""
        self.reached(Address("/run/disque.sock", 0))
        ((path, _, timeout_s, _),) = self.reactor.unixClients
        self.assertEqual(("/run/disque.sock", 7), (path, timeout_s))
        self.assertEqual([], self.reactor.tcpClients)

    def first_bytes(self, tls: TLS | None) -> bytes:
        """What the client sends when it is connected."""
        self.reached(Address("127.0.0.1", 7711), tls)
        factory = self.reactor.tcpClients.pop()[2]
        transport = StringTransport()
        factory.buildProtocol(None).makeConnection(transport)
        return bytes(transport.value())

    def test_encrypted(self) -> None:
        """With TLS the first thing that leaves is a handshake, and nothing that could be read."""
        self.assertEqual(b"", self.first_bytes(None))
        self.assertEqual(b"\x16\x03", self.first_bytes(TLS(verify=False))[:2])
