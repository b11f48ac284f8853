"""The blocking connection."""

from __future__ import annotations

import socket

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.connection import (
    ServerAddress,
    ServerConnection,
    ServerConnectionLost,
    ServerUnreachable,
    explained,
)
from tests.acceptance.daemon import free_port
from tests.cli.double import CLOSE, ScriptedServer


class AddressTests(SynchronousTestCase):
    """The text that shows an address."""

    def test_prompts(self) -> None:
        """Host and port, with brackets for IPv6, or the path of the socket."""
        self.assertEqual("localhost:7711", ServerAddress("localhost", 7711).prompt())
        self.assertEqual("[::1]:7711", ServerAddress("::1", 7711).prompt())
        self.assertEqual("disque /tmp/d", ServerAddress("localhost", 7711, "/tmp/d").prompt())


class AdviceTests(SynchronousTestCase):
    """What is said besides the error."""

    def test_certificates(self) -> None:
        """Each error of a certificate has its own remedy."""
        failed = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
        for why, advice in (
            ("certificate has expired (_ssl.c:1006)", "put a new one in its place"),
            ("certificate is not yet valid (_ssl.c:1006)", "check the clocks"),
            ("self-signed certificate in certificate chain", "with --cacert."),
            ("Hostname mismatch, certificate is not valid for 'x'", "is for another host"),
        ):
            self.assertIn(advice, explained(failed + why))
        self.assertNotIn("No trusted authority", explained(f"{failed}certificate has expired"))


class ConnectionTests(SynchronousTestCase):
    """``ServerConnection``."""

    def open(
        self, *answers: bytes, password: bytes | None = None, path: str | None = None
    ) -> tuple[ServerConnection, ScriptedServer]:
        """A connection to a server with this script."""
        server = ScriptedServer(*answers, path=path)
        self.addCleanup(server.stop)
        connection = ServerConnection(server.address, password)
        self.addCleanup(connection.close)
        return connection, server

    def test_call(self) -> None:
        """Binary arguments are sent unchanged, and replies are returned in order."""
        connection, server = self.open(b"+PONG\r\n", b"$3\r\na\r\n\r\n")
        self.assertEqual(b"PONG", connection.call([b"PING"]))
        self.assertEqual(b"a\r\n", connection.call([b"PING", b"a\r\n"]))
        self.assertEqual([[b"PING"], [b"PING", b"a\r\n"]], server.requests)

    def test_unix_socket(self) -> None:
        """A local server can be reached through its Unix socket."""
        connection, _ = self.open(b":1\r\n", path=self.mktemp())
        self.assertEqual(1, connection.call([b"QLEN", b"q"]))

    def test_silent_socket(self) -> None:
        """A local server that takes no more connections is reported after the timeout, as one in
        the network is: the program does not hang."""
        path = self.mktemp()
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen(0)
        waiting = socket.socket(socket.AF_UNIX)
        self.addCleanup(waiting.close)
        waiting.connect(path)
        address = ServerAddress("", 0, path, timeout_s=0.01)
        error = self.assertRaises(ServerUnreachable, ServerConnection, address)
        self.assertTrue(str(error).startswith(f"Could not connect to Disque at {path}: "), error)

    def test_password(self) -> None:
        """The password is sent first."""
        connection, server = self.open(b"+OK\r\n", b"+PONG\r\n", password=b"secret")
        connection.call([b"PING"])
        self.assertEqual([[b"AUTH", b"secret"], [b"PING"]], server.requests)
        self.assertIsNone(connection.auth_error)

    def test_refused_password(self) -> None:
        """A refused password can be reported to the user."""
        connection, _ = self.open(b"-ERR invalid password\r\n", password=b"wrong")
        self.assertEqual(b"ERR invalid password", connection.auth_error)

    def test_lost(self) -> None:
        """A connection that is closed before or during a reply is reported as lost."""
        for answers in ((CLOSE,), (b"$10\r\nhal", CLOSE)):
            connection, _ = self.open(*answers)
            connection.send([b"PING"])
            connection.send([b"PING"])
            error = self.assertRaises(ServerConnectionLost, connection.read)
            self.assertIn(str(error), ("Server closed the connection", "Connection reset by peer"))

    def test_other_protocol(self) -> None:
        """A server with another protocol is reported as such."""
        connection, _ = self.open(b"HTTP/1.1 400 Bad Request\r\n")
        error = self.assertRaises(ServerConnectionLost, connection.call, [b"PING"])
        self.assertIn("this is not a Disque server", str(error))

    def test_connection_refused(self) -> None:
        """The error names the address and the reason."""
        port = free_port()
        error = self.assertRaises(
            ServerUnreachable, ServerConnection, ServerAddress("127.0.0.1", port)
        )
        self.assertEqual(
            f"Could not connect to Disque at 127.0.0.1:{port}: Connection refused", str(error)
        )
        error = self.assertRaises(
            ServerUnreachable, ServerConnection, ServerAddress("", 0, "/no/socket")
        )
        self.assertEqual(
            "Could not connect to Disque at /no/socket: No such file or directory", str(error)
        )
