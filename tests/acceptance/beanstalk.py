"""beanstalkd itself, and a connection of its protocol, for tests that look at raw replies."""

from __future__ import annotations

import shutil
import socket
import subprocess

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.acceptance.daemon import free_port, wait_for


class BeanstalkConnection:
    """Sends requests, and returns replies with what belongs to them."""

    def __init__(self, port: int, ip: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection((ip, port), timeout=60)
        self._stream = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send these bytes."""
        self._socket.sendall(data)

    def reply(self) -> bytes:
        """The next reply: its line and, behind a job or a report, the body."""
        line = self._stream.readline()
        words = line.split()
        if words and words[0] in (b"RESERVED", b"FOUND", b"OK"):
            return line + self._stream.read(int(words[-1]) + 2)
        return line

    def call(self, line: bytes) -> bytes:
        """The reply to one line."""
        self.send(line + b"\r\n")
        return self.reply()

    def put(self, body: bytes, priority: int = 10, delay_s: int = 0, ttr_s: int = 60) -> bytes:
        """The reply to a put."""
        return self.call(b"put %d %d %d %d\r\n" % (priority, delay_s, ttr_s, len(body)) + body)

    def close(self) -> None:
        """End the connection."""
        self._stream.close()
        self._socket.close()


def run_beanstalkd(case: SynchronousTestCase) -> int:
    """Start beanstalkd until the test ends; its port. Raises SkipTest if it is not installed."""
    program = shutil.which("beanstalkd")
    if program is None:
        raise SkipTest("beanstalkd is not in the path.")
    port = free_port()
    process = subprocess.Popen([program, "-l", "127.0.0.1", "-p", str(port)])
    case.addCleanup(process.wait)
    case.addCleanup(process.kill)
    wait_for(lambda: _listens(port), "beanstalkd listens")
    return port


def _listens(port: int) -> bool:
    try:
        BeanstalkConnection(port).close()
    except OSError:
        return False
    return True
