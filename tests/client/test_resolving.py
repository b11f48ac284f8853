"""Names of clusters become addresses of nodes."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from disque_tx.client import resolving
from disque_tx.client.addresses import Address, address, seeds
from disque_tx.client.errors import NameNotFound
from disque_tx.client.resolving import expanded, resolve
from tests.services.discovery.nameserver import NameServer

NAME = "disque.example"


class OwnServerTests(TestCase):
    """The name server that ``DISQUE_NAMESERVERS`` names."""

    def setUp(self) -> None:
        self.server = NameServer(reactor)
        self.addCleanup(self.server.stop)
        self.patch(resolving, "_TIMEOUTS_S", (1.0,))
        self.patch(resolving, "environ", {"DISQUE_NAMESERVERS": self.server.address})

    def check(
        self, lookups: str, expected: list[tuple[str, int]], why: str | None = None
    ) -> Deferred[None]:
        """What the lookups give, in a thread, as the clients look up."""

        def compare(result: Any) -> None:
            found, error = result
            self.assertEqual(expected, [(one.host, one.port) for one in found])
            self.assertEqual(why, error and error.reason)

        return deferToThread(resolve, seeds(lookups).addresses).addCallback(compare)

    def test_addresses(self) -> Deferred[None]:
        """A name has all of its addresses, of both kinds, with the port of the lookup."""
        self.server.hosts(NAME, ["10.0.0.1", "fd00::1"])
        return self.check(f"dns:{NAME}:7712", [("10.0.0.1", 7712), ("fd00::1", 7712)])

    def test_long(self) -> Deferred[None]:
        """An answer that is too long for a datagram is fetched by TCP."""
        hosts = [f"10.0.{number // 250}.{number % 250}" for number in range(1_000)]
        self.server.hosts(NAME, hosts)
        return self.check(f"dns:{NAME}", [(host, 7711) for host in hosts])

    def test_too_long(self) -> Deferred[None]:
        """An answer with more addresses than any cluster has is no answer."""
        hosts = [f"10.0.{number // 250}.{number % 250}" for number in range(1_100)]
        self.server.hosts(NAME, hosts)
        return self.check(f"dns:{NAME}", [], "no name server answers")

    def test_services(self) -> Deferred[None]:
        """SRV records say hosts and ports."""
        self.server.hosts("a.example", ["10.0.0.1"])
        self.server.services("_disque._tcp.example", [("a.example", 7712), ("a.example", 7713)])
        return self.check("srv:_disque._tcp.example", [("10.0.0.1", 7712), ("10.0.0.1", 7713)])

    def test_missing(self) -> Deferred[None]:
        """A name that does not exist gives nothing and the reason; what others give counts."""
        self.server.hosts(NAME, ["10.0.0.1"])
        why = "there is no such name"
        return self.check(f"dns:gone.example,dns:{NAME}", [("10.0.0.1", 7711)], why)

    def test_silent(self) -> Deferred[None]:
        """A server that does not answer is given up."""
        self.server.silent.add(NAME)
        return self.check(f"dns:{NAME}", [], "no name server answers")


class SystemServersTests(SynchronousTestCase):
    """The name servers of this machine, which are asked for SRV records."""

    def servers(self, text: str | None) -> list[Address]:
        """Those in a configuration; ``None``: there is none."""
        path = self.mktemp()
        if text is not None:
            Path(path).write_text(text)
        self.patch(resolving, "_RESOLV_CONF", path)
        return resolving._system_servers()

    def test_configured(self) -> None:
        """They are asked in the order of the configuration; its other lines name none."""
        text = (
            "# made by hand\nsearch a.example\nnameserver 10.0.0.2 x\nnameserver\n\nnameserver ::1"
        )
        self.assertEqual([Address("10.0.0.2", 53), Address("::1", 53)], self.servers(text))

    def test_none(self) -> None:
        """Without any, the one on this machine is asked, as the system does."""
        for text in (None, "", "search a.example\n"):
            self.assertEqual([Address("127.0.0.1", 53)], self.servers(text))


class SystemTests(SynchronousTestCase):
    """The names that the system knows."""

    def test_hosts(self) -> None:
        """A name is looked up as by any program on this machine."""
        found, why = resolve([address("dns:localhost:7712")])
        self.assertIn(Address("127.0.0.1", 7712), found)
        self.assertIsNone(why)

    def test_expanded(self) -> None:
        """Addresses stay as they are beside what lookups give; nothing at all is an error."""
        fixed = Address("10.0.0.9", 1)
        found = expanded([fixed, address("dns:localhost:7712")])
        self.assertEqual(fixed, found[0])
        self.assertIn(Address("127.0.0.1", 7712), found)
        self.assertEqual([fixed], expanded([fixed, address("dns:name.invalid")]))
        error = self.assertRaises(NameNotFound, expanded, [address("dns:name.invalid")])
        self.assertIn("name.invalid", str(error))

    def test_reason(self) -> None:
        """Why a name gives nothing is said in the words of the system."""

        def unknown(*_words: object, **_options: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        self.patch(socket, "getaddrinfo", unknown)
        error = self.assertRaises(NameNotFound, expanded, [address("dns:name.invalid:1")])
        self.assertEqual("Name or service not known", error.reason)
        self.patch(socket, "getaddrinfo", lambda *words, **options: [])
        error = self.assertRaises(NameNotFound, expanded, [address("dns:name.invalid:1")])
        self.assertEqual("it has no addresses", error.reason)
