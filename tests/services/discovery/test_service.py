"""Sources are looked up again and again, and the node is told what they list."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred, fail, maybeDeferred, succeed

from disque_tx.core.nodes.discovery import Discovery, Place
from disque_tx.messages.nodes import HANDSHAKE
from disque_tx.services.discovery import service as module
from disque_tx.services.discovery.names import LookupFailed
from disque_tx.services.discovery.service import DiscoveryService
from tests.services.nodebench import NodeCase


class KnownNames:
    """Names in memory. ``asked``: the hosts that were looked up; ``waits``: lookups never end."""

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {}
        self.records: dict[str, list[tuple[str, int]]] = {}
        self.asked: list[str] = []
        self.waits = False

    def addresses(self, host: str) -> Deferred[list[str]]:
        self.asked.append(host)
        return self._answer(self.known.get(host))

    def services(self, name: str) -> Deferred[list[tuple[str, int]]]:
        self.asked.append(name)
        return self._answer(self.records.get(name))

    def _answer(self, found: list[Any] | None) -> Deferred[Any]:
        if self.waits:
            return Deferred()
        return succeed(found) if found else fail(LookupFailed("there is no such name"))


class ServiceCase(NodeCase):
    """A node that looks for others; the interval is 10 s, without jitter."""

    def begin(self, *sources: str) -> None:
        """Start to look for nodes."""
        self.settings.cluster_discovery = list(sources)
        self.names = KnownNames()
        self.patch(module, "Names", lambda reactor, servers: self.use(servers))
        platform = self.platform()
        object.__setattr__(platform, "in_thread", maybeDeferred)
        self.service = DiscoveryService(self.runtime, lambda: self.settings, platform, lambda: 0.5)
        self.servers: list[tuple[str, int]] = []

    def use(self, servers: list[tuple[str, int]]) -> KnownNames:
        """The names are those of the test, whatever the name servers."""
        self.servers = servers
        return self.names

    def start(self) -> None:
        """Start the service, and stop it at the end of the test."""
        self.service.startService()
        self.addCleanup(self.stop)

    def stop(self) -> None:
        if self.service.running:
            self.service.stopService()

    @property
    def discovery(self) -> Discovery:
        return self.node.cluster.discovery

    def listed(self, source: str) -> list[Place]:
        """What a source has listed."""
        return self.discovery.sources[source].places


class LookupTests(ServiceCase):
    """What sources list, and how often they are looked up."""

    def test_names(self) -> None:
        """A name is looked up at the start and every interval; its addresses have the port of this
        daemon, and its bus port, unless other ones are written."""
        self.settings.port, self.settings.cluster_bus_port = 7_800, 7_900
        self.begin("dns:n.example", "dns:n.example:7712", "dns:n.example:7712@9")
        self.names.known["n.example"] = ["10.0.0.2", "fd00::2"]
        self.start()
        for source, ports in (
            ("dns:n.example", (7_800, 7_900)),
            ("dns:n.example:7712", (7_712, 0)),
            ("dns:n.example:7712@9", (7_712, 9)),
        ):
            expected = [(b"10.0.0.2", *ports), (b"fd00::2", *ports)]
            self.assertEqual(expected, self.listed(source))
        self.names.known["n.example"] = ["10.0.0.3"]
        self.reactor.advance(9.9)
        self.assertEqual(3, len(self.names.asked))
        self.reactor.advance(0.1)
        self.assertEqual([(b"10.0.0.3", 7_800, 7_900)], self.listed("dns:n.example"))

    def test_announced(self) -> None:
        """Behind a mapping of ports, other nodes have the ports that this one announces."""
        self.settings.cluster_announce_port = 8_800
        self.settings.cluster_announce_bus_port = 8_900
        self.begin("static:10.0.0.2")
        self.names.known["10.0.0.2"] = ["10.0.0.2"]
        self.start()
        self.assertEqual([(b"10.0.0.2", 8_800, 8_900)], self.listed("static:10.0.0.2"))

    def test_met(self) -> None:
        """What is found is tried."""
        self.begin("static:10.0.0.2:7712")
        self.names.known["10.0.0.2"] = ["10.0.0.2"]
        self.start()
        with self.runtime.turn() as node:
            node.cluster.tick()
        entries = self.node.membership.nodes.values()
        self.assertEqual([b"10.0.0.2"], [one.ip for one in entries if one.flags & HANDSHAKE])

    def test_services(self) -> None:
        """SRV records say the port."""
        self.begin("srv:_d._tcp.n.example")
        self.names.records["_d._tcp.n.example"] = [("10.0.0.2", 7_712), ("10.0.0.3", 7_713)]
        self.start()
        expected = [(b"10.0.0.2", 7_712, 0), (b"10.0.0.3", 7_713, 0)]
        self.assertEqual(expected, self.listed("srv:_d._tcp.n.example"))

    def test_some_missing(self) -> None:
        """Of a list, the hosts that are found count."""
        self.begin("static:gone,here:1")
        self.names.known["here"] = ["10.0.0.2"]
        self.start()
        self.assertEqual([(b"10.0.0.2", 1, 0)], self.listed("static:gone,here:1"))
        self.assertEqual([], self.discovery.errors())

    def test_file(self) -> None:
        """A file is read again within a second after it changed, and its hosts are looked up every
        interval; one that is gone, damaged or empty changes nothing, and is named with the line."""
        path = Path(self.mktemp()).absolute()
        source = f"file:{path}"
        self.begin(source)
        self.names.known.update({"a": ["10.0.0.2"], "b": ["10.0.0.3"]})
        self.start()
        self.assertEqual([f"{source}: No such file or directory"], self.discovery.errors())
        path.write_text("a:1\n")
        self.reactor.advance(1)
        self.assertEqual([(b"10.0.0.2", 1, 0)], self.listed(source))
        for text, why in (("a:1\nb c\n", "line 2: "), ("# none\n", "it lists no node")):
            path.write_text(text)
            self.reactor.advance(1)
            self.assertTrue(self.discovery.errors()[0].startswith(f"{source}: {why}"))
            self.assertEqual([(b"10.0.0.2", 1, 0)], self.listed(source))
        path.write_text("b:22\n")
        self.reactor.advance(1)
        self.assertEqual([(b"10.0.0.3", 22, 0)], self.listed(source))
        self.names.known["b"] = ["10.0.0.4"]
        self.reactor.pump([1] * 11)
        self.assertEqual([(b"10.0.0.4", 22, 0)], self.listed(source))

    def test_long_file(self) -> None:
        """A file that is no list of nodes is not read as a whole."""
        path = Path(self.mktemp()).absolute()
        path.write_bytes(b"x" * 1024 * 1025)
        self.begin(f"file:{path}")
        self.start()
        self.assertIn("longer than 1048576 bytes", self.discovery.errors()[0])

    def test_longest_file(self) -> None:
        """A list of just the length that is allowed is read, and one byte more is refused."""
        path = Path(self.mktemp()).absolute()
        text = "a:1\n" + "# padding\n" * 200_000
        path.write_text(text[:1_048_576])
        self.begin(f"file:{path}")
        self.names.known["a"] = ["10.0.0.2"]
        self.start()
        self.assertEqual([(b"10.0.0.2", 1, 0)], self.listed(f"file:{path}"))
        path.write_text(text[:1_048_577])
        self.reactor.advance(1)
        self.assertIn("longer than 1048576 bytes", self.discovery.errors()[0])

    def test_servers(self) -> None:
        """The configuration may name the name servers."""
        self.settings.cluster_discovery_nameservers = ["127.0.0.1:5353", "[::1]"]
        self.begin("dns:n.example")
        self.start()
        self.assertEqual([("127.0.0.1", 5353), ("::1", 53)], self.servers)


class TroubleTests(ServiceCase):
    """Answers that do not come."""

    def test_logged_once(self) -> None:
        """Each reason is logged once, and the end of it; the addresses stay meanwhile."""
        self.begin("dns:n.example")
        self.names.known["n.example"] = ["10.0.0.2"]
        self.start()
        self.names.known.clear()
        self.reactor.pump([10] * 5)
        self.names.known["n.example"] = ["10.0.0.2"]
        self.reactor.advance(10)
        start = "cluster-discovery dns:n.example"
        lines = [line.partition(start)[2] for line in self.logged().splitlines() if start in line]
        self.assertEqual(2, len(lines))
        self.assertTrue(lines[0].startswith(" finds no nodes: there is no such name. "))
        self.assertEqual(" works again", lines[1])
        self.assertEqual(5, self.discovery.sources["dns:n.example"].failures)
        self.assertEqual(1, self.discovery.addresses)

    def test_strange_reason(self) -> None:
        """What a name server makes this program say is no line of its own in the log, and short."""
        self.begin("dns:n.example")
        self.patch(self.names, "addresses", lambda host: fail(LookupFailed("x\r\n" + "y" * 1_000)))
        self.start()
        (error,) = self.discovery.errors()
        self.assertTrue(error.startswith("dns:n.example: x\\r\\nyyy"))
        self.assertTrue(len(error) < 350)

    def test_fault(self) -> None:
        """A fault of this program ends neither the lookups nor the node."""
        self.begin("dns:n.example")
        self.patch(self.names, "addresses", lambda host: cast(Any, 1 / 0))
        self.start()
        self.assertIn("a fault in this program", self.discovery.errors()[0])
        self.names = KnownNames()
        self.assertTrue(self.reactor.getDelayedCalls())

    def test_slow(self) -> None:
        """A source is asked again only when it has answered; an answer after the stop is
        ignored."""
        self.begin("dns:n.example")
        self.names.waits = True
        self.start()
        self.reactor.pump([10] * 5)
        self.assertEqual(["n.example"], self.names.asked)
        self.service.stopService()
        self.assertEqual([], self.reactor.getDelayedCalls())
