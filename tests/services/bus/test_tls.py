"""TLS between nodes."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from disque_tx.errors import ConfigError
from disque_tx.messages.bustypes import PING, PONG
from disque_tx.messages.nodes import NodeEntry
from disque_tx.services.bus.tls import tls_options
from disque_tx.wire.bus.parser import encode
from tests.services.bus.bench import gossip_message
from tests.services.bus.tlsbench import TlsCase
from tests.services.net.certificates import Authority


class FileTests(TlsCase):
    """The files that the configuration names."""

    def assert_refused(self, text: str) -> None:
        """The files are refused with this error."""
        with self.assertRaisesRegex(ConfigError, text):
            self.bus.open()

    def test_missing(self) -> None:
        """All three files are required."""
        self.settings.cluster_bus_tls_ca = ""
        self.assert_refused("three files: cluster-bus-tls-cert, cluster-bus-tls-key and")

    def test_not_there(self) -> None:
        """The error for an unreadable file names it and its directive."""
        self.settings.cluster_bus_tls_key = "/no/such.key"
        self.assert_refused("cluster-bus-tls-key /no/such.key can't be read: No such file")

    def test_something_else(self) -> None:
        """The error for a file with other content names it."""
        path = self.folder / "other"
        path.write_text("no certificate")
        self.settings.cluster_bus_tls_ca = str(path)
        self.assert_refused("cluster-bus-tls-ca .*other holds no certificate")
        path.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        self.assert_refused("cluster-bus-tls-ca .*other holds a damaged certificate")
        self.settings.cluster_bus_tls_key = str(path)
        self.settings.cluster_bus_tls_ca = self.authority.path
        self.assert_refused("cluster-bus-tls-key .*other holds no private key")

    def test_wrong_key(self) -> None:
        """Key and certificate must match."""
        _cert, self.settings.cluster_bus_tls_key = self.authority.issue("stranger")
        self.assert_refused("stranger.key is not the key of cluster-bus-tls-cert .*node.crt")

    def test_chain(self) -> None:
        """A certificate may be followed by intermediate certificates."""
        path = self.folder / "chain.pem"
        own, others = Path(self.settings.cluster_bus_tls_cert), Path(self.authority.path)
        path.write_bytes(own.read_bytes() + others.read_bytes())
        self.settings.cluster_bus_tls_cert = str(path)
        self.assertEqual(1, len(tls_options(self.settings).extraCertChain))


class LinkTests(TlsCase):
    """Connections with TLS."""

    def setUp(self) -> None:
        super().setUp()
        self.start()

    def context(self, purpose: ssl.Purpose, authority: Authority, name: str) -> ssl.SSLContext:
        """The TLS configuration of another node."""
        context = ssl.create_default_context(purpose, cafile=authority.path)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(*authority.issue(name))
        return context

    def wrapped(self, other: socket.socket, context: ssl.SSLContext, server: bool) -> ssl.SSLSocket:
        """Another node's end of a connection, with the handshake as far as it gets."""
        other.setblocking(False)
        secure = context.wrap_socket(other, server_side=server, do_handshake_on_connect=False)
        self.addCleanup(secure.close)
        for _ in range(5):
            try:
                secure.do_handshake()
            except ssl.SSLWantReadError:
                pass
            self.settle()
        return secure

    def read(self, secure: ssl.SSLSocket) -> bytes:
        """The bytes that reached another node."""
        self.settle()
        try:
            return secure.recv(10_000)
        except ssl.SSLWantReadError:
            return b""

    def calling(self, authority: Authority) -> ssl.SSLSocket:
        """Another node with a certificate of ``authority`` connects."""
        context = self.context(ssl.Purpose.SERVER_AUTH, authority, "other")
        context.load_verify_locations(self.authority.path)
        return self.wrapped(self.call(), context, False)

    def dialled(self) -> tuple[NodeEntry, socket.socket]:
        """Another node that accepted a connection and has not answered the handshake yet."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            entry = self.entry(server.getsockname()[1])
            self.tick()
            other, _name = server.accept()
        self.addCleanup(other.close)
        return entry, other

    def test_inbound(self) -> None:
        """A node with a certificate is accepted, whatever the name in it."""
        other = self.calling(self.authority)
        self.assertIn(other.version(), ("TLSv1.2", "TLSv1.3"))
        other.sendall(encode(gossip_message(PING)))
        self.settle()
        answer = self.read(other)
        self.assertEqual((b"DbuZ", PONG), (answer[:4], answer[13]))

    def test_wrong_authority(self) -> None:
        """A certificate of another authority is refused, and its address logged."""
        other = self.calling(Authority(self.folder, "someone"))
        self.assertRaises(ssl.SSLError, self.read, other)
        self.assertIn("127.0.0.1: no connection with TLS: certificate verify failed", self.logged())
        self.assertEqual(0, self.node.membership.messages_received)

    def test_no_certificate(self) -> None:
        """A peer without a certificate is refused."""
        context = ssl.create_default_context(cafile=self.authority.path)
        context.check_hostname = False
        other = self.wrapped(self.call(), context, False)
        self.assertRaises(ssl.SSLError, self.read, other)
        self.assertIn("peer did not return a certificate", self.logged())

    def test_plain(self) -> None:
        """A node without TLS is refused, and this is logged."""
        other = self.call()
        self.send(other, gossip_message(PING))
        self.assertIn("no connection with TLS", self.logged())
        self.assertEqual(0, self.node.membership.messages_received)

    def test_outbound(self) -> None:
        """A link counts as up when both sides have verified the certificates, not before."""
        entry, other = self.dialled()
        self.assertIsNone(entry.link)
        context = self.context(ssl.Purpose.CLIENT_AUTH, self.authority, "other")
        secure = self.wrapped(other, context, True)
        self.assertIsNotNone(entry.link)
        ping = self.read(secure)
        self.assertEqual((b"DbuZ", PING), (ping[:4], ping[13]))

    def test_impostor(self) -> None:
        """A peer without the right certificate is sent no data."""
        entry, other = self.dialled()
        someone = Authority(self.folder, "someone")
        context = self.context(ssl.Purpose.CLIENT_AUTH, someone, "other")
        self.assertRaises(ssl.SSLError, self.wrapped, other, context, True)
        self.settle()
        self.assertEqual((None, False, 1), (entry.link, entry.connecting, entry.attempts))
        self.assertIn("certificate verify failed", self.logged())

    def test_silence(self) -> None:
        """A handshake that never completes does not keep the node from trying again."""
        entry, _other = self.dialled()
        caller = self.call()
        self.settle(2_100)
        self.assertEqual((None, False, 1), (entry.link, entry.connecting, entry.attempts))
        self.assertEqual([-1], self.received_types(caller))

    def test_ordinary_end(self) -> None:
        """A connection that ends in an orderly way is no failure of TLS."""
        other = self.calling(self.authority)
        other.sendall(encode(gossip_message(PING)))
        self.settle()
        other.close()
        self.settle()
        self.assertNotIn("no connection with TLS", self.logged())

    def test_stop(self) -> None:
        """Connections are closed cleanly, and nothing is left."""
        other = self.calling(self.authority)
        stopped = self.bus.stopService()
        self.settle()
        self.assertEqual(b"", self.read(other))
        other.close()
        self.settle()
        self.successResultOf(stopped)
        self.runtime.stop()
        self.assertEqual([], self.reactor.getDelayedCalls())
