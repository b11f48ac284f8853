"""The servers that are measured: their processes are counted, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.daemon.servers import Server, descent, free_port, started

#: Answers whatever it is sent.
_PONG = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        client, _ = server.accept()
        client.recv(100)
        client.sendall(b"+PONG\\r\\n")
"""


def _server(program: str) -> Server:
    port = free_port()
    return Server("double", [sys.executable, "-c", program, str(port)], port)


class ServerTests(SynchronousTestCase):
    """Servers that do nothing."""

    def test_descent(self) -> None:
        """A server's script, its program and that one's helpers count as one server."""
        command = ["sh", "-c", "sh -c 'sleep 60 & echo $!; wait' & wait"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            helper = int(process.stdout.readline())
            found = descent(process.pid)
            # Parents first: one whose child has ended would end by itself.
            for pid in found:
                os.kill(pid, signal.SIGKILL)
        self.assertEqual((process.pid, helper, 3), (found[0], found[-1], len(found)))

    def test_failed_start(self) -> None:
        """Who has lost one server of three is not left with the other two."""
        servers: list[Server] = []

        def works() -> Server:
            servers.append(_server(_PONG))
            return servers[-1]

        starts = [works, works, lambda: _server("raise SystemExit(1)")]
        with self.assertRaisesRegex(SystemExit, "double did not start"):
            started(starts)
        self.assertEqual([-9, -9], [server.process.returncode for server in servers])
