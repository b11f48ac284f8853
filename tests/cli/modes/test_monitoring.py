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
from tests.cli.double import CLOSE, Screen, ScriptedServer


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

    def test_intrinsic_total(self) -> None:
        """At the end it is said how much longer the longest gap was than the others."""
        ticks = iter([0, 1000, 3000, 4000])
        intrinsic_latency(self.out, lambda: next(ticks), 4e-6)
        expected = (
            "Longest gap so far: 1 microseconds",
            "Longest gap so far: 2 microseconds",
            "3 runs, on average 1.3333 microseconds (1333.33 nanoseconds) each",
            "The longest took 2 times the average",
        )
        self.assertEqual("\n".join(expected) + "\n", self.out.getvalue().decode())

    def test_seen_at_once(self) -> None:
        """Each line is seen while the program pauses, and not only when it ends."""
        screen = Screen()
        seen: list[bytes] = []
        rests: list[float] = []

        def rest(pause_s: float) -> None:
            seen.append(screen.seen())
            rests.append(pause_s)

        connection = self.connect(self.serve(b"+PONG\r\n", CLOSE))
        with self.assertRaises(ServerConnectionLost):
            latency(connection, screen, Ticking(0.001), rest, None)
        self.assertTrue(seen[-1].endswith(b"(1 samples)"), seen)
        server = self.serve(info(1), CLOSE, b"-ERR no\r\n")
        with self.assertRaises(RefusedError):
            stat(lambda: self.connect(server), screen, rest, 7.0)
        self.assertTrue(seen[1].endswith(b"9           \n"), seen[1])
        self.assertTrue(seen[2].endswith(b"Reconnecting (1)...\n"), seen[2])
        self.assertEqual([0.01, 7.0, 1.0], rests)
        ticks = iter([0, 5000, 6000])

        def tick() -> int:
            seen.append(screen.seen())
            return next(ticks)

        intrinsic_latency(screen, tick, 6e-6)
        self.assertTrue(seen[-1].endswith(b"Longest gap so far: 5 microseconds\n"), seen[-1])

    def test_latency_range(self) -> None:
        """The least and the greatest round trip of all samples are shown, and their mean."""
        connection = self.connect(self.serve(*[b"+PONG\r\n"] * 3, CLOSE))
        times = iter([0.0, 0.0, 0.5, 1.0, 1.25, 2.0, 2.75, 3.0])
        with self.assertRaises(ServerConnectionLost):
            latency(connection, self.out, lambda: next(times), self.clock.advance, 9.0)
        last = self.out.getvalue().split(b"\x1b[2K")[-1]
        self.assertEqual(b"min: 250, max: 750, avg: 500.00 (3 samples)", last)

    def test_stat_of_others(self) -> None:
        """What a server does not report, or not as a number, is zero; the growth of the requests
        after a restart is that since the last line."""
        text = "total_commands_processed:\u00b2\r\nused_memory:-5\r\nno colon\r\n".encode()
        answers = [info(9), b"$%d\r\n%b\r\n" % (len(text), text), info(4), b"-ERR no\r\n"]
        server = self.serve(*answers)
        with self.assertRaises(RefusedError) as refused:
            stat(lambda: self.connect(server), self.out, self.clock.advance, 1.0)
        self.assertEqual("ERR no", str(refused.exception))
        rows = [line.split() for line in self.out.getvalue().decode().splitlines()[2:]]
        self.assertEqual(["0/0", "0B", "0", "0", "0", "(+-9)", "0"], rows[1])
        self.assertEqual(["4", "(+4)"], rows[2][4:6])

    def test_human_size(self) -> None:
        """Sizes are shown in the unit that keeps them short."""
        cases = {0: "0B", 1023: "1023B", 1536: "1.50K", 3 << 30: "3.00G", 2 << 50: "2048.00T"}
        for size, expected in cases.items():
            self.assertEqual(expected, human_size(size))
