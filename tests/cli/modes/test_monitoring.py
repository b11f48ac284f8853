"""The endless modes, ended by a scripted server."""

from __future__ import annotations

import io

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.connection import ServerConnection, ServerConnectionLost, ServerUnreachable
from disque_tx.cli.formatting import human_size
from disque_tx.cli.modes.monitoring import (
    RefusedError,
    intrinsic_latency,
    latency,
    stat,
)
from tests.cli.double import CLOSE, ScriptedServer


def info(commands: int, rewriting: int = 0) -> bytes:
    """A reply to INFO."""
    text = (
        "# Clients\r\nconnected_clients:4\r\nblocked_clients:2\r\nused_memory:1572864\r\n"
        "registered_jobs:12\r\nregistered_queues:3\r\n"
        f"aof_rewrite_in_progress:{rewriting}\r\ntotal_connections_received:9\r\n"
        f"total_commands_processed:{commands}\r\n"
    ).encode()
    return b"$%d\r\n%b\r\n" % (len(text), text)


class Ticking:
    """A clock that advances by ``step_s`` seconds whenever it is read."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


class MonitoringTests(SynchronousTestCase):
    """``latency`` and ``stat``."""

    def setUp(self) -> None:
        self.out = io.BytesIO()
        self.clock = Clock()

    def serve(self, *answers: bytes) -> ScriptedServer:
        """A server with this script."""
        server = ScriptedServer(*answers)
        self.addCleanup(server.stop)
        return server

    def connect(self, server: ScriptedServer) -> ServerConnection:
        """A connection that is closed at the end of the test."""
        connection = ServerConnection(server.address)
        self.addCleanup(connection.close)
        return connection

    def test_latency(self) -> None:
        """The line is redrawn after every round trip."""
        connection = self.connect(self.serve(b"+PONG\r\n", b"+PONG\r\n", CLOSE))
        with self.assertRaises(ServerConnectionLost):
            latency(connection, self.out, Ticking(0.002), self.clock.advance, None)
        lines = self.out.getvalue().split(b"\x1b[0G\x1b[2K")
        self.assertEqual(b"min: 2, max: 2, avg: 2.00 (2 samples)", lines[-1])
        self.assertEqual(3, len(lines))

    def test_latency_history(self) -> None:
        """When a period ends, its line stays, and the next one starts without samples."""
        connection = self.connect(self.serve(*[b"+PONG\r\n"] * 4, CLOSE))
        with self.assertRaises(ServerConnectionLost):
            latency(connection, self.out, Ticking(1.0), self.clock.advance, 3.0)
        lines = self.out.getvalue().split(b"\n")
        self.assertTrue(
            lines[0].endswith(b"max: 1000, avg: 1000.00 (2 samples) -- 4.00 seconds range")
        )
        self.assertTrue(lines[1].endswith(b"(2 samples) -- 4.00 seconds range"))

    def test_stat(self) -> None:
        """Jobs, queues, memory, clients, requests with growth, connections, and a rewrite."""
        server = self.serve(info(100), info(130, rewriting=1), b"-NOAUTH no\r\n")
        with self.assertRaises(RefusedError):
            stat(lambda: self.connect(server), self.out, self.clock.advance, 1.0)
        lines = self.out.getvalue().decode().splitlines()
        self.assertEqual("keys       mem      clients blocked requests", lines[1][:44])
        self.assertEqual(["12/3", "1.50M", "4", "2", "100", "(+0)", "9"], lines[2].split())
        self.assertEqual(["12/3", "1.50M", "4", "2", "130", "(+30)", "9", "AOF"], lines[3].split())
        self.assertEqual(lines[1].index("connections"), lines[3].index("9"))

    def test_stat_header_is_repeated(self) -> None:
        """On a long screen, the header is repeated so that it stays visible."""
        server = self.serve(*[info(1)] * 21, b"-ERR no\r\n")
        with self.assertRaises(RefusedError):
            stat(lambda: self.connect(server), self.out, self.clock.advance, 1.0)
        self.assertEqual(2, self.out.getvalue().count(b"keys "))

    def test_stat_reconnects(self) -> None:
        """When the server restarts, the mode reconnects once per second."""
        server = self.serve(info(1), CLOSE, info(2), b"-ERR no\r\n")
        refusals = iter((False, True, True, False))

        def connect() -> ServerConnection:
            if next(refusals):
                raise ServerUnreachable("away")
            return self.connect(server)

        with self.assertRaises(RefusedError):
            stat(connect, self.out, self.clock.advance, 0.0)
        self.assertIn(
            b"Reconnecting (1)...\nReconnecting (2)...\nReconnecting (3)...\n", self.out.getvalue()
        )
        self.assertEqual(3.0, self.clock.seconds())

    def test_intrinsic_latency(self) -> None:
        """The longest gap and the averages are computed correctly."""
        ticks = iter([0, 1000, 501000, 502000, 2_000_000_000])
        intrinsic_latency(self.out, lambda: next(ticks), 2.0)
        text = self.out.getvalue().decode()
        self.assertIn("Longest gap so far: 500 microseconds", text)
        self.assertIn("4 runs, on average 500000.0000 microseconds (500000000.00 nano", text)

    def test_human_size(self) -> None:
        """Sizes are shown in the unit that keeps them short."""
        cases = {0: "0B", 1023: "1023B", 1536: "1.50K", 3 << 30: "3.00G", 2 << 50: "2048.00T"}
        for size, expected in cases.items():
            self.assertEqual(expected, human_size(size))
