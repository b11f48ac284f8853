"""The periodic work of a node and its cluster."""

from __future__ import annotations

from typing import Any, cast

from disque_tx.config.lists import OutputLimit
from disque_tx.messages.bustypes import NEEDJOBS
from disque_tx.services.machine.delays import Delays
from disque_tx.services.node.periodic import Cron, FederationService, GossipService
from tests.services.bus.bench import BusCase
from tests.services.doubles import StillLog
from tests.services.nodebench import FIRST_ID, NodeCase


class CronCase(NodeCase):
    """A node whose cron runs ten times a second."""

    def setUp(self) -> None:
        """A started node, at a whole second of the monotonic clock."""
        super().setUp()
        self.aof = StillLog()
        self.late = Delays()
        self.cron = Cron(
            self.runtime, self.settings, self.platform(), cast(Any, self.aof), self.late
        )
        self.cron.startService()
        self.addCleanup(self.stop)

    def stop(self) -> None:
        if self.cron.running:
            self.cron.stopService()

    def wait(self, seconds: float) -> None:
        """Let time pass, one period of the cron at a time."""
        self.reactor.pump([0.1] * round(seconds * 10))


class IdleTests(CronCase):
    """``timeout`` (client protocol, section 2)."""

    def test_closed(self) -> None:
        """A connection that is idle for more than this many whole seconds is closed without a
        message."""
        self.settings.timeout = 3
        _client, transport = self.connect()
        self.wait(3.9)
        self.assertFalse(transport.disconnected)
        self.wait(0.2)
        self.assertEqual((True, b""), (transport.disconnected, transport.value()))

    def test_off(self) -> None:
        """Without a timeout no connection is closed."""
        _client, transport = self.connect()
        self.wait(100)
        self.assertFalse(transport.disconnected)

    def test_talking(self) -> None:
        """Every request resets the idle time."""
        self.settings.timeout = 2
        client, transport = self.connect()
        for _ in range(5):
            self.wait(1.5)
            client.dataReceived(b"PING\r\n")
        self.assertFalse(transport.disconnected)

    def test_blocked(self) -> None:
        """A blocked client is not idle, and has time to acknowledge its job."""
        self.settings.timeout = 2
        client, transport = self.connect()
        client.dataReceived(b"GETJOB FROM q\r\n")
        self.wait(20)
        self.turn(b"ADDJOB q b 0")
        self.assertIn(FIRST_ID, transport.value())
        self.wait(1)
        self.assertFalse(transport.disconnected)
        self.wait(3)
        self.assertTrue(transport.disconnected)

    def test_monitor(self) -> None:
        """Successful output resets the idle time as well: a busy monitor is not idle."""
        self.settings.timeout = 2
        monitor, transport = self.connect()
        monitor.dataReceived(b"MONITOR\r\n")
        for _ in range(5):
            self.wait(1.5)
            self.turn(b"PING")
        self.assertFalse(transport.disconnected)

    def test_many(self) -> None:
        """With many clients each run checks some of them, and all within a second."""
        self.settings.timeout = 1
        transports = [self.connect()[1] for _ in range(200)]
        self.wait(2.0)
        self.assertLess(sum(transport.disconnected for transport in transports), 200)
        self.wait(1.1)
        self.assertEqual(200, sum(transport.disconnected for transport in transports))


class OutputTests(CronCase):
    """``client-output-buffer-limit``."""

    def slow(self, size_bytes: int) -> Any:
        """The transport of a client with this much output that it does not read."""
        client, transport = self.connect()
        client.pauseProducing()
        client.dataReceived(b"*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n" % (size_bytes, b"x" * size_bytes))
        return transport

    def test_hard(self) -> None:
        """Above the hard limit a client is closed at the next check, which is logged."""
        self.settings.client_output_buffer_limit = OutputLimit(10_000, 0, 0)
        below, above = self.slow(9_000), self.slow(11_000)
        self.wait(0.2)
        self.assertEqual((False, True), (below.disconnected, above.disconnected))
        self.assertIn("client-output-buffer-limit", self.logged())

    def test_soft(self) -> None:
        """Above the soft limit a client is closed after the configured number of seconds."""
        self.settings.client_output_buffer_limit = OutputLimit(0, 10_000, 2)
        transport = self.slow(11_000)
        self.wait(2.0)
        self.assertFalse(transport.disconnected)
        self.wait(0.3)
        self.assertTrue(transport.disconnected)

    def test_soft_again(self) -> None:
        """The time starts again for a client that read in between."""
        self.settings.client_output_buffer_limit = OutputLimit(0, 10_000, 2)
        transport = self.slow(11_000)
        self.wait(1.5)
        transport.producer.resumeProducing()
        self.wait(0.2)
        transport.producer.pauseProducing()
        transport.producer.dataReceived(b"*2\r\n$4\r\nPING\r\n$11000\r\n" + b"x" * 11_000 + b"\r\n")
        self.wait(1.5)
        self.assertFalse(transport.disconnected)


class CronTests(CronCase):
    """Other periodic work."""

    def test_pause_ends(self) -> None:
        """Requests sent during CLIENT PAUSE are executed when it ends."""
        client, transport = self.connect()
        client.dataReceived(b"CLIENT PAUSE 500\r\nPING\r\n")
        self.wait(0.4)
        self.assertEqual(b"+OK\r\n", transport.value())
        self.wait(0.3)
        self.assertEqual(b"+OK\r\n+PONG\r\n", transport.value())

    def test_trouble(self) -> None:
        """Every run checks whether the log works."""
        self.aof.write_error = "No space left on device"
        self.wait(0.1)
        self.assertTrue(self.server.degraded)
        self.aof.write_error = ""
        self.wait(0.1)
        self.assertFalse(self.server.degraded)

    def test_pace(self) -> None:
        """``hz`` runs per second, also after a change."""
        self.wait(1)
        self.assertEqual(10, self.aof.ticks)
        self.settings.hz = 50
        self.cron.hz_changed()
        self.reactor.pump([0.02] * 50)
        self.assertEqual(60, self.aof.ticks)

    def test_delays(self) -> None:
        """INFO says how often the process was late by a second or more in the last minute,
        and by how much at most, so that a slow node is known to be one."""
        self.wait(1)
        self.assertEqual(("0", "0.00"), self.delays())
        for late_s in (0.4, 1.2, 2.6):
            self.reactor.advance(late_s)
            self.wait(1)
        self.assertEqual(("2", "2.50"), self.delays())
        self.wait(61)
        self.assertEqual(("0", "0.00"), self.delays())

    def delays(self) -> tuple[str, str]:
        """What INFO says of them."""
        fields = dict(self.late.info())
        return fields["event_loop_delays"], fields["event_loop_delay_seconds"]

    def test_goes_on(self) -> None:
        """An exception in a run is logged, and the next run still happens."""
        self.aof.error = ZeroDivisionError("oops")
        self.wait(0.5)
        self.assertIn("oops", self.logged())
        self.assertEqual(5, self.aof.ticks)

    def test_stop(self) -> None:
        """A stopped cron leaves nothing in the reactor."""
        self.cron.stopService()
        self.runtime.stop()
        self.assertEqual([], self.reactor.getDelayedCalls())


class RecordingCluster:
    """Records the calls of the cluster's tick. ``fault``: raised by the next one."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self.cluster = self
        self.times_ms: list[int] = []
        self.fault: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def tick(self) -> None:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        self.times_ms.append(int(self._node.now_ms))


class GossipTests(NodeCase):
    """The cluster's ticks."""

    def setUp(self) -> None:
        super().setUp()
        self.recording = RecordingCluster(self.node)
        self.runtime.node = self.recording  # type: ignore[assignment]
        self.service = GossipService(self.runtime, self.log, self.reactor)
        self.service.startService()
        self.start_ms = self.recording.times_ms[0]

    def test_pace(self) -> None:
        """Ten times a second by the monotonic clock, from start to stop."""
        self.reactor.pump([0.1] * 3)
        self.service.stopService()
        self.reactor.pump([0.1] * 3)
        self.assertEqual(
            [0, 100, 200, 300], [now_ms - self.start_ms for now_ms in self.recording.times_ms]
        )
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_in_a_turn(self) -> None:
        """Messages caused by a tick are sent at the end of its turn."""
        commits = self.commits.commits
        self.reactor.advance(0.1)
        self.assertEqual(commits + 1, self.commits.commits)
        self.assertFalse(self.runtime.turns.active)
        self.service.stopService()

    def test_fault(self) -> None:
        """An exception is logged, and the next tick still happens."""
        self.recording.fault = ZeroDivisionError("beat")
        self.reactor.pump([0.1] * 2)
        self.assertIn("beat", self.logged())
        self.assertEqual(2, len(self.recording.times_ms))
        self.service.stopService()


class FederationTests(BusCase):
    """A client waits for jobs that other nodes may have."""

    def test_asks_again(self) -> None:
        """Other nodes are sent a request at once, and again later, while the service runs."""
        service = FederationService(self.runtime)
        service.startService()
        self.start()
        _entry, other = self.called()
        self.received_types(other)
        client, _transport = self.connect()
        client.dataReceived(b"GETJOB FROM q\r\n")
        self.assertEqual([NEEDJOBS], self.received_types(other))
        self.settle(60_000)
        self.assertIn(NEEDJOBS, self.received_types(other))
        service.stopService()
        self.assertEqual([], self.runtime.turns.deadlines)
