"""The node that is asked, all that a request can be about, and the client that sends PING."""

from __future__ import annotations

import multiprocessing
import socket
import ssl
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tests.acceptance.daemon import Daemon, free_port
from tests.protocols.http.api.test_queues import letter
from tests.services.net.certificates import Authority

READER: Final = "reader"
_JOB_BYTES: Final = 1_000_000
_LARGE_JOBS: Final = 200
_SCHEDULES: Final = 3_000
_PIPELINE: Final = 500


def pinging(port: int, control: Connection) -> None:
    """Send PING all the time; answers each message with the longest wait since the last one."""
    sock = socket.create_connection(("127.0.0.1", port))
    longest = 0.0
    while True:
        begun = time.perf_counter()
        sock.sendall(b"PING\r\n")
        sock.recv(100)
        longest = max(longest, time.perf_counter() - begun)
        if control.poll(0.0005):
            control.recv()
            control.send(longest)
            longest = 0.0


class Bench:
    """A node under load. ``http``, ``resp``: its ports, plain and with TLS."""

    def __init__(self, folder: Path) -> None:
        certificate, key = Authority(folder, "ca").issue("node")
        tls = f"interface=127.0.0.1:privateKey={key}:certKey={certificate}"
        self.http = (free_port(), free_port())
        secure_port = free_port()
        self.folder = folder
        self.node = Daemon(
            folder,
            f"listen http tcp:{self.http[0]}:interface=127.0.0.1",
            f"listen http ssl:{self.http[1]}:{tls}",
            f"listen resp ssl:{secure_port}:{tls}",
            "eventlog yes",
        ).start()
        self.resp = (self.node.port, secure_port)
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self._control, theirs = multiprocessing.Pipe()
        arguments = (self.node.port, theirs)
        self._pinger = multiprocessing.Process(target=pinging, args=arguments, daemon=True)
        self._pinger.start()

    def close(self) -> None:
        """End the node."""
        self._pinger.kill()
        self.node.discard()

    def connect(self, port: int, secure: bool) -> socket.socket:
        """A connection to one of the ports."""
        plain = socket.create_connection(("127.0.0.1", port))
        return self.tls.wrap_socket(plain) if secure else plain

    # -- what is there -----------------------------------------------------------------------

    def fill(self, queues: int) -> None:
        """Many queues of long names, jobs of a megabyte, dead letters and schedules."""
        client = self.node.client()
        names = [f"{number:06}" + "a" * 994 for number in range(queues)]
        for first in range(0, queues, _PIPELINE):
            some = names[first : first + _PIPELINE]
            for name in some:
                client.send("ADDJOB", name, "x", "0")
            for _ in some:
                client.read()
        for _ in range(_LARGE_JOBS):
            client.call("ADDJOB", "large", "x" * _JOB_BYTES, "0")
            client.call("ADDJOB", "dead:large", letter("y" * 500_000).decode(), "0")
        for number in range(_SCHEDULES):
            words = ("EVERY", "86400", "QUEUE", "q", "x" * 1_000)
            client.call("SCHEDULE", "SET", f"s{number}", *words)

    def fill_log(self, size_mib: int) -> float:
        """Add and acknowledge jobs until the event log has so many MiB; how many it has."""
        client = self.node.client()
        while self.log_mib() < size_mib:
            for _ in range(_PIPELINE):
                client.send("ADDJOB", "logged", "x", "0")
            ids = [client.read() for _ in range(_PIPELINE)]
            client.call("FASTACK", *ids)
        return self.log_mib()

    def log_mib(self) -> float:
        """The size of the event log."""
        files = (self.folder / "events").rglob("*")
        return sum(path.stat().st_size for path in files if path.is_file()) / (1 << 20)

    def protect(self) -> None:
        """From now on clients need a password; there is one with which they may only read."""
        client = self.node.client()
        client.call("CONFIG", "SET", "readonly-password", READER)
        client.call("CONFIG", "SET", "requirepass", "secret")

    # -- figures -----------------------------------------------------------------------------

    def longest_ms(self) -> float:
        """The longest PING since the last call."""
        self._control.send(None)
        return 1000 * float(self._control.recv())

    def forget_memory(self) -> int:
        """Begin to look for the greatest memory anew; what it is now, in MiB."""
        Path(f"/proc/{self.node.pid}/clear_refs").write_text("5")
        return self.memory_mib()

    def memory_mib(self) -> int:
        """The greatest memory that the node had since then."""
        lines = Path(f"/proc/{self.node.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
