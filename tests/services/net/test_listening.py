"""Listening on all requested addresses, or on none."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from pathlib import Path

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import ConfigError
from disque_tx.services.net.listening import listen_on, outgoing_ports, shown_host
from disque_tx.services.net.sockets import listen_tcp, os_error
from tests.acceptance.daemon import free_port

PAIR = ("127.0.0.1", "::1")


class ListenTests(SynchronousTestCase):
    """``listen_on``."""

    def setUp(self) -> None:
        """A free port, and a list of all sockets on it."""
        self.port = free_port()
        self.made: list[socket.socket] = []

    def failing(self, host: str, code: int) -> Callable[[str, int, int], socket.socket]:
        """Listens for real, except on one address."""

        def listen(asked: str, port: int, backlog: int) -> socket.socket:
            if asked == host:
                raise os_error(code)
            self.made.append(listen_tcp(asked, 0, backlog))
            self.addCleanup(self.made[-1].close)
            return self.made[-1]

        return listen

    def refusal(self, is_pair: bool, host: str, code: int, directive: str = "port") -> str:
        """The error when one address fails; no socket may be open then."""
        listen = self.failing(host, code)
        with self.assertRaises(ConfigError) as caught:
            listen_on(
                PAIR,
                self.port,
                5,
                is_pair,
                purpose="for other nodes",
                directive=directive,
                listen=listen,
            )
        self.assertEqual({-1}, {sock.fileno() for sock in self.made})
        return str(caught.exception)

    def test_half_taken(self) -> None:
        """If another process has the port in one family, the node listens in neither."""
        for host, shown in (("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")):
            text = self.refusal(True, host, errno.EADDRINUSE, "cluster-bus-port")
            self.assertIn(f"for other nodes on {shown}:{self.port}: Address already in use", text)
            self.assertIn("'cluster-bus-port'", text)

    def test_really_taken(self) -> None:
        """The same with a real socket."""
        stranger = socket.create_server(("127.0.0.1", self.port))
        with stranger, self.assertRaisesRegex(ConfigError, "127.0.0.1:.*Address already in use"):
            listen_on(PAIR, self.port, 5, True)
        for sock in listen_on(PAIR, self.port, 5, True):
            sock.close()  # no socket stayed open

    def test_other_reasons(self) -> None:
        """Only a missing address family is tolerated, no other error."""
        for code in (errno.EMFILE, errno.EACCES, errno.ENOMEM):
            self.refusal(True, "::1", code)

    def test_family_lacking(self) -> None:
        """On a host without IPv6, or without IPv4, the default is only the other family."""
        for code in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            for host in PAIR:
                (sock,) = listen_on(PAIR, self.port, 5, True, listen=self.failing(host, code))
                sock.close()

    def test_named(self) -> None:
        """An explicitly configured address is never left out; another port would not help."""
        text = self.refusal(False, "::1", errno.EADDRNOTAVAIL)
        self.assertIn("No such address is on this machine: check 'bind'.", text)
        self.assertNotIn("Another port", text)

    def test_privileged(self) -> None:
        """Where the port needs a privilege, that is said."""
        self.port = 80
        self.assertIn("need a privilege", self.refusal(False, "::1", errno.EACCES))

    def test_none(self) -> None:
        """It is an error if both families are missing."""

        def listen(host: str, port: int, backlog: int) -> socket.socket:
            raise os_error(errno.EADDRNOTAVAIL)

        with self.assertRaises(ConfigError):
            listen_on(PAIR, self.port, 5, True, listen=listen)

    def test_outgoing(self) -> None:
        """For a port in the range of outgoing connections the error says so, and what to do."""
        first, last = outgoing_ports()
        for self.port, expected in ((first, True), (last, True), (first - 1, False)):
            text = self.refusal(False, "127.0.0.1", errno.EADDRINUSE)
            self.assertEqual(expected, "net.ipv4.ip_local_reserved_ports" in text, text)
        self.port = first
        self.assertNotIn("reserved", self.refusal(False, "127.0.0.1", errno.EACCES))

    def test_no_range(self) -> None:
        """If the system does not report that range, or reports nonsense, nothing fails."""
        path = self.mktemp()
        self.assertEqual((0, -1), outgoing_ports(path))
        Path(path).write_text("some\n")
        self.assertEqual((0, -1), outgoing_ports(path))
        Path(path).write_text("32768\t60999\n")
        self.assertEqual((32768, 60999), outgoing_ports(path))

    def test_shown(self) -> None:
        """Addresses are written so that they can be copied."""
        self.assertEqual("10.0.0.1:7711", shown_host(IPv4Address("TCP", "10.0.0.1", 7711)))
        self.assertEqual("[::1]:7711", shown_host(IPv6Address("TCP", "::1", 7711)))
        self.assertEqual("unix:/run/d.sock", shown_host(UNIXAddress("/run/d.sock")))
