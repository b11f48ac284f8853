"""Which clients may connect."""

from __future__ import annotations

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.interfaces import IAddress

from disque_tx.services.clients.admission import is_local
from tests.services.nodebench import NodeCase

HERE = IPv4Address("TCP", "10.0.0.5", 7711)
OUTSIDE = IPv4Address("TCP", "192.0.2.7", 4000)


class AdmissionTests(NodeCase):
    """The limit on clients, protected mode, the password."""

    def test_is_local(self) -> None:
        """Loopback addresses of both families, mapped or not, and Unix sockets are local."""
        cases: list[tuple[IAddress, bool]] = [
            (IPv4Address("TCP", "127.0.0.1", 1), True),
            (IPv4Address("TCP", "127.9.9.9", 1), True),
            (IPv4Address("TCP", "192.168.0.1", 1), False),
            (IPv4Address("TCP", "12.7.0.1", 1), False),
            (IPv6Address("TCP", "::1", 1), True),
            (IPv6Address("TCP", "::ffff:127.0.0.1", 1), True),
            (IPv6Address("TCP", "::ffff:10.0.0.1", 1), False),
            (IPv6Address("TCP", "fe80::1", 1), False),
            (UNIXAddress(None), True),
        ]
        self.assertEqual(
            [expected for _peer, expected in cases], [is_local(peer) for peer, _expected in cases]
        )

    def test_protected_mode(self) -> None:
        """Without a password only local clients are served, and the error says what to do."""
        refusal = self.admission.refuse(OUTSIDE, HERE)
        self.assertTrue(refusal.startswith(b"DENIED "))
        self.assertIn(b"requirepass", refusal)
        self.assertIn(b"protected-mode no", refusal)
        self.assertEqual(1, self.server.stats.rejected_connections)
        self.assertEqual(b"", self.admission.refuse(UNIXAddress(None), HERE))

    def test_refusal_is_logged(self) -> None:
        """The log names the refused client by address and port, as CLIENT LIST would."""
        self.admission.refuse(OUTSIDE, HERE)
        self.assertIn("Refused 192.0.2.7:4000 in protected mode", self.logged())

    def test_protected_on_own_host(self) -> None:
        """A local client that used the network address gets an error that names the right
        address."""
        refusal = self.admission.refuse(IPv4Address("TCP", HERE.host, 5001), HERE)
        self.assertTrue(refusal.startswith(b"DENIED "))
        self.assertIn(b"connect to a loopback address", refusal)
        self.assertNotIn(b"loopback", self.admission.refuse(OUTSIDE, HERE))

    def test_password_opens(self) -> None:
        """With a password remote clients are accepted, and must authenticate."""
        self.settings.requirepass = b"secret"
        self.assertEqual(b"", self.admission.refuse(OUTSIDE, HERE))

    def test_protected_mode_off(self) -> None:
        """An operator may disable protected mode."""
        self.settings.protected_mode = False
        self.assertEqual(b"", self.admission.refuse(OUTSIDE, HERE))

    def test_maxclients(self) -> None:
        """The limit counts current connections."""
        self.settings.maxclients = 1
        client, _transport = self.connect()
        self.assertEqual(
            b"ERR max number of clients reached", self.admission.refuse(UNIXAddress(None), HERE)
        )
        stats = self.server.stats
        self.assertEqual((1, 1), (stats.connections_received, stats.rejected_connections))
        client.connectionLost()
        self.assertEqual(b"", self.admission.refuse(UNIXAddress(None), HERE))

    def test_ids(self) -> None:
        """IDs count from 1 and are not reused."""
        first, _transport = self.connect()
        first.connectionLost()
        self.connect()
        self.assertEqual([2], list(self.server.clients))

    def test_small_requests_before_auth(self) -> None:
        """Only authenticated clients may send large requests."""
        self.settings.requirepass = b"secret"
        self.server.password_required = True
        self.control.config_set(b"requirepass", b"secret")
        large = (
            b"*4\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$100000\r\n" + bytes(100_000) + b"\r\n$1\r\n0\r\n"
        )
        stranger, transport = self.connect()
        stranger.dataReceived(large)
        self.assertTrue(transport.value().startswith(b"-"))
        self.assertTrue(transport.disconnecting)
        friend, transport = self.connect()
        friend.dataReceived(b"AUTH secret\r\n")
        friend.dataReceived(large)
        self.assertTrue(transport.value().startswith(b"+OK\r\n+D-"), transport.value())

    def test_log(self) -> None:
        """Connections are logged at the verbose level."""
        client, _transport = self.connect()
        client.connectionLost()
        self.assertIn("- Accepted 127.0.0.1:5001\n", self.logged())
        self.assertIn("- Client closed connection 127.0.0.1:5001\n", self.logged())
