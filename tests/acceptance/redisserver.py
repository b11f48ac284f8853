"""A real redis-server for tests, on a free port, in a folder of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest

from tests.acceptance.daemon import free_port, wait_for

MISSING = "redis-server is not in the path; the tests of the Redis work queue need it."


class RedisServer:
    """Started by :meth:`start`, which skips the test when there is no redis-server."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.port = free_port()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> RedisServer:
        """Start, and wait until it listens."""
        program = shutil.which("redis-server")
        if program is None:
            raise SkipTest(MISSING)
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        words += ["--save", "", "--appendonly", "no", *self._options]
        with open(self.folder / "redis.out", "ab") as output:
            self._process = subprocess.Popen(
                [program, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        wait_for(self._listens, f"redis-server listens on port {self.port}")
        return self

    def stop(self) -> None:
        """Kill it; its data is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def url(self) -> str:
        """The URL of its first database."""
        return f"redis://127.0.0.1:{self.port}/0"

    def _listens(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100) != b""
        except OSError:
            return False
