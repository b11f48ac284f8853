"""Names become addresses, whatever name servers answer."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred, inlineCallbacks, succeed
from twisted.internet.task import Clock
from twisted.names import dns
from twisted.trial.unittest import TestCase

from disque_tx.services.discovery.names import LookupFailed, Names, SystemFiles
from tests.services.discovery.nameserver import NameServer

NAME = "disque.example"
Steps = Generator[Deferred[Any], Any, None]


class NamesTests(TestCase):
    """A real name server on this host."""

    def setUp(self) -> None:
        self.server = NameServer(reactor)
        self.addCleanup(self.server.stop)
        self.names = Names(reactor, [(self.server.ip, self.server.port)])

    @inlineCallbacks
    def assert_fails(self, looked_up: Deferred[Any], why: str) -> Steps:
        """The lookup fails for this reason."""
        failure = yield self.assertFailure(looked_up, LookupFailed)
        self.assertEqual(why, str(failure))

    @inlineCallbacks
    def test_both_kinds(self) -> Steps:
        """A host has all of its addresses, of both kinds, each once."""
        self.server.hosts(NAME, ["10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.1"])
        found = yield self.names.addresses(NAME)
        self.assertEqual(["10.0.0.1", "10.0.0.2", "fd00::1"], found)

    @inlineCallbacks
    def test_changes(self) -> Steps:
        """A name that changes is seen at the next lookup, however long its TTL is."""
        for addresses in (["10.0.0.1"], ["10.0.0.2"]):
            self.server.hosts(NAME, addresses)
            found = yield self.names.addresses(NAME)
            self.assertEqual(addresses, found)

    @inlineCallbacks
    def test_thousand(self) -> Steps:
        """An answer that does not fit into a datagram is fetched by TCP, and no connection stays
        open."""
        addresses = [f"10.0.{number // 250}.{number % 250 + 1}" for number in range(1_000)]
        self.server.hosts(NAME, addresses)
        found = yield self.names.addresses(NAME)
        self.assertEqual(addresses, found)

    @inlineCallbacks
    def test_too_many(self) -> Steps:
        """An answer with more addresses than any cluster has is no answer."""
        self.server.hosts(NAME, [f"10.0.{n // 250}.{n % 250 + 1}" for n in range(1_100)])
        yield self.assertFailure(self.names.addresses(NAME), LookupFailed)
        self.flushLoggedErrors(dns.DNSDecodeError)

    @inlineCallbacks
    def test_one_kind_fails(self) -> Steps:
        """A name with addresses of one kind has those."""
        self.server.hosts(NAME, ["fd00::1"])
        found = yield self.names.addresses(NAME)
        self.assertEqual(["fd00::1"], found)

    @inlineCallbacks
    def test_failures(self) -> Steps:
        """The reason says what to look at."""
        self.server.failing.add("failing.example")
        self.server.refusing.add("refusing.example")
        self.server.services("empty.example", [("host.example", 1)])
        for name, why in (
            ("vanished.example", "there is no such name"),
            ("failing.example", "the name server has failed"),
            ("refusing.example", "the name server refuses to answer"),
            ("empty.example", "it has no addresses"),
        ):
            yield self.assert_fails(self.names.addresses(name), why)
            yield self.assert_fails(
                self.names.services(name),
                "host.example: there is no such name" if name == "empty.example" else why,
            )

    @inlineCallbacks
    def test_literal(self) -> Steps:
        """An address needs no name server."""
        for ip in ("10.0.0.1", "fd00::1"):
            found = yield self.names.addresses(ip)
            self.assertEqual([ip], found)
        self.assertEqual(0, self.server.asked)

    @inlineCallbacks
    def test_services(self) -> Steps:
        """SRV records give addresses with ports; a host is looked up once, unless its address came
        along; hosts that are not found are left out."""
        targets = [
            ("a.example", 7711),
            ("a.example", 7712),
            ("gone.example", 7711),
            ("b.example", 7),
        ]
        self.server.services("_disque._tcp.example", targets)
        self.server.hosts("a.example", ["10.0.0.1", "fd00::1"])
        self.server.add_along("B.example", "10.0.0.9")
        found = yield self.names.services("_disque._tcp.example")
        expected = [(ip, port) for port in (7711, 7712) for ip in ("10.0.0.1", "fd00::1")]
        self.assertEqual([*expected, ("10.0.0.9", 7)], found)
        self.assertEqual(5, self.server.asked)

    @inlineCallbacks
    def test_no_service(self) -> Steps:
        """A target '.' means that the service is not offered."""
        self.server.services("_disque._tcp.example", [(".", 7711)])
        yield self.assert_fails(
            self.names.services("_disque._tcp.example"), "it has no SRV records"
        )

    def test_other_records(self) -> None:
        """What else is in an answer, as the alias on the way, is no address."""
        self.server.hosts(NAME, ["10.0.0.1"])
        alias = dns.RRHeader(NAME, dns.CNAME, payload=dns.Record_CNAME("other.example"))
        self.server._records[NAME, dns.A].insert(0, alias)
        return self.names.addresses(NAME).addCallback(  # type: ignore[return-value]
            lambda found: self.assertEqual(["10.0.0.1"], found)
        )


class SystemTests(TestCase):
    """The name servers, domains and hosts of the system."""

    def setUp(self) -> None:
        self.server = NameServer(reactor)
        self.addCleanup(self.server.stop)
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        (self.folder / "hosts").write_text("10.1.1.1 known # here\n10.1.1.2 Known.example known\n")

    @inlineCallbacks
    def test_hosts(self) -> Steps:
        """A host in the file of hosts needs no name server."""
        names = Names(reactor, files=SystemFiles("/nowhere", str(self.folder / "hosts")))
        found = yield names.addresses("Known")
        self.assertEqual(["10.1.1.1", "10.1.1.2"], found)

    def test_silence(self) -> None:
        """A server that keeps silent is given up after six seconds, with nothing left behind."""
        self.server.silent.add(NAME)
        clock = Clock()
        clock.listenUDP = reactor.listenUDP  # type: ignore[attr-defined]
        names = Names(clock, [(self.server.ip, self.server.port)])
        failed = self.assertFailure(names.addresses(NAME), LookupFailed)
        clock.pump([1, 2, 3])
        self.assertEqual("no name server answers", str(self.successResultOf(failed)))
        self.assertEqual([], clock.getDelayedCalls())

    def test_full_names(self) -> None:
        """A name without a dot is searched in the domains of the system first, any other last, and
        one with a dot at its end not at all."""
        (self.folder / "resolv.conf").write_text(
            "# comment\nnameserver 192.0.2.1\nnameserver\nsearch a.example b.example\nsearch\n"
            "domain\noptions ndots:5 timeout:1\n"
        )
        names = Names(reactor, files=SystemFiles(str(self.folder / "resolv.conf"), "/nowhere"))
        asked: list[str] = []

        def both_kinds(servers: Any, name: str) -> Any:
            self.assertEqual([("192.0.2.1", 53)], servers.addresses)
            asked.append(name)
            return [], "there is no such name"

        for host, expected in (
            ("node", ["node.a.example", "node.b.example", "node"]),
            ("node.c", ["node.c", "node.c.a.example", "node.c.b.example"]),
            ("node.c.", ["node.c"]),
        ):
            asked.clear()
            self.patch(names, "_both_kinds", lambda *args: succeed(both_kinds(*args)))
            self.failureResultOf(names.addresses(host), LookupFailed)
            self.assertEqual(expected, asked)
