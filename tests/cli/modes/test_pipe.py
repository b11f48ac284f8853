"""Mass insertion."""

from __future__ import annotations

import io
import os
import tempfile

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.connection import ServerConnection, ServerConnectionLost, encode
from disque_tx.cli.modes.pipe import PipeMode
from tests.cli.double import CLOSE, ECHO, Screen, ScriptedServer

MARK = b"\xff\r\n01234567890123456"


class PipeTests(SynchronousTestCase):
    """``PipeMode``."""

    def pipe(self, data: bytes, *answers: bytes) -> PipeMode:
        """A pipe that sends ``data`` to a server with this script."""
        self.server = ScriptedServer(*answers)
        self.addCleanup(self.server.stop)
        connection = ServerConnection(self.server.address)
        self.addCleanup(connection.close)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.write(writer, data)
        os.close(writer)
        self.out, self.err = io.BytesIO(), io.StringIO()
        return PipeMode(connection, reader, self.out, self.err, MARK)

    def test_counts(self) -> None:
        """All requests are sent, all replies counted, and the final PING is not one of them."""
        pipe = self.pipe(encode([b"QLEN", b"a"]) + encode([b"PING"]), b":1\r\n", b"+PONG\r\n", ECHO)
        self.assertEqual(0, pipe.run(30.0, lambda: 0.0))
        self.assertEqual(
            b"All data transferred. Waiting for the last reply...\n"
            b"Last reply received from server.\n"
            b"errors: 0, replies: 2\n",
            self.out.getvalue(),
        )
        self.assertEqual([[b"QLEN", b"a"], [b"PING"], [b"PING", MARK]], self.server.requests)

    def test_errors(self) -> None:
        """Errors are printed and counted, and the exit status is 1."""
        pipe = self.pipe(encode([b"X"]) + encode([b"PING"]), b"-ERR no\r\n", b"+PONG\r\n", ECHO)
        self.assertEqual(1, pipe.run(30.0, lambda: 0.0))
        self.assertEqual("ERR no\n", self.err.getvalue())
        self.assertIn(b"errors: 1, replies: 2\n", self.out.getvalue())

    def test_long_replies(self) -> None:
        """A server that reads nothing more until its replies are read is not waited for: both sides
        send more than the system keeps for them."""
        long = 32 * 1024 * 1024
        pipe = self.pipe(b"", b"$%d\r\n%b\r\n" % (long, b"x" * long), b"+PONG\r\n", ECHO)
        with tempfile.TemporaryFile() as file:
            file.write(encode([b"SHOW", b"D-"]) + encode([b"PING", b"y" * long]))
            file.seek(0)
            pipe.source = file.fileno()
            self.assertEqual(0, pipe.run(0.0, lambda: 0.0))
        self.assertEqual((0, 2), (pipe.errors, pipe.replies))

    def test_silent_server(self) -> None:
        """When the server stops replying after the end of the input, the program gives up."""
        pipe = self.pipe(encode([b"PING"]), b"+PONG\r\n", b"$20\r\nnever")
        now_s = iter(range(0, 10_000, 10))
        pipe.poll_s = 0.0
        self.assertEqual(1, pipe.run(30.0, lambda: next(now_s) if pipe.replies else 0))
        self.assertEqual("No replies for 30 seconds: exiting.\n", self.err.getvalue())
        self.assertIn(b"errors: 1, replies: 1\n", self.out.getvalue())

    def test_lost_connection(self) -> None:
        """A connection closed by the server is an error."""
        pipe = self.pipe(encode([b"PING"]), CLOSE)
        self.assertRaises(ServerConnectionLost, pipe.run, 30.0, lambda: 0.0)

    def test_counts_at_the_end(self) -> None:
        """A lost connection, and bytes that are no replies, leave the counts of what was there."""
        pipe = self.pipe(encode([b"PING"]) * 2, b"+PONG\r\n", CLOSE)
        self.assertRaises(ServerConnectionLost, pipe.run, 30.0, lambda: 0.0)
        self.assertTrue(self.out.getvalue().endswith(b"errors: 0, replies: 1\n"))
        pipe = self.pipe(encode([b"PING"]), b"HTTP/1.1 400\r\n")
        error = self.assertRaises(ServerConnectionLost, pipe.run, 30.0, lambda: 0.0)
        self.assertTrue(str(error).startswith("this is not a Disque server: "), str(error))
        self.assertTrue(self.out.getvalue().endswith(b"errors: 0, replies: 0\n"))

    def test_seen_at_once(self) -> None:
        """Whoever waits for the last reply sees that nothing else is missing."""
        pipe = self.pipe(encode([b"PING"]), b"+PONG\r\n", CLOSE)
        screen = pipe.out = Screen()
        self.assertRaises(ServerConnectionLost, pipe.run, 30.0, lambda: 0.0)
        self.assertEqual(
            b"All data transferred. Waiting for the last reply...\nerrors: 0, replies: 1\n",
            screen.seen(),
        )
