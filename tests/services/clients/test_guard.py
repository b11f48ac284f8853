"""Faults of plugins: each costs its own connection and one line of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.testing import StringTransport
from twisted.plugin import IPlugin
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.errors import ConfigError
from disque_tx.plugins.interfaces import IClientProtocol, IConnection, IHost
from disque_tx.plugins.values import JobEvent, Role
from disque_tx.services.clients.discovery import RespPlugin
from disque_tx.services.clients.guard import BUSY_MS, REPORT_MS
from disque_tx.services.clients.listeners import Listeners
from disque_tx.services.clients.pluginclient import CALLS_MAX
from tests.services.rootbench import RootCase


class Gopher(Protocol):
    """Does what its test wants whenever bytes arrive. ``deed``: called with the protocol."""

    connection: IConnection

    def __init__(self, host: IHost, deed: Callable[[Gopher], object]) -> None:
        self.host = host
        self.deed = deed

    def connectionMade(self) -> None:
        self.connection = self.host.admit(self.transport, "gopher")

    def dataReceived(self, data: bytes) -> None:
        self.connection.received(len(data))
        self.deed(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.connection.closed()


@implementer(IPlugin, IClientProtocol)
@attrs.define
class GopherPlugin:
    """A plugin of a third party. ``host``: the one that it got."""

    deed: Callable[[Any], object]
    protocol: Callable[..., Any] = Gopher
    name: str = "gopher"
    description: str = "A test"
    host: Any = None

    def factory(self, host: IHost) -> IProtocolFactory:
        self.host = host
        if self.deed in (refuse, resign):
            self.deed(None)
        made: Any = Factory.forProtocol(lambda: self.protocol(host, self.deed))
        return made  # type: ignore[no-any-return]


def fall_over(_: object) -> None:
    """What every test must survive."""
    raise ZeroDivisionError("no\ngopher")


class Sneaky(BaseException):
    """No ``Exception``, as ``asyncio.CancelledError``."""


def sneak(_: object) -> None:
    """As :func:`fall_over`."""
    raise Sneaky("no gopher")


def leave(_: object) -> None:
    """As :func:`fall_over`."""
    raise SystemExit(3)


def refuse(_: object) -> None:
    """A plugin that cannot be used at all."""
    raise ValueError("no gopher today")


def resign(_: object) -> None:
    """Another one, which calls ``sys.exit()``."""
    raise SystemExit(1)


class GuardCase(RootCase):
    """Tests on the plugin of a node that is started."""

    def setUp(self) -> None:
        super().setUp()
        self.now_ms = 1_000
        self.root = self.started()
        host = self.root.plugin_host
        host._steady_ms = lambda: self.now_ms
        self.errors = self.settings.logfile

    def listen(
        self, deed: Callable[[Any], object], protocol: Callable[..., Any] = Gopher
    ) -> GopherPlugin:
        """A plugin in use."""
        plugin = GopherPlugin(deed, protocol)
        self.patch(Listeners, "plugin", lambda _self, _name: plugin)
        self.factory: Any = self.root.listeners.protocol_factory("gopher")
        return plugin

    def connect(self) -> tuple[Any, StringTransport]:
        """A client of the plugin."""
        guarded = self.factory.buildProtocol(None)
        transport = StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 5001))
        if guarded is not None:
            guarded.makeConnection(transport)
            self.addCleanup(guarded.connectionLost, Failure(ConnectionDone()))
        return guarded, transport

    def lines(self) -> list[str]:
        """What the log reports of the plugin."""
        marked = [line for line in self.logged().splitlines() if "The plugin" in line]
        return [line.partition("The plugin ")[2] for line in marked]

    def check_alive(self) -> None:
        """Clients of the main port are served."""
        self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))


class Delaying(StringTransport):
    """A transport over TCP. ``delays``: small writes wait for more, as is usual."""

    delays = True

    def setTcpNoDelay(self, enabled: bool) -> None:
        self.delays = not enabled


class DelayTests(GuardCase):
    """When answers of plugins leave."""

    def test_at_once(self) -> None:
        """An answer in several pieces leaves at once: otherwise the system holds back the second
        piece until the client confirms the first, which takes it 40 ms for every answer."""
        self.listen(fall_over)
        transport = Delaying()
        guarded = self.factory.buildProtocol(None)
        guarded.makeConnection(transport)
        self.addCleanup(guarded.connectionLost, Failure(ConnectionDone()))
        self.assertFalse(transport.delays)


class EndTests(GuardCase):
    """The end of a plugin's connection."""

    def test_told(self) -> None:
        """A plugin learns that a client is gone, once, and why."""
        ends: list[Failure] = []

        class Watchful(Gopher):
            def connectionLost(self, reason: Failure = connectionDone) -> None:
                ends.append(reason)
                super().connectionLost(reason)

        self.listen(fall_over, Watchful)
        guarded = self.factory.buildProtocol(None)
        guarded.makeConnection(StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 5001)))
        why = Failure(ConnectionDone())
        guarded.connectionLost(why)
        self.assertEqual([why], ends)


class RaiseTests(GuardCase):
    """A plugin that raises."""

    def test_data(self) -> None:
        """A failure at some bytes ends that connection; others, of the same plugin, stay."""
        self.listen(fall_over)
        _other, kept = self.connect()
        guarded, transport = self.connect()
        guarded.dataReceived(b"x")
        guarded.dataReceived(b"y")
        self.assertEqual((True, False), (transport.disconnected, kept.disconnected))
        (line,) = self.lines()
        self.assertRegex(
            line,
            "^gopher failed in dataReceived; the connection is closed: ZeroDivisionError: no gopher"
            r" \(File .*test_guard.py.*fall_over",
        )
        self.check_alive()

    def test_other_kinds(self) -> None:
        """What is no ``Exception``, such as ``SystemExit``, ends no more than the connection."""
        for deed in (sneak, leave):
            self.listen(deed)
            guarded, transport = self.connect()
            guarded.dataReceived(b"x")
            self.assertTrue(transport.disconnected)
        self.assertEqual(2, len(self.lines()))
        self.assertIn("gopher failed in dataReceived; the connection is closed", self.lines()[1])
        self.listen(leave, lambda _host, deed: deed(None))
        self.assertIsNone(self.connect()[0])
        self.check_alive()

    def test_making(self) -> None:
        """A plugin that cannot even make a protocol serves nobody, and harms nobody."""
        self.listen(fall_over, lambda _host, deed: deed(None))
        self.assertIsNone(self.connect()[0])
        self.assertIn("failed in buildProtocol", self.lines()[0])
        self.check_alive()

    def test_unusable(self) -> None:
        """A plugin that fails at the start is named in the error that ends the start."""
        with self.assertRaisesRegex(ConfigError, "listen gopher: the plugin failed: ValueError"):
            self.listen(refuse)
        with self.assertRaisesRegex(ConfigError, "listen gopher: the plugin failed: SystemExit"):
            self.listen(resign)

    def test_resp(self) -> None:
        """Disque's own protocol is served as on the main port, without a guard in between."""
        self.patch(Listeners, "plugin", lambda _self, _name: RespPlugin())
        factory = self.root.listeners.protocol_factory("resp")
        self.assertIs(self.root.listeners._factory, factory)

    def test_answer(self) -> None:
        """An error that is left in an answer, of the node or the plugin, ends the connection."""
        deeds: list[Callable[[Gopher], object]] = [
            lambda gopher: gopher.connection.call(Role.FULL, b"NONSENSE"),
            lambda gopher: gopher.connection.call(Role.FULL, b"PING").addCallback(fall_over),
        ]
        for deed in deeds:
            self.listen(deed)
            guarded, transport = self.connect()
            guarded.dataReceived(b"x")
            self.reactor.advance(0)
            self.assertTrue(transport.disconnected)
        first, second = self.lines()
        self.assertIn("with an answer; the connection is closed: CommandError", first)
        self.assertIn("ZeroDivisionError", second)
        self.check_alive()

    def test_handled(self) -> None:
        """An error that the plugin handles is none."""
        self.listen(
            lambda gopher: gopher.connection.call(Role.FULL, b"NONSENSE").addErrback(lambda _: None)
        )
        guarded, transport = self.connect()
        guarded.dataReceived(b"x")
        self.reactor.advance(0)
        self.assertEqual((False, []), (transport.disconnected, self.lines()))

    def test_watcher(self) -> None:
        """A watcher that raises gets no more events, and jobs are added as before."""
        plugin = self.listen(lambda _: None)
        plugin.host.watch(fall_over)
        seen: list[JobEvent] = []
        plugin.host.watch(seen.append)
        client = self.dial()
        self.ask(client, "ADDJOB q b 0", "ADDJOB q b 0")
        self.assertEqual(1, len(self.lines()))
        self.assertIn("gopher failed in a watcher; it gets no more events", self.lines()[0])
        self.assertEqual(4, len(seen))

    def test_watcher_costs_nothing(self) -> None:
        """A watcher that raised, or that was ended, costs the node nothing any more."""
        plugin = self.listen(lambda _: None)
        plugin.host.watch(fall_over)
        self.ask(self.dial(), "ADDJOB q b 0")
        outbox = self.root.runtime.node.outbox
        self.assertIsNone(outbox.events)
        end = plugin.host.watch(lambda event: None)
        self.assertIsNotNone(outbox.events)
        end()
        self.assertIsNone(outbox.events)

    def test_watcher_of_other_kinds(self) -> None:
        """Whatever a watcher raises, clients get the answers to their requests."""
        plugin = self.listen(lambda _: None)
        plugin.host.watch(sneak)
        plugin.host.watch(leave)
        client = self.dial()
        answers = self.ask(client, "ADDJOB q b 0", "ADDJOB q b 0")
        self.assertEqual(2, answers.count(b"+D-"))  # IDs may contain D-, too
        self.assertEqual(2, len(self.lines()))

    def test_timer(self) -> None:
        """A timer that raises is a line of the log."""
        plugin = self.listen(lambda _: None)
        plugin.host.reactor.callLater(1, fall_over, None)
        self.reactor.advance(1)
        self.assertIn("gopher failed in a timer", self.lines()[0])
        plugin.host.reactor.callLater(1, leave, None)
        self.reactor.advance(1)
        self.assertEqual(2, len(self.lines()))


class BusyTests(GuardCase):
    """A plugin that keeps the reactor to itself."""

    def busy(self, _: object) -> None:
        self.now_ms += BUSY_MS

    def test_reported(self) -> None:
        """Operators learn which plugin it is and for how long, but are not flooded with that."""
        plugin = self.listen(self.busy)
        guarded, transport = self.connect()
        for _ in range(3):
            guarded.dataReceived(b"x")
        plugin.host.watch(self.busy)
        self.ask(self.dial(), "ADDJOB q b 0")
        self.assertEqual(1, len(self.lines()))
        self.assertIn(f"gopher kept the node busy for {BUSY_MS} ms in dataRec", self.lines()[0])
        self.now_ms += REPORT_MS
        self.ask(self.dial(), "ADDJOB q b 0")
        self.assertIn("in a watcher", self.lines()[1])
        self.assertFalse(transport.disconnected)

    def test_node(self) -> None:
        """What the node itself takes for a command is not the plugin's fault."""
        plugin = self.listen(
            lambda gopher: gopher.connection.call(Role.FULL, b"PING").addCallback(lambda _: None)
        )
        other = self.root.node_service.run

        def slow(*words: Any, **named: Any) -> Any:
            self.busy(None)
            return other(*words, **named)

        self.patch(self.root.node_service, "run", slow)
        guarded, _transport = self.connect()
        guarded.dataReceived(b"x")
        self.assertEqual([], self.lines())
        self.assertEqual("gopher", plugin.name)


class LeakTests(GuardCase):
    """A plugin that forgets."""

    def test_calls(self) -> None:
        """A connection with too many calls that wait is closed, and nothing is left of them."""

        def wait(gopher: Gopher) -> None:
            gopher.connection.call(Role.FULL, b"GETJOB", b"FROM", b"q").addErrback(lambda _: None)

        self.listen(wait)
        guarded, transport = self.connect()
        for _ in range(CALLS_MAX):
            guarded.dataReceived(b"x")
        self.assertFalse(transport.disconnected)
        guarded.dataReceived(b"x")
        guarded.dataReceived(b"x")
        self.assertTrue(transport.disconnected)
        self.assertEqual(1, len(self.lines()))
        self.assertIn(f"has {CALLS_MAX} calls without an answer", self.lines()[0])
        guarded.connectionLost(Failure(ConnectionDone()))
        self.assertEqual({}, self.root.runtime.calls)

    def test_never_closed(self) -> None:
        """A client whose plugin does not report its end does not count forever."""

        class Forgetful(Gopher):
            """Never calls ``closed``."""

            def connectionLost(self, reason: Failure = connectionDone) -> None:
                """Forget it."""

        self.listen(lambda _: None, Forgetful)
        guarded, _transport = self.connect()
        self.assertEqual(1, len(self.root.server.clients))
        guarded.connectionLost(Failure(ConnectionDone()))
        self.assertEqual({}, self.root.server.clients)
        self.assertIn("is gone, and the plugin did not call closed()", self.lines()[0])
